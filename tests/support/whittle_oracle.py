"""The discounted Whittle policy by other means: the bandits of `theory.whittle`, vectorised.

An oracle for `malleable.policies.rules.whittle_rule`; `allocation(policy, jobs, cores)` answers as
`policy.allocate` does, and shares with it how the cores are made whole.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize

from malleable.contracts import Allocation
from malleable.policies.rules.tolerances import DUST
from malleable.policies.whittle import Bandits, whole_widths
from malleable.theory.market import PROHIBITIVE
from malleable.theory.whittle import whittle_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model.jobs import Jobs
    from malleable.policies.whittle import Whittle

CLEARED = 1e-13
"""Relative error at which demand counts as equal to the cores."""
LOWEST = 1e-300
"""The price at which the search gives up: cores are as good as free."""


def allocation(policy: Whittle, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
    """Cores and price by the vectorised procedure."""
    cores = float(np.floor(cores)) if integer else float(cores)
    index = Bandits.of(jobs, np.arange(len(jobs)), policy.discount, cores).log_index
    # Each served job takes at least one core, so no job behind the first one left out can matter.
    queue = jobs.by(index)[: int(cores) + 1]
    bandits = Bandits.of(jobs, queue, policy.discount, cores)
    prices = np.exp(np.minimum(index[queue], np.log(PROHIBITIVE)))
    served = _served(bandits, prices, cores)
    widths, price = None, 0.0
    if served < len(queue):
        price = float(prices[served])
        widths = _part_for_next(policy.discount, jobs, queue[served], bandits, price, served, cores)
    if widths is None:
        widths, widening_price = _widened(bandits, prices, served, cores)
        price = max(price, widening_price)
    out = np.zeros(len(jobs))
    out[queue] = whole_widths(bandits, widths, cores) if integer else widths
    return Allocation(out, price)


def _part_for_next(
    discount: float, jobs: Jobs, job: int, bandits: Bandits, price: float, served: int, cores: float
) -> FloatArray | None:
    """Widths that leave the first job left out a part of its block, if that is one core or more."""
    spare = cores - float(bandits.width(price)[:served].sum())
    if spare < 1.0:
        return None
    speedup = jobs.speedups[jobs.speedup_index[job]]
    price = whittle_index(speedup, jobs.remaining[job], jobs.weight[job], discount, limit=spare)
    widths = bandits.width(price)
    spare = cores - float(widths[:served].sum())
    widths[served:] = 0.0
    widths[served] = spare
    return widths if spare >= 1.0 else None


def _served(bandits: Bandits, prices: FloatArray, cores: float) -> int:
    """The longest prefix whose jobs, at the index of the last of them, together want at most `cores`.

    The total rises with every job, so bisection finds it; one job alone always fits.
    """
    few, many = 1, len(prices) + 1
    trial = many - 1
    while many - few > 1:
        if float(bandits.width(float(prices[trial - 1]))[:trial].sum()) <= cores + DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    return few


def _widened(bandits: Bandits, prices: FloatArray, served: int, cores: float) -> tuple[FloatArray, float]:
    """Widths that use all cores the served jobs can use, and the price at which they want them."""

    def quantity(price: float) -> FloatArray:
        return bandits.width(price)[:served]

    widths = np.zeros(len(prices))
    high, price = quantity(0.0), 0.0
    low = high
    if float(high.sum()) > cores:
        # The cores suffice at the index of the last job served, and in overload even at that of the next.
        price = float(prices[min(served, len(prices) - 1)])
        low = quantity(price)
        if float(low.sum()) > cores + DUST:
            price = float(prices[served - 1])
            low = quantity(price)
        if float(low.sum()) < cores - DUST or served == len(prices):
            low, high, price = _cleared(quantity, low, high, price, cores)
    # Between two neighbouring prices lie only jumps; who jumps first is decided by the order of the queue.
    gap = np.maximum(high - low, 0.0)
    before = np.cumsum(gap) - gap
    widths[:served] = low + np.clip(cores - float(low.sum()) - before, 0.0, gap)
    widths[np.argmax(widths)] -= max(0.0, float(widths.sum()) - cores)
    return widths, price


def _cleared(
    quantity: Callable[[float], FloatArray], low: FloatArray, high: FloatArray, price: float, cores: float
) -> tuple[FloatArray, FloatArray, float]:
    """The quantities on both sides of the clearing price, which is at most `price`, and the price itself."""

    @functools.cache
    def excess(logarithm: float) -> float:
        nonlocal low, high
        wanted = quantity(math.exp(logarithm))
        ratio = math.log(float(wanted.sum()) / cores)
        low, high = (low, wanted) if ratio > 0.0 else (wanted, high)
        # Aiming a hair above n finds the lower end of a range of prices at which demand is n.
        return ratio - CLEARED if abs(ratio - CLEARED) > 0.5 * CLEARED else 0.0

    top, step = math.log(max(price, LOWEST)), 2.0
    while top - step > math.log(LOWEST) and excess(top - step) < 0.0:
        top, step = top - step, 2.0 * step
    bottom = max(top - step, math.log(LOWEST))
    if excess(bottom) >= 0.0 > excess(top):
        # Where demand jumps there is no root; the two quantities then belong to neighbouring prices.
        bottom = optimize.brentq(excess, bottom, top, xtol=CLEARED, maxiter=200, disp=False)
    return low, high, math.exp(bottom)
