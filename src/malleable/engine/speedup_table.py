"""All speedups of a workload in one flat array, and plain functions that read it.

Rules and kernels are compiled and know no objects, so every class's speedup becomes a row of numbers:

    encoded[0]                number of classes m
    encoded[1]                where the encoding ends; what a rule's table holds beyond is the rule's own
    encoded[2 + 8·i : …]      code, two parameters, peak, most efficient width, and for tables:
                              where its data start, number of points, number of pricing vertices

The data of a table are its corners (k, s) and the pricing hull of `malleable.numerics.hull` (widths, price
and slope of each edge). The functions below are plain Python that numba compiles as it stands; they agree
with the classes to rounding, divide by nothing that may be 0, and allocate nothing.

A speedup without formulas (`custom`, or a family from elsewhere) is tabulated: corners close enough for a
relative error of s below 1e-6 (`TOLERANCE`) up to its limit, flat beyond. What it demands is then a corner.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.numerics.hull import Hull, pricing_hull
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.linear_power import LinearPower
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from malleable.speedups.table import Table
from malleable.speedups.usl import Usl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup

POWER, AMDAHL, USL, ROOFTOP, LINEAR_POWER, TABLE = range(6)
PREAMBLE, ROW = 2, 8
PEAK, LEAST, START, POINTS, VERTICES = 3, 4, 5, 6, 7
"""Columns of a row, after its code and two parameters."""

TOLERANCE = 5e-7
"""Relative distance of a tabulated speedup from its function half-way between corners."""
WIDEST = 2.0**20
"""How far a speedup without a limit of its own is tabulated."""
ROUNDS, NEWTON_STEPS = 24, 200
LARGE_LOGARITHM = 709.7
"""Of the largest float, nearly."""


def encode(speedups: Sequence[Speedup], widest: float = WIDEST) -> FloatArray:
    """The flat description of all speedups; `widest` limits those that must be tabulated."""
    rows = np.zeros((len(speedups), ROW))
    data: list[FloatArray] = []
    end = PREAMBLE + rows.size
    for row, speedup in zip(rows, speedups, strict=True):
        row[:5] = *_parameters(speedup), float(speedup.peak), float(speedup.most_efficient)
        if row[0] == TABLE:
            (k, s), hull = _corners(speedup, widest)
            row[PEAK], row[LEAST] = hull.widths[-1], hull.widths[0]
            row[START], row[POINTS], row[VERTICES] = end, len(k), len(hull.widths)
            slopes = np.diff(hull.speeds) / np.diff(hull.widths)
            data += [k, s, hull.widths, np.minimum.accumulate(hull.prices), np.minimum.accumulate(slopes)]
            end += 2 * len(k) + 3 * len(hull.widths) - 2
    return np.concatenate([[float(len(speedups)), float(end)], rows.ravel(), *data])


def _parameters(speedup: Any) -> tuple[float, float, float]:
    """The code and the parameters; a subclass may have changed the formulas, so only the families count."""
    if type(speedup) is Power:
        return POWER, speedup.exponent, 0.0
    if type(speedup) is Amdahl:
        return AMDAHL, speedup.sequential, 0.0
    if type(speedup) is Usl:
        return USL, speedup.contention, speedup.coherency
    if type(speedup) is Rooftop:
        return ROOFTOP, speedup.cores, 0.0
    if type(speedup) is LinearPower:
        return LINEAR_POWER, speedup.cores, speedup.exponent
    return TABLE, 0.0, 0.0


def _corners(speedup: Any, widest: float) -> tuple[tuple[FloatArray, FloatArray], Hull]:
    if type(speedup) is Table:
        return speedup.points, speedup.pricing
    k = tabulated_widths(speedup, min(widest, float(getattr(speedup, "limit", widest))))
    s = np.asarray(speedup(k), dtype=float)
    return (k, s), pricing_hull(k, s)


def tabulated_widths(speedup: Speedup, limit: float) -> FloatArray:
    """Widths up to `limit`, halved wherever a straight line misses s by more than `TOLERANCE`."""
    limit = max(limit, 1.0)
    special = [float(speedup.peak), float(speedup.most_efficient), limit]
    k = np.concatenate([np.geomspace(1.0, limit, 1025), np.arange(1.0, min(limit, 128.0) + 1.0), special])
    k = np.unique(k[k <= limit])
    s = np.asarray(speedup(k), dtype=float)
    for _ in range(ROUNDS):
        middle = 0.5 * (k[1:] + k[:-1])
        between = np.asarray(speedup(middle), dtype=float)
        off = np.abs(0.5 * (s[1:] + s[:-1]) - between) > TOLERANCE * np.abs(between)
        if not off.any():
            break
        order = np.argsort(np.concatenate([k, middle[off]]), kind="stable")
        k, s = np.concatenate([k, middle[off]])[order], np.concatenate([s, between[off]])[order]
    return k


def peak(encoded: FloatArray, i: int) -> float:
    """The smallest width of the highest speed of class i; may be infinite."""
    return float(encoded[PREAMBLE + ROW * i + PEAK])


def most_efficient(encoded: FloatArray, i: int) -> float:
    """The largest width of class i with the highest s(k)/k."""
    return float(encoded[PREAMBLE + ROW * i + LEAST])


def speed(encoded: FloatArray, i: int, k: float) -> float:  # noqa: PLR0911 - one a family
    """s_i(k) for any k ≥ 0."""
    if k < 1.0:
        return k
    row = PREAMBLE + ROW * i
    code, a, b = int(encoded[row]), float(encoded[row + 1]), float(encoded[row + 2])
    if code == POWER:
        # A square root takes a fifth of the time of a power, and ½ is what people write.
        return math.sqrt(k) if a == 0.5 else float(k**a)
    if code == AMDAHL:
        return 1.0 / (a + (1.0 - a) / k)
    if code == USL:
        return k / (1.0 + a * (k - 1.0) + b * k * (k - 1.0))
    if code == ROOFTOP:
        return min(k, a)
    if code == LINEAR_POWER:
        return k if k <= a else float(a * (k / a) ** b)
    return _table_speed(encoded, row, k)


def shape(encoded: FloatArray, i: int, z: float) -> tuple[float, float, float]:
    """s, its elasticity e = k·s'/s, and de/dz at k = e^z, at or above the most efficient width.

    For all but tables. The search for a discounted Whittle width is in log k. With `speed` and a formula for
    e at k instead, that rule takes 1.27 to 1.39 times as long (a power in place of an exponential), and gives
    the same widths up to 2e-15 of the cores.
    """
    row = PREAMBLE + ROW * i
    code, a, b = int(encoded[row]), float(encoded[row + 1]), float(encoded[row + 2])
    if code == POWER:
        return math.exp(a * z), a, 0.0
    if code == LINEAR_POWER:
        return math.exp(b * z) * a ** (1.0 - b), b, 0.0
    k = math.exp(z)
    if code == AMDAHL:
        d = a * k + (1.0 - a)
        e = (1.0 - a) / d
        return k / d, e, -e * (1.0 - e)
    if code == USL:
        d = 1.0 + a * (k - 1.0) + b * k * (k - 1.0)
        rise = 1.0 - a - b * k * k
        return k / d, rise / d, -k * (2.0 * b * k * d + rise * (a - b + 2.0 * b * k)) / (d * d)
    return min(k, a), 0.0, 0.0


def demand(encoded: FloatArray, i: int, price: float, weight: float) -> float:  # noqa: PLR0911 - one a family
    """argmin over k ≥ 1 of (weight + price·k)/s_i(k): the width worth buying at a price per core."""
    row = PREAMBLE + ROW * i
    if price <= 0.0:
        return float(encoded[row + PEAK])
    code, a, b = int(encoded[row]), float(encoded[row + 1]), float(encoded[row + 2])
    if code == POWER:
        return max(1.0, weight * (a / (1.0 - a)) / price)
    if code == AMDAHL:
        return max(1.0, math.sqrt(weight * (1.0 - a) / (a * price)))
    if code == USL:
        return _usl_demand(a, b, float(encoded[row + PEAK]), price, weight)
    if code == ROOFTOP:
        return a
    if code == LINEAR_POWER:
        return max(a, weight * (b / (1.0 - b)) / price)
    vertices = int(encoded[row + VERTICES])
    widths = int(encoded[row + START]) + 2 * int(encoded[row + POINTS])
    return float(encoded[widths + _steps(encoded, widths + vertices, vertices - 1, price, weight)])


def work_demand(encoded: FloatArray, i: int, price: float, weight: float) -> float:  # noqa: PLR0911 - one a family
    """argmax over k ≥ most_efficient of weight·s_i(k) − price·k: what GREEDY buys at that price."""
    row = PREAMBLE + ROW * i
    if price <= 0.0:
        return float(encoded[row + PEAK])
    code, a, b = int(encoded[row]), float(encoded[row + 1]), float(encoded[row + 2])
    if code == POWER:
        return max(1.0, _bounded_power(weight * a / price, 1.0 / (1.0 - a)))
    if code == AMDAHL:
        return max(1.0, (math.sqrt(weight * (1.0 - a) / price) - (1.0 - a)) / a)
    if code == USL:
        return _usl_work_demand(a, b, float(encoded[row + PEAK]), price, weight)
    if code == ROOFTOP:
        return a
    if code == LINEAR_POWER:
        return max(a, a * _bounded_power(weight * b / price, 1.0 / (1.0 - b)))
    vertices = int(encoded[row + VERTICES])
    widths = int(encoded[row + START]) + 2 * int(encoded[row + POINTS])
    return float(encoded[widths + _steps(encoded, widths + 2 * vertices - 1, vertices - 1, price, weight)])


def _bounded_power(base: float, exponent: float) -> float:
    """base^exponent, infinite where it would overflow."""
    if base <= 0.0:
        return 0.0
    if math.log(base) * exponent > LARGE_LOGARITHM:
        return math.inf
    return float(base**exponent)


def _usl_demand(sigma: float, kappa: float, top: float, price: float, weight: float) -> float:
    """The root of 2κy·k³ + (y(σ−κ)+κ)·k² = 1−σ, y = price/weight, by Newton's method from above."""
    if weight <= 0.0 or price * (sigma + kappa) >= weight * (1.0 - sigma - kappa):
        return 1.0
    y = price / weight
    a, b, c = 2.0 * kappa * y, y * (sigma - kappa) + kappa, 1.0 - sigma
    k = top
    if a > 0.0:
        k = min(k, (c / a) ** (1.0 / 3.0))
    if b > 0.0:
        k = min(k, math.sqrt(c / b))
    if k == math.inf:
        return math.inf
    k = max(1.0, k)
    for _ in range(NEWTON_STEPS):
        following = max(1.0, k - (k * k * (a * k + b) - c) / (k * (3.0 * a * k + 2.0 * b)))
        done = abs(following - k) <= 1e-15 * k
        k = following
        if done:
            break
    return k


