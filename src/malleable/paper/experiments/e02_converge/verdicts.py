"""Verdicts of e02_converge: what its numbers bear out."""

from __future__ import annotations

from math import inf, isfinite, log
from typing import TYPE_CHECKING

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.curves import Curve
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.paper.experiments.shared.curves import Curve
    from malleable.statistics.intervals import Estimate
SETTLED = 512
"""From this many cores on, a + b/n + c/n² is fitted: the next term is below 0.01 % there."""
PRECISE = 0.02
"""Relative half-width that a limit must be known to before it counts as confirmed."""


def wham_converges(wham: Curve, lowest: float) -> Verdict:
    """Whether WHAM's costs tend to the bound."""
    found, points = ev.limit(wham.cores, wham.simulated, SETTLED)
    last = wham.gaps(lowest)[-1]
    note = f"{points} points; gap {last.mean:.3%} ± {last.half_width:.2%} on {wham.cores[-1]} cores"
    return ev.tends_to("WHAM's cost converges to V*", found, lowest, PRECISE, note)


def fixed_converges(beta: float, values: Values, lowest: float) -> Verdict:
    """Both parts of the gap must vanish: narrower slots, followed to 2^50 cores, and waiting.

    The first is a power of n in the end, with exponent β − 1; a gap that levels off has exponent 0.
    """
    rows = [row for row in values[f"exact-{beta}"] if row["status"] == "stable"]
    narrow = [(row["cores"], row["service_cost"] / lowest - 1.0) for row in rows]
    (before, wider), (last, least) = narrow[-2:]
    exponent = log(least / wider) / log(last / before) if min(least, wider) > 0.0 else 0.0
    waits = [(row["cores"], row["waiting_cost"] / lowest) for row in rows if row.get("waiting_cost")]
    slope, _ = ev.power([n for n, _ in waits], [w for _, w in waits])
    text = (
        f"gap from narrower slots {narrow[0][1]:.1%} on {narrow[0][0]} cores, {least:.2%} on {last:.2g}, "
        f"where it falls as n to the power {exponent:.3f}; from waiting {waits[0][1]:.2%} on {waits[0][0]}, "
        f"{waits[-1][1]:.2g} on {waits[-1][0]}, power {slope.mean:.1f} ± {slope.half_width:.1f}"
    )
    powers = abs(exponent / (beta - 1.0) - 1.0) < 0.1
    holds = None if slope.half_width == inf else powers and slope.high < 0.0
    return Verdict(f"FW-CAM's cost converges to V* with β = {beta}", holds, text)


def converges_faster(wham: Curve, others: list[Curve], lowest: float, rates: dict[str, Estimate]) -> Verdict:
    """Whether WHAM's gap has the steeper slope and is the smaller one wherever both are known."""
    pairs = [
        (mine, theirs)
        for curve in others
        for mine, theirs in zip(wham.gaps(lowest), curve.gaps(lowest), strict=True)
        if isfinite(theirs.half_width)
    ]
    ours, slopes = rates[wham.name], [rates[curve.name] for curve in others]
    nearer = sum(mine.high < theirs.low for mine, theirs in pairs)
    told = ", ".join(f"{name} {slope.mean:.2f} ± {slope.half_width:.2f}" for name, slope in rates.items())
    text = f"gap falls as n to the power {told}; WHAM nearer to V* at {nearer} of {len(pairs)} points"
    refuted = any(mine.low > theirs.high for mine, theirs in pairs) or any(ours.low > s.high for s in slopes)
    shown = nearer == len(pairs) and all(ours.high < slope.low for slope in slopes)
    return Verdict("WHAM converges faster than FW-CAM", False if refuted else shown or None, text)


def stays_above(curves: list[Curve], lowest: float) -> Verdict:
    """No simulated cost may lie below the bound by more than its interval."""
    gaps = [gap for curve in curves for gap in curve.gaps(lowest) if isfinite(gap.half_width)]
    least = min(gaps, key=lambda gap: gap.high)
    text = f"{len(gaps)} points, lowest gap {least.mean:.3%} ({least.low:.3%} to {least.high:.3%})"
    return Verdict("No policy costs less than V*", bool(least.high >= 0.0), text)
