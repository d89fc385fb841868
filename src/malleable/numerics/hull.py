"""The upper concave hull of a measured speedup, and the prices of its edges.

At price l a job of weight c wants the width where the line through (−c/l, 0) supports the graph of s from
above. So only vertices of the upper hull of {(k, s_k), k ≥ 1} are ever wanted, from the most efficient
width (argmax s/k) up to the fastest. Moving from vertex k to k' > k is worth it below the price

    ν(k→k') = c (s' − s)/(k'·s − k·s').
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

FLAT = 1e-12
"""Relative gain in speed below which an edge counts as flat: measurements are not that exact."""
DENT = 1e-3
"""How far below an edge of the hull, relatively, measurements count as lying on it."""


class Hull(NamedTuple):
    """Vertices (widths, speeds) from the most efficient to the fastest, and the price of each edge."""

    widths: FloatArray
    speeds: FloatArray
    prices: FloatArray


def upper_hull(widths: FloatArray, speeds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The vertices of the upper concave hull up to the fastest width (Andrew's monotone chain)."""
    chain: list[int] = []
    last = int(np.argmax(speeds > np.max(speeds) * (1.0 - FLAT)))
    k, s = widths.tolist(), speeds.tolist()
    for i in range(last + 1):
        while len(chain) >= 2 and _not_above(k, s, chain[-2], chain[-1], i):
            chain.pop()
        chain.append(i)
    return widths[chain], speeds[chain]


def _not_above(k: list[float], s: list[float], a: int, b: int, c: int) -> bool:
    """Whether vertex b lies on or below the chord from a to c."""
    return (s[b] - s[a]) * (k[c] - k[a]) <= (s[c] - s[a]) * (k[b] - k[a])


def pricing_hull(widths: FloatArray, speeds: FloatArray) -> Hull:
    """The part of the hull that prices can select, with the price of each edge for weight 1."""
    k, s = upper_hull(widths, speeds)
    efficiency = s / k
    # The largest most efficient width, ties (a linear start) decided in favour of the wider one.
    first = int(np.flatnonzero(efficiency >= efficiency.max() * (1.0 - FLAT))[-1])
    k, s = k[first:], s[first:]
    with np.errstate(divide="ignore"):
        prices = np.diff(s) / (k[1:] * s[:-1] - k[:-1] * s[1:])
    return Hull(k, s, prices)
