"""WHAM against EQUI and GREEDY as the number of cores grows: Figure "WHAM vs. EQUI and GREEDY"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e03_others.cells import (
    POLICIES,
    VARIANTS,
    cells,
    cores_of,
)
from malleable.paper.experiments.e03_others.exact_costs import LIMITS
from malleable.paper.experiments.e03_others.figures import (
    costs_figure,
    differences_table,
    limits_table,
)
from malleable.paper.experiments.e03_others.readings import (
    RIVALS,
    SETTLED,
    curve_of,
    differences_of,
)
from malleable.paper.experiments.e03_others.verdicts import (
    same_limit,
    stays_above,
    wham_converges,
    wham_is_better,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.curves import costs_table

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "n": "powers of 2 from 1 to 16384; the load stays 0.25, so arrival rates grow with n",
    "GREEDY": (
        "maximises the rate of work, as the paper has it, not that of departures; with more jobs than cores "
        "all jobs tie, and the earliest go first"
    ),
    "EQUI": "with more jobs than cores each gets n/N of a core, at speed n/N",
    "run length": (
        "all three policies on the same jobs until the 95 % intervals are ±0.2 % (full: ±0.05 %, with a GPU "
        "±0.01 %)"
    ),
    "warm-up": "found by MSER-5 and left out",
    "differences": "rival minus WHAM on the same jobs, batch by batch",
    "limits": f"from a + b/n + c/n² fitted to n ≥ {SETTLED}, with 99.9 % intervals",
    "exact costs": f"Markov chains cut off at {', '.join(f'{m} jobs (n = {n})' for n, m in LIMITS.items())}",
}


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the differences, and what they say."""
    cores, known = cores_of(effort), values["limits"]
    curves = {policy: curve_of(policy, cores, values) for policy in POLICIES}
    differences = {policy: differences_of(policy, cores, values) for policy in RIVALS}
    cases = [case for curve in curves.values() for case in curve.cases()]
    return Findings(
        title="WHAM against EQUI and GREEDY",
        source="Figure: WHAM vs. EQUI and GREEDY",
        statement=(
            "EQUI gives every job the same number of cores. GREEDY gives each core to the job that gains "
            "most speed from it, so that most work is done right now. The paper claims that WHAM's cost "
            "tends to the lower bound V*, that the other two stay above it, and that WHAM is better on any "
            "number of cores. GREEDY is within about one percent of WHAM, so all policies are run on the "
            "same jobs and the differences are estimated directly."
        ),
        figures=(costs_figure(known, curves, differences),),
        tables=(
            costs_table("others", "Costs over n", curves.values(), known["bound"]),
            differences_table(cores, curves["wham"], differences),
            limits_table(known, curves, differences),
        ),
        verdicts=(
            same_limit(known),
            wham_converges(known, curves["wham"]),
            *(stays_above(policy, known, cores, differences[policy]) for policy in RIVALS),
            *(wham_is_better(policy, cores, differences[policy]) for policy in RIVALS),
            ev.agreement("Simulated costs agree with those of the exact Markov chains", cases),
        ),
        remarks=_remarks(values),
    )


def _remarks(values: Values) -> tuple[str, ...]:
    known = values["limits"]
    ratios = (f"{v} {known[f'greedy:weight={k}']['cost'] / known['bound']:.4f}" for k, v in VARIANTS.items())
    crowded = max(values[f"exact-{policy}-16"]["overload"] for policy in POLICIES)
    return (
        (
            "With one core there is nothing to share out: WHAM serves the job with the largest ratio of "
            "holding cost to remaining size, EQUI shares the core, GREEDY serves in order of arrival."
        ),
        (
            "The exact chains let all jobs share time when they are as many as the cores or more, which "
            f"happens with probability {crowded:.1g} on 16 cores."
        ),
        (
            "Berg et al. have GREEDY maximise the rate of departures. The paper maximises that of work. "
            f"Limits over V* for other weights: {'; '.join(ratios)}."
        ),
    )
