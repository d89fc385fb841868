"""One step of the search for the log price at which a falling log demand is right.

Newton's method or the secant method, nearly straight for most speedups; bisection where that does not halve
the error (a jump, a corner). Plain functions that the engine compiles: every market has a loop of its own
around them, because compiled rules cannot hand a demand function on.
"""

from __future__ import annotations

import math

from malleable.engine.rule_interface import inlined

FLATTEST = -1e-3
"""The least slope of a logarithm over the log price that the secant method relies on."""


@inlined
def secant_slope(slope: float, u: float, f: float, before: float, last: float) -> float:
    """The slope between the error f at log price u and the last one, or the slope so far if there is none."""
    if u != before and abs(last) < math.inf:
        return min((f - last) / (u - before), FLATTEST)
    return slope


@inlined
def next_log_price(
    u: float,
    step: float,
    f: float,
    last: float,
    low: float,
    high: float,
    settled: float,
    shortest: float,
    longest: float,
    lowest: float,
    highest: float,
) -> float:
    """Where to look after log price u, from which the slope points `step` away; u itself where to stop.

    f and `last` are the errors here and before. Within a bracket (low, high) the search stops when that is
    no wider than `settled`. Without one the step is at least `shortest`, because the slope says to go no
    distance at all where demand is flat and nearly right, at most `longest`, and it ends between `lowest`
    and `highest`.
    """
    if low > -math.inf and high < math.inf:
        following = u + step
        if abs(f) > 0.5 * abs(last) or not low < following < high:
            following = 0.5 * (low + high)
        return following if low < following < high and high - low > settled else u
    step = math.copysign(min(max(abs(step), shortest), longest), step)
    return min(max(u + step, lowest), highest)
