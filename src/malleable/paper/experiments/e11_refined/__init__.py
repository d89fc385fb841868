"""Costs at finite n without simulation: the refined mean field against exact and simulated costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e11_refined import figures as shown
from malleable.paper.experiments.e11_refined.cells import (
    CORES,
    LOADS,
    POLICIES,
    QUICK_CORES,
    QUICK_LOADS,
    affordable,
    cells,
    simulated_cores,
)
from malleable.paper.experiments.e11_refined.verdicts import (
    SETTLED,
    agrees,
    coefficients,
    honest,
    order_is_right,
    predicts,
    refined_is_closer,
    second_order,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from malleable.paper.contracts import Values

    Curves = Mapping[tuple[str, str], list[Any]]

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "exact costs": "Markov chain of the counts by class and phase; the table says what its truncation loses",
    "overload": "in the chain, WHAM orders by c/E[X] and GREEDY shares in time when N > n",
    "n": "exact up to 128 cores (512 with exponential sizes), simulated up to 1024; load 0.25 unless varied",
    "rates": f"slopes and limits from n ≥ {SETTLED} on",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Costs and errors over n and load, and what they say."""
    chosen = QUICK_CORES if effort.quick else CORES
    curves = {
        (name, policy): [values[f"{name}-{policy}-{n}"] for n in affordable(effort, name, policy, cores)]
        for name, cores in chosen.items()
        for policy in POLICIES
    }
    loads = [values[f"load-{load:g}"] for load in (QUICK_LOADS if effort.quick else LOADS)]
    return Findings(
        title="Costs at finite n, without simulation",
        source="beyond the paper (refined mean field of Gast and Van Houdt)",
        statement=(
            "The mean field gives the cost on infinitely many cores. At finite n random fluctuations add to "
            "it: to first order a constant over n, which can be computed from the equation's derivatives. "
            "How many cores does it take for this to be a good prediction, and does it know when it is not?"
        ),
        figures=(
            shown.costs(simulated_cores(effort), values, curves),
            shown.errors(curves),
            shown.over_load(loads),
        ),
        tables=(shown.table(curves), shown.load_table(loads)),
        verdicts=(
            coefficients(curves),
            second_order(curves),
            refined_is_closer([*(v for c in curves.values() for v in c)]),
            honest([*(v for c in curves.values() for v in c), *loads]),
            order_is_right(curves),
            agrees(effort, values),
            predicts(effort, values),
        ),
        remarks=(
            (
                "The correction is the first term of a series in 1/n. On few cores the next terms are as "
                "large; the correction is then too high, and further up, where they change sign, too low."
            ),
            (
                "At low load so few jobs are present that their number fluctuates by as much as its mean. "
                "No expansion around a fixed point is of use there, whether or not the demand has a kink."
            ),
        ),
    )
