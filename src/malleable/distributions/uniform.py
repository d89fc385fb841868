"""The uniform law on an interval [a, b].

E[X^r] = (b^(r+1) − a^(r+1))/((r+1)(b−a)) = Σⱼ₌₀..ᵣ a^j b^(r−j)/(r+1); the sum has no cancellation when a ≈ b.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import NonNegative, Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import check_ends, power, product
from malleable.distributions.base.inverse import LAW, Inverse

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def variate(laws: Any, row: Any, u: float) -> float:
    """b − (b − a)·u."""
    return float(laws[row + LAW.A]) - float(laws[row + LAW.B]) * u


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform between `low` and `high`."""

    low: NonNegative
    high: Positive

    inverse: ClassVar = Inverse(lambda law: (law.high, law.high - law.low), variate)

    def check(self) -> None:
        check_ends(self.low, self.high)

    def moment(self, order: int) -> float:
        return fsum(
            product(power(self.low, j), power(self.high, order - j)) if self.low or not j else 0.0
            for j in range(order + 1)
        ) / (order + 1)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        # Counted down from `high`: random() may be 0 but never 1, and a time must not be 0.
        return self.high - (self.high - self.low) * rng.random(size)

    def survival(self, x: FloatArray) -> FloatArray:
        return np.clip((self.high - np.asarray(x, dtype=float)) / (self.high - self.low), 0.0, 1.0)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        start = np.clip(done, self.low, self.high)
        return np.maximum(self.low - np.asarray(done, dtype=float), 0.0) + 0.5 * (self.high - start)

    def scaled(self, factor: float) -> Uniform:
        return Uniform(self.low * factor, self.high * factor)
