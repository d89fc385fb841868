"""Laws on the whole numbers by age, from their probabilities.

With Sᵢ = P(X > i), ∫ₐ^∞ P(X > t) dt = (i + 1 − a) Sᵢ + Sᵢ₊₁ + Sᵢ₊₂ + … for i ≤ a < i + 1. All sums run from
the largest value down, so that the tail keeps its digits. A tail that goes on beyond the table is taken for a
power law there, which is to about 1e-4 what the zeta law does; a lighter one has faded away.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import UnsupportedError
from malleable.numerics.residual_life import FLOOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

MOST = 2**17
"""So many values are tabulated."""
RARE = 0.01
"""How likely larger ones may be."""
NUDGE = 1e-12
"""What division by a factor may add to a whole number or take from it."""


class WholeNumbers(NamedTuple):
    """P(X > low + i), and their sums from i on, for all i at which it can be trusted.

    `bounded` says that nothing is larger; else P(X > x) goes on like x^(−power), or fades if that is
    infinite.
    """

    low: float
    alive: FloatArray
    sums: FloatArray
    bounded: bool
    power: float

    def survival(self, x: FloatArray) -> FloatArray:
        """P(X > x)."""
        place, count = self._place(x), len(self.alive)
        inside = np.append(self.alive, 0.0)[np.clip(place, 0, count).astype(int)]
        if np.isfinite(self.power):
            inside = np.where(place < count, inside, self.alive[-1] * self._beyond(place) ** -self.power)
        return np.where(place < 0.0, 1.0, inside)

    def mean_remaining(self, ages: FloatArray) -> FloatArray:
        """E[X − a | X > a]."""
        place, count = self._place(ages), len(self.alive)
        waiting: FloatArray = self.low - ages + self.sums[0]
        if not count:
            return np.maximum(waiting, 0.0)
        at = np.clip(place, 0, count - 1).astype(int)
        later = self.sums[at + 1] / self.alive[at]
        inside = np.clip(self.low + place + 1.0 - ages, 0.0, 1.0) + later
        growth = self._beyond(place) if np.isfinite(self.power) else 1.0
        after = 0.0 if self.bounded else (1.0 + later) * growth
        return np.select([place < 0.0, place < count], [waiting, inside], after)

    def _place(self, x: FloatArray) -> FloatArray:
        """How many whole steps x stands above the lowest value; −1 below it."""
        return np.maximum(np.floor(x - self.low + NUDGE * np.abs(x)), -1.0)

    def _beyond(self, place: FloatArray) -> FloatArray:
        """How many times farther out than the end of the table."""
        return np.maximum(place, len(self.alive)) / len(self.alive)


def tabulate(
    probability: Callable[[FloatArray], FloatArray], low: float, high: float, survival: float
) -> WholeNumbers:
    """The table of a law on low, low + 1, …, high, given P(X > low + MOST)."""
    bounded = high - low <= MOST
    if not bounded and survival > RARE:
        raise UnsupportedError(
            f"a law on the whole numbers with many values above {low + MOST:g} has no table of what remains",
            "use a continuous law, or the kind empirical",
        )
    count = int(high - low) if bounded else MOST
    chances = probability(low + np.arange(1.0, count + 1.0))
    alive = _sums_from_above(chances, 0.0 if bounded else survival)
    power = float(np.log2(alive[count // 2] / alive[-1])) if alive[-1] > FLOOR else inf
    beyond = count * alive[-1] / (power - 1.0) if np.isfinite(power) else 0.0
    sums = _sums_from_above(alive, beyond)
    trusted = int((alive > (0.0 if bounded else FLOOR)).sum())
    return WholeNumbers(low, alive[:trusted], sums[: trusted + 1], bounded, power)


def _sums_from_above(terms: FloatArray, last: float) -> FloatArray:
    return np.cumsum(np.append(terms, last)[::-1])[::-1]
