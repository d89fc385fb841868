"""The exponential law: memoryless, squared coefficient of variation 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import Positive, positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import over_power
from malleable.distributions.base.inverse import LAW, Inverse

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def variate(laws: Any, row: Any, u: float) -> float:
    """−log(u)·mean."""
    return -math.log(u) * float(laws[row + LAW.A])


@dataclass(frozen=True)
class Exponential(Distribution):
    """Exponential with a given rate (or mean)."""

    rate: Positive

    inverse: ClassVar = Inverse(lambda law: (1.0 / law.rate,), variate)
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
