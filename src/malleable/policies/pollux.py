"""Pollux with one resource (Qiao et al. 2021): fair goodput.

Every period, whole widths k_j with Σk_j ≤ n maximise the power mean

    ( (1/J) Σ (S_j + ε)^p )^{1/p},  ε = 1e-3, p = −1,     S_j = s_j(k_j)/s_j(⌈n/J⌉)

where S_j is multiplied by the factor of `policies.base.periodic_restarts` if the job would be resized.
For p < 0 this minimises Σ f_j(k_j) with f_j = (S_j + ε)^p, convex and falling in k for a concave s, but
for the one better point at the width held now. Exact: dynamic programming over cores, best(r) after j jobs,
in O(n log n) a job where s is concave (the best split moves one way with r) and O(n²) where not. Ties
favour narrow widths and earlier arrivals. Beyond 2²² jobs × cores a price per core takes the place of the
table; what it leaves unspent is less than one job's step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Lt

from malleable.policies.base import CLASS, DUST, HELD, encode, peak, speed, table_of
from malleable.policies.base.periodic_restarts import CELLS, PRICES, Restarting, change_factor

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray

EPSILON = 1e-3
OWN_FAIRNESS, OWN_CLASSES = 0, 1
"""Where the rule's own numbers stand behind the encoded speedups: then δ of each class, then whether it is
convex."""


def pollux(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The fairest goodput: exactly where the table fits, by a price where not."""
    size, n = jobs.shape[0], math.floor(cores + DUST)
    out[:] = 0.0
    if size == 0:
        return
    if size * (n + 1.0) <= CELLS:
        fill_exactly(jobs, n, table, out)
    else:
        fill_by_price(jobs, n, table, out)


def loss(table: FloatArray, i: int, k: float, scale: float) -> float:
    """f(k) of a job of class i whose speed counts `scale` times."""
    return float((scale * speed(table, i, k) + EPSILON) ** table[int(table[1]) + OWN_FAIRNESS])


