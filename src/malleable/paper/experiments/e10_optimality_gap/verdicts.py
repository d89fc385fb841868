"""Verdicts of e10_optimality_gap: what its numbers bear out."""

from __future__ import annotations

from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Verdict
from malleable.paper.experiments.e10_optimality_gap.cells import DRAWN, WORKLOADS
from malleable.paper.experiments.e10_optimality_gap.readings import (
    EXACT,
    POLICIES,
    TRUNCATED,
    Point,
    among,
    excess,
    runs,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.paper.contracts import Values
CLOSE = 0.01
"""A gap that counts as small."""


def sandwich(points: list[Point]) -> Verdict:
    """V* below the optimum, the optimum below every policy."""
    below = [p.value["real"]["low"] / p.value["bound"] for p in points]
    above = [gap for p in points for policy in POLICIES if not isnan(gap := p.gap(policy))]
    return Verdict(
        "The optimum lies between the lower bound V* and the cost of every policy",
        bool(points) and min(below) >= 1.0 - EXACT and min(above) >= -EXACT,
        f"{len(points)} settings: optimum/V* from {min(below):.4g} to {max(below):.4g}, "
        f"{len(above)} policy costs at least {min(above):.2e} above the optimum",
    )


def closed(points: list[Point]) -> Verdict:
    """Whether the optima are what they claim to be."""
    kinds = [p.value[kind] for p in points for kind in ("real", "whole") if kind in p.value]
    width = max(k["high"] / k["low"] - 1.0 for k in kinds)
    lost = max(k["lost"] for k in kinds)
    return Verdict(
        f"Every optimum is known to eight digits, on a chain that loses at most {TRUNCATED:.2%} of arrivals",
        width <= 1e-8 and lost <= TRUNCATED,
        f"widest bracket {width:.1e}, most arrivals lost {lost:.1e}",
    )


def _worst(points: Iterable[Point]) -> Point:
    return max(points, key=lambda p: p.gap("wham"))


def small_on_the_paper(points: list[Point]) -> Verdict:
    """Whether WHAM's gap is small on the paper's classes."""
    worst = _worst(p for p in points if p.name != "sizes")
    return Verdict(
        f"On the paper's classes, with exponential sizes, WHAM is within {CLOSE:.0%} of the optimum",
        worst.gap("wham") <= CLOSE,
        f"largest gap {worst.gap('wham'):.3%} ({worst.place}); with short and long jobs "
        f"{(far := _worst(among(points, 'sizes'))).gap('wham'):.2%} ({far.place})",
    )


def gap_falls(points: list[Point], name: str) -> Verdict:
    """After its peak the gap must fall to the last n; where it still rises there is nothing to decide."""
    decided, texts = [], []
    for load in DRAWN:
        chosen = among(points, name, load)
        if len(chosen) < 3:
            continue
        gap = [p.gap("wham") for p in chosen]
        peak = gap.index(max(gap))
        fell = all(b <= a + EXACT for a, b in pairwise(gap[peak:]))
        highest, last = chosen[peak].cores, chosen[-1].cores
        if highest < last:
            decided.append(fell)
            texts.append(f"ρ = {load:g}: peak {gap[peak]:.3%} at n = {highest}, {gap[-1]:.3%} at n = {last}")
        else:
            texts.append(f"ρ = {load:g}: still rising at n = {last}, {gap[-1]:.3%}")
    statement = f"WHAM's gap to the optimum falls with n once it has peaked: {WORKLOADS[name][0]}"
    return Verdict(statement, all(decided) if decided else None, "; ".join(texts) or "too few points")


def best_rule(points: list[Point]) -> Verdict:
    """Whether WHAM is the best of the simple rules."""
    rivals = ("equi", "greedy", "greedy:weight=cmu")
    beaten = [(p.gap(r) - p.gap("wham"), p, r) for p in points for r in rivals if not isnan(p.gap(r))]
    lost = [one for one in beaten if one[0] < -EXACT]
    text = f"beaten in {len({id(p) for _, p, _ in lost})} of {len(points)} settings"
    if lost:
        by, where, rival = min(lost, key=lambda one: one[0])
        text += f", most by {POLICIES[rival][0]} ({where.place}): {where.gap(rival):.2%} against "
        text += f"{where.gap('wham'):.2%} above the optimum, {-by:.2%} of it apart"
    return Verdict("No other class rule costs less than WHAM, at any n and load", not lost, text)


def favours_short(value: Any) -> Verdict:
    """What the optimum does where WHAM, while every job can have a core, does not look at sizes."""
    statement = (
        "With short and long jobs present the optimum never gives the short ones fewer cores than WHAM"
    )
    cores, more, both = value["cores"], excess(value), range(1, len(value["wham"]))
    few = [(a, b) for b in both for a in both if a + b <= cores]
    waits = sum(value["optimum"][b][a] > cores - 1e-6 for a, b in few)
    least, most = (end(more[b][a] for b in both for a in both) for end in (min, max))
    text = (
        f"between {least:.2f} and {most:.2f} cores more; in {waits} of the {len(few)} states with cores for "
    )
    return Verdict(statement, least >= -1e-6, text + "all, long jobs get none")


def sizes_matter(effort: Effort, values: Values, points: list[Point]) -> Verdict:
    """Simulated WHAM against the optimum that does not know sizes."""
    statement = "Knowing sizes in overload, the real WHAM can cost less than the best size-blind policy"
    shares = []
    for point, policy, result in runs(effort, values, points):
        if policy == "wham":
            cost = ev.widened(read_interval(result["cost"]), result, ev.SURE)
            best = point.value["real"]["low"]
            shares.append((cost.high / best - 1.0, cost.mean / best - 1.0, point))
    if not shares:
        return Verdict(statement, None, "WHAM was not simulated")
    high, mean, point = min(shares, key=lambda one: one[0])
    text = f"{point.place}: simulated WHAM {mean:+.2%} against the optimum, at most {high:+.2%} (99.9 %)"
    return Verdict(statement, True if high < 0.0 else None, text)


def agrees(effort: Effort, values: Values, points: list[Point]) -> Verdict:
    """EQUI needs neither sizes nor the order of arrival: its simulation and its chain are the same system."""
    return ev.agreement(
        "Simulated EQUI costs what the chain says",
        [
            ev.Case(
                point.place,
                read_interval(result["cost"]),
                result,
                point.value["real"]["policies"][policy]["cost"],
            )
            for point, policy, result in runs(effort, values, points)
            if policy == "equi"
        ],
    )