def _usl_work_demand(sigma: float, kappa: float, top: float, price: float, weight: float) -> float:
    """The root of y·d² + κk² = 1−σ with d = 1 + σ(k−1) + κk(k−1): increasing and convex, so from above."""
    if weight <= 0.0 or price >= weight * (1.0 - sigma - kappa):
        return 1.0
    y = price / weight
    k = top
    if sigma > 0.0:
        k = min(k, math.sqrt((1.0 - sigma) / y) / sigma)
    k = max(1.0, k)
    for _ in range(NEWTON_STEPS):
        d = 1.0 + sigma * (k - 1.0) + kappa * k * (k - 1.0)
        d1 = sigma - kappa + 2.0 * kappa * k
        above = y * d * d + kappa * k * k - (1.0 - sigma)
        following = max(1.0, k - above / (2.0 * y * d * d1 + 2.0 * kappa * k))
        done = abs(following - k) <= 1e-15 * k
        k = following
        if done:
            break
    return k


def _segment(encoded: FloatArray, start: int, points: int, k: float) -> int:
    """The last of the corners whose width is at most k."""
    low, high = 0, points
    while high - low > 1:
        middle = (low + high) // 2
        if encoded[start + middle] <= k:
            low = middle
        else:
            high = middle
    return low


def _table_speed(encoded: FloatArray, row: int, k: float) -> float:
    start, points = int(encoded[row + START]), int(encoded[row + POINTS])
    j = _segment(encoded, start, points, k)
    s0 = float(encoded[start + points + j])
    if j == points - 1:
        return s0
    k0, k1, s1 = float(encoded[start + j]), float(encoded[start + j + 1]), encoded[start + points + j + 1]
    return float(s0 + (k - k0) / (k1 - k0) * (s1 - s0))


def _steps(encoded: FloatArray, start: int, edges: int, price: float, weight: float) -> int:
    """How many of the edges, whose prices fall, a job of this weight buys at this price."""
    low, high = 0, edges
    while low < high:
        middle = (low + high) // 2
        if encoded[start + middle] * weight > price:
            low = middle + 1
        else:
            high = middle
    return low
