"""Choices with given probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray

FEW = 8
"""Up to this many bounds are compared one by one, which is faster than a search."""


def choose(coins: FloatArray, bounds: FloatArray) -> NDArray[np.int64]:
    """The position that each uniform number falls on between the bounds (cumulated, without the last 1)."""
    if len(bounds) > FEW:
        return np.searchsorted(bounds, coins, side="right").astype(np.int64)
    # Narrow integers are added many at a time.
    chosen = np.zeros(len(coins), dtype=np.int8)
    for bound in bounds:
        chosen += (coins >= bound).view(np.int8)
    widened: NDArray[np.int64] = chosen.astype(np.int64)
    return widened
