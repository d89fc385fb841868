"""The exponential law: memoryless, squared coefficient of variation 1."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.catalog.spec import Positive, positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import over_power

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Exponential(Distribution):
    """Exponential with a given rate (or mean)."""

    rate: Positive

    alternatives: ClassVar = {"mean": ("rate", lambda given: 1.0 / positive("mean")(given))}

    def moment(self, order: int) -> float:
        return over_power(factorial(order), self.rate, order)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.exponential(1.0 / self.rate, size)

    def survival(self, x: FloatArray) -> FloatArray:
        return np.exp(-self.rate * np.maximum(x, 0.0))

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        return np.full(np.shape(done), 1.0 / self.rate)

    def scaled(self, factor: float) -> Exponential:
        return Exponential(self.rate / factor)

    def phase_type(self) -> tuple[FloatArray, FloatArray]:
        return np.array([1.0]), np.array([[-self.rate]])
