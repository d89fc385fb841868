"""Verdicts of e09_rivals: what its numbers bear out."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e09_rivals.cells import (
    SWEEPS,
    TUNED_CORES,
    WHAM,
)
from malleable.paper.experiments.e09_rivals.readings import (
    FALLS,
    POLICIES,
    Rival,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
MARGIN = 0.002
"""Share of V* above which a limit must lie, for sure, to count as not optimal."""


def wham_verdict(wham: Rival, lowest: float) -> Verdict:
    """Whether WHAM's costs tend to the bound."""
    found, points = ev.limit(wham.cores, wham.costs, 64)
    last = wham.ratios(lowest)[-1]
    note = f"{points} points; ratio {last.mean:.5f} ± {last.half_width:.5f} on {wham.cores[-1]} cores"
    return ev.tends_to("WHAM's cost over V* tends to 1", found, lowest, 0.02, note)


def verdict_of(policy: str, rival: Rival, known: Any) -> Verdict:
    """Not optimal: unstable on many cores, or above WHAM by a margin that does not vanish."""
    name, lowest = POLICIES[policy][0], known["bound"]
    statement = f"{name} is not mean field optimal"
    if not rival.stable[-1]:
        good = [n for n, ok in zip(rival.cores, rival.stable, strict=True) if ok]
        least = f"stable up to {max(good)} cores only" if good else "stable on none of the numbers of cores"
        text = f"unstable on {rival.cores[-1]} cores, {least}: its cost grows without bound"
        return Verdict(statement, True if rival.results[-1] is not None else None, text)
    ratio, apart, margin = rival.ratios(lowest)[-1], rival.differences[-1], rival.margin(lowest)
    text = (
        f"ratio {ratio.mean:.4f} ± {ratio.half_width:.4f} on {rival.cores[-1]} cores, there "
        f"{apart.mean / lowest:.2%} ± {apart.half_width / lowest:.2%} of V* above WHAM"
    )
    if policy in known:
        limit = known[policy] / lowest
        sure = apart.low > 0.0 and limit > 1.0 + MARGIN
        text += f"; its limit is {limit:.6f}"
        return Verdict(statement, True if sure else False if limit <= 1.0 + MARGIN else None, text)
    if not isfinite(margin.half_width):
        return Verdict(statement, None, f"{text}; too few points for a limit")
    growth = rival.growth
    text += (
        f", which goes as n to the power {growth.mean:+.2f} ± {growth.half_width:.2f}; extrapolated "
        f"{margin.mean:.2%} ± {margin.half_width:.2%} (99.9 %)"
    )
    if margin.high <= MARGIN:
        return Verdict(statement, False, text)
    sure = apart.low > 0.0 and margin.low > MARGIN and growth.low > FALLS
    return Verdict(statement, sure or None, text)


def tuned_verdicts(values: Values) -> tuple[Verdict, ...]:
    """Whether any setting of a rival's parameters does as well as WHAM."""
    made = []
    for policy, variants in SWEEPS.items():
        found = values.get(f"sweep-{policy}")
        if found is None:
            continue
        apart = {v: read_interval(found["differences"][v]) for v in variants if found["results"][v]["stable"]}
        best = min(apart, key=lambda v: apart[v].mean)
        cost = found["results"][WHAM]["cost"]["mean"]
        text = (
            f"best of {len(variants)} on {TUNED_CORES} cores: {best}, {apart[best].mean / cost:.2%} ± "
            f"{apart[best].half_width / cost:.2%} above WHAM"
        )
        least = min(d.low for d in apart.values())
        holds = True if least > 0.0 else False if min(d.high for d in apart.values()) < 0.0 else None
        made.append(Verdict(f"No setting of {POLICIES[policy][0]} does as well as WHAM", holds, text))
    return tuple(made)
