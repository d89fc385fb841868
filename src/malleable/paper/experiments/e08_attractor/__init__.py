"""Do all trajectories of WHAM's mean-field equation end at the fixed point, and does the system follow?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings, failed
from malleable.paper.experiments.e08_attractor.cells import (
    CORES,
    LAWS,
    SHOWN,
    SYSTEM_TIME,
    cells,
    configurations,
)
from malleable.paper.experiments.e08_attractor.figures import (
    deviations_figure,
    deviations_table,
    distances_figure,
    paths_figures,
    rates_table,
    studies_table,
)
from malleable.paper.experiments.e08_attractor.readings import (
    deviation_of,
    studies_of,
)
from malleable.paper.experiments.e08_attractor.verdicts import (
    all_arrive,
    final_rate,
    fixed_point,
    follows,
)
from malleable.theory.attractor import ARRIVED

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "starts": "the empty system, full ones of a single phase, and random mixtures filled at random",
    "arrived": f"within {ARRIVED:g} of the fixed point, relative to its length",
    "integration": "LSODA, relative error of a step 10⁻⁶",
    "more jobs than cores": "outside the equation's domain; jobs time-share there, one core each in turn",
    "system": (
        "starts with a crowd of jobs in random order; looked at up to 1000 times, at arrivals, "
        f"up to time {SYSTEM_TIME:g}"
    ),
    "random workloads": (
        "one to four classes; power, Amdahl and USL speedups; exponential, hyperexponential and Erlang "
        "sizes; load uniform from 0.05 to 0.95"
    ),
}


def findings(effort: Effort, values: Values) -> Findings:
    """Figures, tables and verdicts."""
    fluids = {law: values[f"fluid-{i}"] for i, law in enumerate(LAWS)}
    studies = studies_of(values)
    batches = [values[key] for key in values if key.startswith("random-")]
    random = [row for batch in batches if not failed(batch) for row in batch]
    systems = {
        name: {n: deviation_of(values[f"system-{i}-{n}"]) for n in CORES[effort.name]}
        for i, name in enumerate(configurations(effort))
    }
    shown = CORES[effort.name] if effort.quick else SHOWN
    return Findings(
        title="The mean field attracts",
        source="Theorem: mean field optimality of WHAM; the conjecture in its footnote",
        statement=(
            "With many cores the numbers of jobs of each class, divided by the number of cores, follow a "
            "differential equation. WHAM is optimal in that limit if every solution of the equation ends at "
            "its fixed point, where the cost is V*. The paper assumes this and conjectures that it is true. "
            "Here solutions are followed from many starts, for the paper's workload and for random ones, and "
            "paths of the system itself are laid over them: they should stay within a distance of the order "
            "of 1/√n."
        ),
        figures=(
            distances_figure(fluids),
            *paths_figures(configurations(effort), shown, values),
            deviations_figure(systems),
        ),
        tables=(studies_table(studies, random), deviations_table(systems), rates_table(fluids)),
        verdicts=(
            fixed_point(fluids),
            all_arrive("Every trajectory of the paper's workload ends at the fixed point", fluids, studies),
            all_arrive(
                "Every trajectory of random workloads ends at the fixed point",
                {},
                random,
                lost=sum(map(failed, batches)),
            ),
            final_rate(fluids),
            *(follows(name, found) for name, found in systems.items()),
        ),
        remarks=(
            "Trajectories prove no conjecture; they could only have refuted it.",
            (
                "A start with as many jobs as cores is the edge of the equation's domain. Some trajectories "
                "pass through states with more jobs than cores first; the table counts them."
            ),
            "The largest deviation of a path is taken over time and classes, then averaged over seeds.",
        ),
    )
