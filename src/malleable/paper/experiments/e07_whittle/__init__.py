"""From the bandit to WHAM: optimal actions of a single job, indexability, and the limit of no discount."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e07_whittle.cells import (
    CLASSES,
    CORES,
    DISCOUNTS,
    LOADS,
    SIMULATED_CORES,
    SIZES,
    SPEEDUPS,
    cells,
)
from malleable.paper.experiments.e07_whittle.figures import (
    arms_figure,
    differences_table,
    index_table,
    limits_table,
    map_figure,
    policy_figure,
    states_table,
    widths_table,
)
from malleable.paper.experiments.e07_whittle.readings import differences_of
from malleable.paper.experiments.e07_whittle.verdicts import (
    allocations_verdicts,
    indexable_verdict,
    simulated_verdict,
    thresholds_verdict,
    widths_verdict,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "alpha": f"actions and allocations: {', '.join(map(str, DISCOUNTS))}; simulated: down to 0.01",
    "sizes": f"widths at remaining sizes {', '.join(map(str, SIZES))}; indexability from 0.01 to 100",
    "prices": "widths at l/α from 0.03 to 30; indexability at l from 10⁻⁵ to 10³",
    "states": (
        f"{CORES} cores, half with fewer jobs than cores and half with up to 2.5 times as many, numbers of "
        "jobs uniform in their logarithm, classes equally likely, remaining sizes drawn from the size laws"
    ),
    "odd cores": (
        "at the market-clearing price cores may be left that no further job is worth; the discounted policy "
        "gives them to the next job or, if they do not make a core, to the jobs served"
    ),
}


def findings(effort: Effort, values: Values) -> Findings:  # noqa: ARG001 - the cells say it all
    """Figures, tables, and whether the limit is WHAM."""
    arms = [values[f"actions-{i}"] for i in range(len(CLASSES))]
    grids = {name: values[f"indexable-{i}"] for i, name in enumerate(SPEEDUPS)}
    states = values["allocations"]
    differences = {load: differences_of(load, values) for load in LOADS}
    return Findings(
        title="From the bandit to WHAM",
        source="Lemma: The optimal policy for the single-armed problem; Definition: Indexability; Theorem: "
        "the Whittle policy for α → 0",
        statement=(
            "Whittle's idea: let every job rent cores at a price l, as if it were alone, and set the price "
            "so that all cores are let. What a job should rent is found from its own holding cost and the "
            "rent, with future costs discounted at rate α. The paper assumes that a job never rents more "
            "when the price rises (indexability), lets α go to 0, and arrives at WHAM: at prices of the "
            "order of α a job takes the width that minimises (c + l·k)/s(k); at prices of the order of 1 it "
            "has one core while l < c/x, and waits otherwise."
        ),
        figures=(arms_figure(arms), map_figure(values["map"]), policy_figure(states, differences)),
        tables=(
            widths_table(arms),
            limits_table(arms),
            index_table(grids),
            states_table(states),
            differences_table(differences),
        ),
        verdicts=(
            widths_verdict(arms),
            thresholds_verdict(arms),
            indexable_verdict(grids),
            *allocations_verdicts(states),
            *(simulated_verdict(load, found) for load, found in differences.items()),
        ),
        remarks=(*REMARKS, *_better(differences)),
    )


def _better(differences: dict[float, tuple[Estimate, list[Estimate]]]) -> tuple[str, ...]:
    """Which discounts cost less than none: WHAM is optimal in the limit of many cores only."""
    found = [
        f"{-d.mean / wham.mean:.2%} at α = {alpha:g} and load {load}"
        for load, (wham, apart) in differences.items()
        for alpha, d in zip(LOADS[load], apart, strict=True)
        if d.high < 0.0
    ]
    text = f"On {SIMULATED_CORES} cores some discount costs less than none, because it looks at sizes: "
    return (f"{text}{', '.join(found)}.",) if found else ()


REMARKS = (
    (
        "The limits of the widths are found by comparing (c + l·k)/s(k) at 4000 widths, not by the formulas "
        "that WHAM uses; every action of the indexability grid is compared with 400 widths and with waiting."
    ),
    (
        "At a fixed discount a long job does not start with one core: below its index it jumps from waiting "
        "to many cores, because time far away hardly counts. Such a policy wastes cores on long jobs, and at "
        "high load it can be unstable: α = 1 at load 0.8 is."
    ),
    (
        "The paper requires of indexability also that free cores are used without limit; where a speedup has "
        "a peak, that is as far as they help."
    ),
)
