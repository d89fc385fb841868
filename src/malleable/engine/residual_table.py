"""What is left of a job whose size is unknown: E[X − a | X > a] after a units of work, per class, as numbers.

    residual[0]               1 if sizes are unknown, 0 (and nothing else) if rules are told them
    residual[2·i + 1 : …]     where the grid of class i starts, and its number of points
    then per class            the points a, and E[X − a | X > a] at each

Between points lines are straight, beyond the last the value stays. The grid is refined until a line misses
the law by less than `TOLERANCE` half-way between two points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.numerics.adaptive_grid import refined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import Distribution, FloatArray

TOLERANCE = 1e-5
"""Relative distance from the law half-way between two points."""
FARTHEST = 1e4
"""Mean sizes up to which the law is tabulated."""
FIRST_POINTS, ROUNDS, MOST_POINTS = 65, 12, 20_000
SMALLEST = 1e-9
"""In mean sizes: of anything smaller, the absolute distance counts."""
KNOWN = np.zeros(1)
"""The table of rules that are told the sizes."""


def encode_residuals(laws: Sequence[Distribution]) -> FloatArray:
    """The flat description of what is left of a job of each law."""
    starts, data = [], []
    end = 1 + 2 * len(laws)
    for law in laws:
        points, values = _tabulated(law)
        starts += [float(end), float(len(points))]
        data += [points, values]
        end += 2 * len(points)
    return np.concatenate([[1.0], starts, *data])


def _tabulated(law: Distribution) -> tuple[FloatArray, FloatArray]:
    mean = law.mean
    points = np.concatenate([[0.0], mean * np.geomspace(1e-6, FARTHEST, FIRST_POINTS)])
    found = refined(
        law.mean_remaining, points, TOLERANCE, least=SMALLEST * mean, rounds=ROUNDS, most=MOST_POINTS
    )
    return found.points, found.values


def expected_remaining(residual: FloatArray, i: int, done: float) -> float:
    """E[X − done | X > done] of a class-i job."""
    start, count = int(residual[1 + 2 * i]), int(residual[2 + 2 * i])
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if residual[start + middle] <= done:
            low = middle
        else:
            high = middle
    at, value = float(residual[start + low]), float(residual[start + count + low])
    if low == count - 1:
        return value
    step = float(residual[start + low + 1]) - at
    share = (done - at) / step if step > 0.0 else 0.0
    return value + min(max(share, 0.0), 1.0) * (float(residual[start + count + low + 1]) - value)
