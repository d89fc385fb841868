"""Verdicts of e05_heavy_load: what its numbers bear out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Verdict
from malleable.paper.experiments.e05_heavy_load.cells import (
    POLICIES,
    WIDTHS,
    points_of,
)
from malleable.paper.experiments.e05_heavy_load.readings import (
    SHOWN,
    limits_of,
    shares_of,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values


def below_bound(kind: str, statement: str, effort: Effort, values: Values) -> Verdict:
    """No share may exceed the bound by more than its interval."""
    limits = limits_of(values)
    rows = [
        (share, limits[load, k][kind], f"{POLICIES[policy][0]}, n = {n}, ρ = {load:.4g}, k0 = {k:g}")
        for policy in POLICIES
        for n, load in points_of(effort)
        for k, share in zip(WIDTHS, shares_of(policy, n, load, values), strict=True)
    ]
    told = [row for row in rows if row[1] < 1.0 - 1e-9] or rows
    tight, most, name = max(told, key=lambda row: row[0].mean / row[1])
    above = sum(share.low > limit for share, limit, _ in rows)
    text = f"{len(rows)} shares, {above} above; nearest {tight.mean:.4f} of at most {most:.4f} ({name})"
    return Verdict(statement, above == 0, text)


def vanishing(statement: str, policy: str, points: list[tuple[int, float]], values: Values) -> Verdict:
    """The share must fall from the first point to the last and rise clearly at no step.

    That it ends at zero is the bound's part: a share below a bound that vanishes vanishes.
    """
    found = [shares_of(policy, n, load, values)[SHOWN] for n, load in points]
    bound = [limits_of(values)[load, WIDTHS[SHOWN]]["paper"] for _, load in points]
    told = ", ".join(f"{s.mean:.2%} at ρ = {load:.4g}" for s, (_, load) in zip(found, points, strict=True))
    rises = any(later.low > earlier.high for earlier, later in pairwise(found))
    above = any(share.low > most for share, most in zip(found, bound, strict=True))
    falls = found[-1].high < found[0].low
    text = f"{told}; bound {bound[0]:.1%} falling to {bound[-1]:.1%}"
    return Verdict(statement, False if rises or above else falls or None, text)
