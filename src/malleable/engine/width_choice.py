"""One of several widths for each job, within the cores: the multiple-choice knapsack.

Minimise Σ_j costs[j, v_j] over choices v_j with Σ widths[j, v_j] ≤ n. A job has `counts[j]` choices; widths
are whole numbers that rise, and no cores at all is one of them (width 0) where a job may wait. Exact by
dynamic programming over cores where the table fits, else by a price per core; what that leaves unspent is
less than one job's step. Of equally good divisions it is the one with the widest choice for the first job,
then for the second, and so on, so that no core stays idle for nothing. A loss that is rounding is none: two
jobs that are each proposed 1.5 cores must not change places by their last digits. Plain Python that the
engine compiles as it stands.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray

CELLS = 2.0**22
"""Jobs times cores up to which the best choice is found by dynamic programming."""
ROUNDING = 1e-12
"""Relative gain that is none."""
PRICES = 60
"""Bisection steps for the price beyond that."""
CHEAP, DEAR = 1e-18, 1e18
"""Prices between which the search begins."""


def pack(n: int, widths: FloatArray, costs: FloatArray, counts: IntArray, chosen: IntArray) -> None:
    """Write the choice of each job into `chosen`; the narrowest widths must fit together."""
    if widths.shape[0] * (n + 1.0) <= CELLS:
        pack_exactly(n, widths, costs, counts, chosen)
    else:
        pack_by_price(n, widths, costs, counts, chosen)


def pack_exactly(n: int, widths: FloatArray, costs: FloatArray, counts: IntArray, chosen: IntArray) -> None:
    """Dynamic programming over cores, job by job."""
    size = widths.shape[0]
    best, after = np.zeros(n + 1), np.empty(n + 1)
    choice = np.empty((size, n + 1), np.int32)
    for j in range(size - 1, -1, -1):  # the first job comes last, and so chooses first
        k, cost = int(widths[j, 0]), costs[j, 0]
        for r in range(n + 1):
            after[r], choice[j, r] = best[r - k] + cost if r >= k else math.inf, 0
        for v in range(1, counts[j]):
            k, cost = int(widths[j, v]), costs[j, v]
            for r in range(k, n + 1):
                value = best[r - k] + cost
                if value - after[r] <= ROUNDING * abs(value):
                    after[r], choice[j, r] = value, v
        best, after = after, best
    r = n
    for j in range(size):
        chosen[j] = choice[j, r]
        r -= int(widths[j, chosen[j]])


def pack_by_price(n: int, widths: FloatArray, costs: FloatArray, counts: IntArray, chosen: IntArray) -> None:
    """The lowest price per core at which the cores suffice, then steps to the next choice where they fit."""
    size = widths.shape[0]
    low, high = CHEAP, DEAR
    for _ in range(2 * PRICES):
        price, used = math.sqrt(low * high), 0.0
        for j in range(size):
            used += widths[j, liked(widths, costs, counts, j, price)]
        if used > n:
            low = price
        else:
            high = price
    spare = float(n)
    for j in range(size):
        chosen[j] = liked(widths, costs, counts, j, high)
        spare -= widths[j, chosen[j]]
    for j in range(size):
        v = liked(widths, costs, counts, j, low)
        if chosen[j] < v and widths[j, v] <= widths[j, chosen[j]] + spare:
            spare -= widths[j, v] - widths[j, chosen[j]]
            chosen[j] = v


def liked(widths: FloatArray, costs: FloatArray, counts: IntArray, j: int, price: float) -> int:
    """The choice of job j that minimises cost plus rent, the narrowest of equals."""
    found, least = 0, math.inf
    for v in range(counts[j]):
        value = costs[j, v] + price * widths[j, v]
        if value < least:
            found, least = v, value
    return found
