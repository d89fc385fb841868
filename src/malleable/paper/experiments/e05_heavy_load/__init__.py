"""Near full load there is no room for parallelism: the proposition on ρ → 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e05_heavy_load.cells import (
    CORES,
    POLICIES,
    WIDTHS,
    cells,
    over_cores,
    over_load,
)
from malleable.paper.experiments.e05_heavy_load.figures import (
    figure,
    table,
)
from malleable.paper.experiments.e05_heavy_load.readings import (
    SHOWN,
)
from malleable.paper.experiments.e05_heavy_load.verdicts import (
    below_bound,
    vanishing,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "regimes": "ρ → 1 on 64 cores, and n → ∞ with ρ = 1 − 1/√n (Halfin–Whitt)",
    "k0": "1.25, 2 and 4 cores",
    "policies": "WHAM, EQUI, GREEDY; the proposition is about any policy under which the system is stable",
    "run length": "half as many jobs as the effort has; the first fifth is left out",
    "intervals": "20 batches, 95 %, lengthened for correlation",
}


def findings(effort: Effort, values: Values) -> Findings:
    """The shares beside their bounds, and what they say."""
    return Findings(
        title="Near full load almost nothing runs in parallel",
        source="Proposition: almost no parallelism happens as ρ → 1",
        statement=(
            "A job on many cores does less work per core. When the work that arrives needs nearly all cores "
            "even at one core per job, there is none to waste, so only a vanishing share of the work can be "
            "done on more than k0 cores, for any k0 > 1 and any policy that keeps the system stable. This "
            "is why the paper keeps the load fixed and lets the number of cores grow."
        ),
        figures=(figure(effort, values),),
        tables=(table(effort, values),),
        verdicts=(
            below_bound(
                "paper", "The share beyond k0 is below the bound in the paper's proof", effort, values
            ),
            below_bound("sharp", "It is below the sharper bound, too", effort, values),
            *(
                vanishing(f"{where}: {POLICIES[policy][0]} does a vanishing share of its work on more than "
                          f"{WIDTHS[SHOWN]:g} cores", policy, points, values)
                for where, points in (
                    (f"On {CORES} cores", over_load(effort)),
                    ("With ρ = 1 − 1/√n", over_cores(effort)),
                )
                for policy in POLICIES
            ),
        ),
        remarks=(
            (
                "The paper defines ρ there without dividing by n. The bound needs ρ = Σ λ_i E[X_i]/n, as in "
                "the rest of the paper."
            ),
            (
                "The sharper bound is ours: the paper takes the best speedup for all work; each class's own, "
                "and no more than its share of the work, leaves less."
            ),
            (
                "A share of exactly zero has no logarithm and is not drawn; neither is a bound of 1, which "
                "says nothing."
            ),
        ),
    )  # fmt: skip
