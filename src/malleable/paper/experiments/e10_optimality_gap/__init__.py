"""How far from the optimum? Exact costs of policies beside the best policy that is blind to sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings, failed
from malleable.paper.experiments.e10_optimality_gap import figures as shown
from malleable.paper.experiments.e10_optimality_gap.cells import FEW, LOADS, cells, key_of, settings_of
from malleable.paper.experiments.e10_optimality_gap.figures import simulation_table
from malleable.paper.experiments.e10_optimality_gap.readings import Point
from malleable.paper.experiments.e10_optimality_gap.verdicts import (
    agrees,
    best_rule,
    closed,
    favours_short,
    gap_falls,
    sandwich,
    sizes_matter,
    small_on_the_paper,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]
CHOICES = {
    "sizes": "exponential with the paper's means, so that class counts say all a size-blind policy can know",
    "short and long": "two classes alike but for mean size (0.1 and 1), k^0.8, c = 1, each half of the load",
    "n, ρ": f"n = {', '.join(map(str, FEW))}, more at low load; ρ = {', '.join(map(str, LOADS))}",
    "widths": "any real number of cores; below one core a job shares it in time; whole cores apart",
    "overload": "in the chain WHAM orders by c/E[X], GREEDY with equal weights shares the cores in time",
    "truncation": "1e-6 of the optimum's arrivals find the chain full; up to 1e-4 with three classes",
    "lost jobs": "charged what it would cost to let them in, by the value function of the overloaded system",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Gaps over n and load, the map, and what they say."""
    points = [Point(*s, values[key_of("gap", *s)]) for s in settings_of(effort)]
    points = [point for point in points if not failed(point.value)]
    points.sort(key=lambda p: (p.name, p.load, p.cores))
    figures = [shown.over_cores(points), shown.by_policy(points)]
    figures += [] if effort.quick else [shown.heat(points)]
    return Findings(
        title="How far is WHAM from the optimum?",
        source="beyond the paper",
        statement=(
            "WHAM's cost tends to the lower bound V* on many cores. On few cores V* is out of reach for "
            "every policy, so the distance from V* does not tell how good a policy is. With Poisson arrivals "
            "and exponential sizes the best policy that is blind to sizes can be computed (a Markov decision "
            "process), and the distance from it can be measured. Where does WHAM lose, and how much?"
        ),
        figures=(*figures, shown.decisions(values["map"])),
        tables=(shown.table(points), simulation_table(effort, values, points)),
        verdicts=(
            sandwich(points),
            closed(points),
            small_on_the_paper(points),
            *(gap_falls(points, name) for name in ("two", "sizes")),
            best_rule(points),
            favours_short(values["map"]),
            sizes_matter(effort, values, points),
            agrees(effort, values, points),
        ),
        remarks=(
            (
                "The optimum is over policies that do not know sizes. WHAM knows them, and uses them when "
                "jobs outnumber cores; in the chain it orders by c/E[X] instead. Simulated WHAM is the real "
                "one, and may cost less than the optimum."
            ),
            (
                "WHAM gives short and long jobs of one speedup the same cores as long as each job has one. "
                "The optimum gives the short ones more: they leave sooner and free their cores. On very many "
                "cores the difference vanishes."
            ),
            (
                "A policy under which more than one arrival in ten thousand finds the chain full is "
                "unstable, or needs a longer chain; it has no entry. GREEDY with w = cμ starves the class of "
                "lower cμ at high load."
            ),
        ),
    )
