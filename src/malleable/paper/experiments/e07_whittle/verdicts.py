"""Verdicts of e07_whittle: what its numbers bear out."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e07_whittle.cells import CORES, DISCOUNTS, LOADS, SIMULATED_CORES
from malleable.paper.experiments.e07_whittle.readings import by_mode, gap
from malleable.paper.experiments.e07_whittle.single_arm import (
    CHANGED,
)
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

NEGLIGIBLE = 0.001
"""Share of WHAM's cost by which the simulated cost may differ at the smallest discount."""


def _order(discounts: Sequence[float], gaps: Sequence[float]) -> float:
    """The power of α with which the last gaps fall; 0 if they do not fall."""
    if min(gaps[-2:]) <= 0.0:
        return inf if gaps[-1] <= 0.0 else 0.0
    return log(gaps[-2] / gaps[-1]) / log(discounts[-2] / discounts[-1])


def widths_verdict(arms: list[Any]) -> Verdict:
    """Whether no job waits in the end, and widths differ by less and less: in proportion to α."""
    found = [[gap(arm, d) for arm in arms] for d in range(len(DISCOUNTS))]
    gaps, waiting = [max(g for g, _ in row) for row in found], [sum(w for _, w in row) for row in found]
    order = _order(DISCOUNTS, gaps)
    told = "; ".join(
        f"α = {alpha:g}: {gap:.2g}" + (f", waits at {count} points" if count else "")
        for alpha, gap, count in zip(DISCOUNTS, gaps, waiting, strict=True)
    )
    return Verdict(
        "As α → 0 the best width at price l·α tends to argmin (c + l·k)/s(k)",
        bool(waiting[-1] == 0 and order > 0.9 and gaps[-1] < 0.01),
        f"largest relative difference: {told}; falls as α to the power {order:.3f}",
    )


def thresholds_verdict(arms: list[Any]) -> Verdict:
    """Whether indices of arms tend to WHAM's thresholds."""
    gaps = [
        max(float(np.abs(np.array(arm["indices"][d]) - 1.0).max()) for arm in arms)
        for d in range(len(DISCOUNTS))
    ]
    order = _order(DISCOUNTS, gaps)
    told = "; ".join(f"α = {alpha:g}: {gap:.2g}" for alpha, gap in zip(DISCOUNTS, gaps, strict=True))
    return Verdict(
        "As α → 0 a job is served exactly at prices below c/x",
        bool(order > 0.9 and gaps[-1] < 0.01),
        f"largest relative distance of the index from c/x: {told}; falls as α to the power {order:.3f}",
    )


def indexable_verdict(grids: dict[str, Any]) -> Verdict:
    """Every step must fall, every wait must last, and every action must be the cheapest."""
    steps = sum(g["steps"] for g in grids.values())
    falling, passive = (sum(g[key] for g in grids.values()) for key in ("falling", "passive"))
    loss, free = max(g["worst_loss"] for g in grids.values()), min(g["free_share"] for g in grids.values())
    checked = max(g["worst_rise"] for g in grids.values()) <= 1e-9
    return Verdict(
        "Jobs are indexable: more wait and none takes more cores when the price rises",
        bool(falling == passive == steps and checked and loss < 1e-9 and free > 1.0 - 1e-9),
        f"{steps} steps of the price for {len(grids)} speedups: actions fall at {falling / steps:.2%}, who "
        f"waits goes on waiting at {passive / steps:.2%}; no action is beaten by more than {loss:.1g}",
    )


def allocations_verdicts(states: list[Any]) -> tuple[Verdict, Verdict]:
    """Whether the policy's allocations tend to WHAM's, with few jobs and with many."""
    few, many = by_mode(states, crowded=False, key="largest"), by_mode(states, crowded=True, key="largest")
    changed = [
        sum(any_ > 0 for any_ in (s["changed"][d] for s in states if s["crowded"]))
        for d in range(len(DISCOUNTS))
    ]
    order = _order(DISCOUNTS, few)
    told = "; ".join(f"α = {a:g}: {gap:.2g}" for a, gap in zip(DISCOUNTS, few, strict=True))
    crowded = sum(s["crowded"] for s in states)
    return (
        Verdict(
            "With fewer jobs than cores the discounted Whittle policy tends to WHAM as α → 0",
            bool(order > 0.9 and few[-1] < CHANGED),
            f"{len(states) - crowded} states on {CORES} cores, largest difference in cores of a job: {told}; "
            f"falls as α to the power {order:.3f}",
        ),
        Verdict(
            "With more jobs than cores it serves whom WHAM serves, with one core each, once α is small",
            bool(many[-1] < CHANGED and changed[-1] == 0),
            "; ".join(
                f"α = {a:g}: {n} of {crowded} states differ" for a, n in zip(DISCOUNTS, changed, strict=True)
            ),
        ),
    )


def simulated_verdict(load: float, found: tuple[Estimate, list[Estimate]]) -> Verdict:
    """Whether the cost at the smallest discount is WHAM's, as far as can be told."""
    wham, apart = found
    shares = [Estimate(*(v / wham.mean for v in (d.mean, d.low, d.high))) for d in apart]
    farthest = max(abs(shares[-1].low), abs(shares[-1].high))
    told = "; ".join(
        f"α = {a:g}: {s.mean:+.3%} ± {s.half_width:.3%}" for a, s in zip(LOADS[load], shares, strict=True)
    )
    near = farthest <= NEGLIGIBLE
    apart_for_sure = min(abs(shares[-1].low), abs(shares[-1].high)) > NEGLIGIBLE and (
        shares[-1].low > 0.0 or shares[-1].high < 0.0
    )
    return Verdict(
        f"At load {load} the cost of the discounted policy is WHAM's within {NEGLIGIBLE:.1%} at α = 0.01",
        True if near else False if apart_for_sure else None,
        f"cost over WHAM's, on the same jobs on {SIMULATED_CORES} cores: {told}",
    )
