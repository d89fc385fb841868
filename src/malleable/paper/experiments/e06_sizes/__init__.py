"""Exact sizes do not matter on many cores: the proposition that all jobs of a class run on k_i* cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e06_sizes.cells import (
    cells,
    grids,
)
from malleable.paper.experiments.e06_sizes.figures import (
    costs_figure,
    costs_table,
    figure,
    shares_table,
)
from malleable.paper.experiments.e06_sizes.readings import (
    Ratios,
    ratios_of,
)
from malleable.paper.experiments.e06_sizes.verdicts import (
    few_cores_verdict,
    limit_verdict,
    loses_verdict,
    widths_gather,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "epsilon": "k within 10 % or 25 % of k_i*, relative",
    "A-heSRPT": (
        "heSRPT's shares at every arrival and departure by remaining size, one exponent fitted to all "
        "classes; jobs due less than a core get one, and the rule is applied again to the others"
    ),
    "one class": "class 2 of the paper alone (√k), where WHAM and EQUI coincide",
    "levelled heSRPT": "jobs due less than a core get one, and the shares of all others are scaled down once",
    "run length": "the simulations of rules by size have fewer jobs the more cores, at least 30 per core",
    "widths": "the first fifth of a run is left out; 20 batches, 95 %",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Shares of the work near k_i*, the price of using sizes, and what they say."""
    cores, mixed, level, plain = grids(effort)
    ratios = {
        "mixed": ratios_of("mixed", "hesrpt", mixed, values),
        "hesrpt": ratios_of("hesrpt", "hesrpt", plain, values),
        "levelled": ratios_of("levelled", "levelled", level, values),
    }
    names = values["predicted"]["names"]
    return Findings(
        title="On many cores the size of a job does not matter",
        source="Proposition: mean field optimal policies should not use exact job size information",
        statement=(
            "On one core it pays to serve short jobs first. The paper proves that on many cores it does not: "
            "under any policy that is optimal in the limit, nearly all work of a class is done on the same "
            "number of cores k_i*, whatever the size of the job. A policy that gives short jobs more, as "
            "heSRPT does (optimal when all jobs are there from the start), loses in the limit."
        ),
        figures=(figure(cores, values), costs_figure(ratios, values)),
        tables=(shares_table(cores, values), costs_table(ratios, values)),
        verdicts=(
            *(widths_gather(i, name, cores, values) for i, name in enumerate(names)),
            loses_verdict(ratios["mixed"]),
            limit_verdict(level, values, ratios["levelled"][-1]),
            few_cores_verdict(ratios["levelled"][0]),
        ),
        remarks=_remarks(ratios, values),
    )


def _remarks(ratios: dict[str, Ratios], values: Values) -> tuple[str, ...]:
    n, plain = ratios["hesrpt"][-1]
    limit = values[f"levelled-{ratios['levelled'][-1][0]}"]["ratio"]
    return (
        (
            "A-heSRPT is heSRPT with a repair: jobs due less than a core get one, and the rule is applied "
            "again to the others. Each round leaves the largest of them with less than a core again, so on "
            "many cores the rounds end with nearly all jobs on one core, and the ratio keeps growing. With "
            f"one class it is {plain.mean:.3f} on {n} cores; levelled, with the shares scaled down once "
            f"instead, it tends to {limit:.4f} (9/8 without the level). The paper does not say which it uses."
        ),
        (
            "That the share within ε tends to 1 is what the proposition says in finite terms: the width "
            "under WHAM fluctuates around k_i* by a relative amount of order 1/√n."
        ),
        "At one n all rules of a comparison see the same jobs, at least 30 per core.",
    )