def scale_of(jobs: FloatArray, j: int, n: int, table: FloatArray) -> float:
    """1/s(⌈n/J⌉): what makes a speed relative to the fair share."""
    size = jobs.shape[0]
    return 1.0 / speed(table, int(jobs[j, CLASS]), float((n + size - 1) // size))


def factor_of(jobs: FloatArray, j: int, table: FloatArray) -> float:
    """What a resize of job j costs."""
    return change_factor(jobs, j, table, int(table[1]) + OWN_CLASSES)


def kept_width(jobs: FloatArray, j: int, n: int) -> int:
    """The width that job j may keep, or −1."""
    held = jobs[j, HELD]
    if held < 1.0 or held > n or held != math.floor(held):
        return -1
    return int(held)


def widest(table: FloatArray, i: int, n: int) -> int:
    """The whole width up to n beyond which class i gains nothing."""
    top = peak(table, i)
    if top >= n:
        return n
    below = max(math.floor(top), 1)
    return int(below + 1 if speed(table, i, below + 1.0) > speed(table, i, float(below)) else below)


def fill_exactly(jobs: FloatArray, n: int, table: FloatArray, out: FloatArray) -> None:
    """Dynamic programming over cores, job by job."""
    size = jobs.shape[0]
    best, after, costs = np.zeros(n + 1), np.empty(n + 1), np.empty(n + 1)
    choice, split = np.empty((size, n + 1), np.int32), np.empty(n + 1, np.int64)
    own = int(table[1])
    for j in range(size):
        i, scale = int(jobs[j, CLASS]), scale_of(jobs, j, n, table)
        changed, top = scale * factor_of(jobs, j, table), widest(table, i, n)
        convex = table[own + OWN_CLASSES + int(table[0]) + i] == 1.0
        for k in range(n + 1):
            costs[k] = costs[top] if convex and k > top else loss(table, i, float(k), changed)
        if convex:
            split_convex(best, costs, split)
        else:
            split_any(best, costs, split)
        kept = kept_width(jobs, j, n)
        keeping = loss(table, i, float(kept), scale) if kept > 0 else 0.0
        for r in range(n + 1):
            after[r] = best[split[r]] + costs[r - split[r]]
            choice[j, r] = r - split[r]
            if 0 < kept <= r and best[r - kept] + keeping <= after[r]:
                after[r] = best[r - kept] + keeping
                choice[j, r] = kept
        best, after = after, best
    r = n
    for j in range(size - 1, -1, -1):
        out[j] = float(choice[j, r])
        r -= choice[j, r]


def split_any(best: FloatArray, costs: FloatArray, split: IntArray) -> None:
    """For each r the i ≤ r, as large as possible, that minimises best(i) + costs(r − i)."""
    for r in range(best.shape[0]):
        split[r] = cheapest(best, costs, r, 0, r)


def split_convex(best: FloatArray, costs: FloatArray, split: IntArray) -> None:
    """The same for convex costs: the split rises with r, so each row is searched between two known ones."""
    rows = best.shape[0]
    stride = 1
    while 2 * stride <= rows:
        stride *= 2
    while stride >= 1:
        for r in range(stride - 1, rows, 2 * stride):
            low = split[r - stride] if r >= stride else 0
            high = min(r, split[r + stride]) if r + stride < rows else r
            split[r] = cheapest(best, costs, r, low, high)
        stride //= 2


def cheapest(best: FloatArray, costs: FloatArray, r: int, low: int, high: int) -> int:
    """The last i in [low, high] with the least best(i) + costs(r − i)."""
    found, least = high, best[high] + costs[r - high]
    for i in range(high - 1, low - 1, -1):
        value = best[i] + costs[r - i]
        if value < least:
            found, least = i, value
    return found


def fill_by_price(jobs: FloatArray, n: int, table: FloatArray, out: FloatArray) -> None:
    """The lowest price per core at which the cores suffice, then steps to the next choice where they fit."""
    size = jobs.shape[0]
    low, high = 1e-18, 2.0 * loss(table, 0, 0.0, 1.0)
    for _ in range(PRICES):
        price, used = math.sqrt(low * high), 0.0
        for j in range(size):
            used += wanted(jobs, j, n, table, price)
        if used > n:
            low = price
        else:
            high = price
    spare = float(n)
    for j in range(size):
        out[j] = wanted(jobs, j, n, table, high)
        spare -= out[j]
    for j in range(size):
        k = wanted(jobs, j, n, table, low)
        if out[j] < k <= out[j] + spare:
            spare -= k - out[j]
            out[j] = k


def wanted(jobs: FloatArray, j: int, n: int, table: FloatArray, price: float) -> float:
    """The width that minimises f_j(k) + price·k."""
    i, scale = int(jobs[j, CLASS]), scale_of(jobs, j, n, table)
    changed = scale * factor_of(jobs, j, table)
    low, high = 0, widest(table, i, n)
    while low < high:
        middle = (low + high) // 2
        if loss(table, i, float(middle), changed) - loss(table, i, middle + 1.0, changed) > price:
            low = middle + 1
        else:
            high = middle
    kept = kept_width(jobs, j, n)
    if kept > 0 and loss(table, i, float(kept), scale) + price * kept <= (
        loss(table, i, float(low), changed) + price * low
    ):
        return float(kept)
    return float(low)


@dataclass(frozen=True)
class Pollux(Restarting):
    """Pollux: whole cores every `period` for the fairest goodput; it reckons with `restart` for a resize."""

    needs = "speedups, work done"

    whole_cores: ClassVar[bool] = True
    fairness: Annotated[float, Ge(-10), Lt(0)] = -1.0

    rule = staticmethod(pollux)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        # A super-linear start is not concave at one core, whatever comes after.
        convex = [float(s.concave and s(2.0) <= 2.0) for s in workload.speedups]
        return table_of(encode(workload.speedups), [self.fairness, *self.restarts(workload, cores), *convex])
