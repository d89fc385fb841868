"""Random numbers: NumPy's fastest generator, and choices with given probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray

FEW = 8
"""Up to this many bounds are compared one by one, which is faster than a search."""


def generator(seed: np.random.SeedSequence) -> np.random.Generator:
    """The fastest of NumPy's generators; seeds that were spawned give independent streams."""
    return np.random.Generator(np.random.SFC64(seed))


def choose(rng: np.random.Generator, bounds: FloatArray, size: int) -> NDArray[np.int64]:
    """Positions drawn with the probabilities that lie between the bounds (cumulated, without the last 1)."""
    if not len(bounds):
        return np.zeros(size, dtype=np.int64)
    coins = rng.random(size)
    if len(bounds) > FEW:
        return np.searchsorted(bounds, coins, side="right").astype(np.int64)
    # Narrow integers are added many at a time.
    chosen = (coins >= bounds[0]).view(np.int8)
    for bound in bounds[1:]:
        chosen += (coins >= bound).view(np.int8)
    widened: NDArray[np.int64] = chosen.astype(np.int64)
    return widened
