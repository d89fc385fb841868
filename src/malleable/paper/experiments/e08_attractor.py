"""Do all trajectories of WHAM's mean-field equation end at the fixed point, and does the system follow?"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Cell, Effort, Findings, Verdict, failed
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._attractor_figures import (
    SYSTEM_TIME,
    TIME,
    deviations_figure,
    deviations_table,
    distances_figure,
    final_rates,
    paths_figures,
    rates_table,
    studies_table,
)
from malleable.paper.experiments._fluid_paths import (
    attraction,
    fluid_paths,
    random_attraction,
    system_paths,
)
from malleable.statistics.intervals import Estimate, t_quantile
from malleable.theory.attractor import ARRIVED

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

LOAD = 0.25
LAWS = {"exponential": 3, "phase type": 4}
"""Size laws, and their numbers of phases."""
LOADS = (0.05, 0.25, 0.5516, 0.8, 0.95)
"""Loads of the study; at 0.5516 a class is just narrowed to one core, where the equation has a kink."""
QUICK_LOADS = (0.25, 0.8)
CONFIGURATIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "empty": ("phase type", (0.0, 0.0, 0.0, 0.0)),
    "crowded": ("phase type", (0.1, 0.3, 0.1, 0.1)),
    "crowded, exponential": ("exponential", (0.1, 0.3, 0.1)),
}
"""Starts of the system: jobs of each phase over the number of cores."""
QUICK_CONFIGURATIONS = ("crowded",)
CORES = {"quick": (256, 2048, 16384), "normal": (256, 2048, 16384), "full": (256, 1024, 4096, 16384, 65536)}
SHOWN = (64, 1024, 16384)
"""Numbers of cores whose paths are shown."""
SEED = 8
STARTS = {"quick": (4, 2), "normal": (20, 6), "full": (100, 40)}
"""Trajectories that are shown, and those of each study."""
RANDOM = {"quick": (1, 1, 2), "normal": (3, 2, 3), "full": (10, 5, 6)}
"""Cells of random workloads, workloads in each, and starts of each of those."""
RUNS = {"quick": 4, "normal": 8, "full": 20}
TOLERANCE = 0.15
"""How far from −1/2 the exponent of the deviation may lie, its interval included."""

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


def cells(effort: Effort) -> list[Cell]:
    """Trajectories to show, studies by law and load, random workloads, and paths of the system."""
    shown, studied = STARTS[effort.name]
    batches, workloads, starts = RANDOM[effort.name]
    loads = QUICK_LOADS if effort.quick else LOADS
    common = {"load": LOAD, "count": shown, "time": TIME, "seed": SEED}
    made = [
        Cell(f"fluid-{i}", fluid_paths, {"law": law, **common}, 0.1 * shown) for i, law in enumerate(LAWS)
    ]
    made += [
        Cell(f"study-{i}-{load}", attraction, {"law": law, "load": load, "count": studied, "seed": SEED},
             0.1 * studied)
        for i, law in enumerate(LAWS) for load in loads
    ]  # fmt: skip
    made += [
        Cell(f"random-{b}", random_attraction, {"workloads": workloads, "count": starts, "seed": SEED + b},
             0.2 * workloads * starts)
        for b in range(batches)
    ]  # fmt: skip
    for i, name in enumerate(_configurations(effort)):
        law, start = CONFIGURATIONS[name]
        run = {"law": law, "load": LOAD, "start": list(start), "time": SYSTEM_TIME, "seed": SEED}
        pictures = () if effort.quick else SHOWN
        made += [
            Cell(f"system-{i}-{n}", system_paths,
                 {"cores": n, "runs": RUNS[effort.name] if n in CORES[effort.name] else 1, **run},
                 0.1 * RUNS[effort.name])
            for n in sorted({*CORES[effort.name], *pictures})
        ]  # fmt: skip
    return made


def _configurations(effort: Effort) -> tuple[str, ...]:
    return QUICK_CONFIGURATIONS if effort.quick else tuple(CONFIGURATIONS)


def findings(effort: Effort, values: Values) -> Findings:
    """Figures, tables and verdicts."""
    fluids = {law: values[f"fluid-{i}"] for i, law in enumerate(LAWS)}
    studies = _studies(values)
    batches = [values[key] for key in values if key.startswith("random-")]
    random = [row for batch in batches if not failed(batch) for row in batch]
    systems = {
        name: {n: _deviation(values[f"system-{i}-{n}"]) for n in CORES[effort.name]}
        for i, name in enumerate(_configurations(effort))
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
            *paths_figures(_configurations(effort), shown, values),
            deviations_figure(systems),
        ),
        tables=(studies_table(studies, random), deviations_table(systems), rates_table(fluids)),
        verdicts=(
            _fixed_point(fluids),
            _all_arrive("Every trajectory of the paper's workload ends at the fixed point", fluids, studies),
            _all_arrive(
                "Every trajectory of random workloads ends at the fixed point",
                {},
                random,
                lost=sum(map(failed, batches)),
            ),
            _final_rate(fluids),
            *(_follows(name, found) for name, found in systems.items()),
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


def _studies(values: Values) -> list[dict[str, Any]]:
    return [
        {"law": law, **values[key]}
        for i, law in enumerate(LAWS)
        for key in values
        if key.startswith(f"study-{i}-")
    ]


def _deviation(found: Any) -> Estimate:
    """Mean of the largest deviations over seeds, with its 95 % interval."""
    d = np.array(found["deviations"])
    mean = float(d.mean())
    half = t_quantile(len(d) - 1, 0.95) * float(d.std(ddof=1)) / sqrt(len(d))
    return Estimate(mean, mean - half, mean + half)


def _fixed_point(fluids: dict[str, Any]) -> Verdict:
    gaps = {law: found["cost"] / found["bound"] - 1.0 for law, found in fluids.items()}
    told = "; ".join(f"{law}: {f['cost']:.10f} and {f['bound']:.10f}" for law, f in fluids.items())
    return Verdict(
        "The cost at the fixed point is V*, whatever the law of sizes",
        all(abs(gap) < 1e-9 for gap in gaps.values()),
        f"cost and V*, {told}",
    )


def _all_arrive(
    statement: str, fluids: dict[str, Any], studies: list[dict[str, Any]], lost: int = 0
) -> Verdict:
    """Counted over the studies, and over the trajectories that are shown; `lost` cells have no answer."""
    ends = [path[-1] for found in fluids.values() for path in found["distances"]]
    starts = sum(s["starts"] for s in studies) + len(ends)
    arrived = sum(s["converged"] for s in studies) + sum(end <= ARRIVED for end in ends)
    worst = max([*ends, *(s["worst_distance"] for s in studies)], default=0.0)
    slowest = max(s["slowest"] for s in studies)
    text = (
        f"{arrived} of {starts} starts in {len(studies)} settings arrive, largest final distance "
        f"{worst:.1g}; all eigenvalues of the linearised equation at most {slowest:.3g}"
    )
    text += f"; {lost} cells of more settings could not be integrated" if lost else ""
    all_do = bool(arrived == starts and slowest < 0.0)
    return Verdict(statement, None if lost and all_do else all_do, text)


def _final_rate(fluids: dict[str, Any]) -> Verdict:
    """The slowest eigenvalue, found from formulas, must be what the integrated trajectories show."""
    apart, told = [], []
    for law, found in fluids.items():
        rate = float(np.median(final_rates(found)))
        apart.append(abs(rate / found["slowest"] - 1.0))
        told.append(f"{law}: median {rate:.3f}, eigenvalue {found['slowest']:.3f}")
    return Verdict(
        "Trajectories approach it at the rate of the slowest eigenvalue", max(apart) < 0.05, "; ".join(told)
    )


def _follows(name: str, found: dict[int, Estimate]) -> Verdict:
    """Whether the deviation is a power of n with exponent −1/2."""
    exponent, _ = ev.power(list(found), list(found.values()))
    statement = f"From the start “{name}” the system deviates from the equation by the order of 1/√n"
    told = "; ".join(f"n = {n}: {d.mean:.4f} ± {d.half_width:.4f}" for n, d in found.items())
    text = f"largest deviation {told}; power of n {exponent.mean:.3f} ± {exponent.half_width:.3f}"
    if exponent.high < -0.5 - TOLERANCE or exponent.low > -0.5 + TOLERANCE:
        return Verdict(statement, False, text)
    inside = exponent.low >= -0.5 - TOLERANCE and exponent.high <= -0.5 + TOLERANCE
    return Verdict(statement, inside or None, text)
