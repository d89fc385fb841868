"""The price at which a market clears: one search, made for any demand and compiled with it.

It looks for the log price u at which log demand is right, which for most speedups is nearly a straight line:
the secant method, from the price of the last decision; bisection where that does not halve the error (a jump,
a corner). Where demand jumps, it ends with two neighbouring prices on both sides. Where demand does nothing
but jump, `lowest_price` bisects from the start, in half as many steps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from malleable.engine.rule_interface import inlined
from malleable.theory.market import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from collections.abc import Callable

FLATTEST = -1e-3
"""The least slope of a logarithm over the log price that the secant method relies on."""
NEAREST = 1e-6
"""The shortest step of the search for a bracket, as a share of the longest: where demand is flat and nearly
right, the slope says to go no distance at all."""
FASTER = 4.0
"""By which factor the longest step grows."""
LOWEST, HIGHEST = math.log(FREE), math.log(PROHIBITIVE)
"""Logarithms of the prices between which the search stays."""
STEPS = 400


def clearing(
    excess: Callable[[Any, float], float], settled: float = 0.0
) -> Callable[[Any, float, float, float, float, float, float], tuple[float, float, float]]:
    """The search for the price at which `excess(market, price)`, demand less the cores, is 0.

    `market` is a tuple of what the demand function needs. Log prices that lie within `settled` are one price.
    """

    def clear(
        market: Any, cores: float, slack: float, start: float, slope: float, low: float, high: float
    ) -> tuple[float, float, float]:
        """The log prices below and above, twice the same where it clears up to `slack`, and the slope there.

        The market was asked at the last price found. `low` and `high` are −∞ and ∞, or known to be prices at
        which jobs want too much, and not too much; they stay infinite where no price within reach does that.
        """
        u, before, last, reach = start, math.nan, math.inf, 1.0
        for _ in range(STEPS):
            more = excess(market, math.exp(u))
            if abs(more) <= slack:
                return u, u, slope
            f = math.log(min(max(1.0 + more / cores, 1e-300), 1e300))
            if f > 0.0:
                low = u
            else:
                high = u
            slope = secant_slope(slope, u, f, before, last)
            following = next_log_price(u, -f / slope, f, last, low, high, settled, reach)
            if following == u:
                break
            if low == -math.inf or high == math.inf:
                reach *= FASTER
            before, last, u = u, f, following
        return low, high, -1.0

    return clear


def lowest_price(
    fits: Callable[[Any, float], bool],
) -> Callable[[Any, float, float, float, float], tuple[float, float]]:
    """The search for the lowest price at which `fits(market, price)`, as it does at all higher ones."""

    def search(market: Any, guess: float, lowest: float, highest: float, close: float) -> tuple[float, float]:
        """Two prices, at the lower of which it does not fit, no farther apart than by the factor 1 + `close`.

        Both are `highest` where it does not fit there, and `lowest` where it does.
        """
        low, high, factor = guess, guess, 1.5
        down = fits(market, guess)
        again = True
        while again:
            if (down and low <= lowest) or (not down and high >= highest):
                return (low, low) if down else (high, high)
            if down:
                low, high = max(low / factor, lowest), low
                again = fits(market, low)
            else:
                low, high = high, min(high * factor, highest)
                again = not fits(market, high)
            factor *= factor
        while high > low * (1.0 + close):
            middle = math.sqrt(low) * math.sqrt(high)
            if not low < middle < high:
                break
            if fits(market, middle):
                high = middle
            else:
                low = middle
        return low, high

    return search


@inlined
def secant_slope(slope: float, u: float, f: float, before: float, last: float) -> float:
    """The slope between the error f at log price u and the last one, or the slope so far if there is none."""
    if u != before and abs(last) < math.inf:
        return min((f - last) / (u - before), FLATTEST)
    return slope


@inlined
def next_log_price(
    u: float, step: float, f: float, last: float, low: float, high: float, settled: float, reach: float
) -> float:
    """Where to look after log price u, from which the slope points `step` away; u itself where to stop.

    f and `last` are the errors here and before. Within a bracket (low, high) the search stops when that is
    no wider than `settled`. Without one no step is longer than `reach`.
    """
    if low > -math.inf and high < math.inf:
        following = u + step
        if abs(f) > 0.5 * abs(last) or not low < following < high:
            following = 0.5 * (low + high)
        return following if low < following < high and high - low > settled else u
    step = math.copysign(min(max(abs(step), NEAREST * reach), reach), step)
    return min(max(u + step, LOWEST), HIGHEST)
