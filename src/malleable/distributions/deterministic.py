"""The deterministic law: always the same value, so E[X^r] = value^r."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import power
from malleable.distributions.base.inverse import LAW, Inverse

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def variate(laws: Any, row: Any, u: float) -> float:  # noqa: ARG001
    """The value, whatever u is."""
    return float(laws[row + LAW.A])


@dataclass(frozen=True)
class Deterministic(Distribution):
    """Always the same value."""

    value: Positive

    inverse: ClassVar = Inverse(lambda law: (law.value,), variate, continuous=False)

    def moment(self, order: int) -> float:
        return power(self.value, order)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:  # noqa: ARG002 - nothing is random
        return np.full(size, self.value)

    def survival(self, x: FloatArray) -> FloatArray:
        return np.where(np.asarray(x) < self.value, 1.0, 0.0)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        return np.maximum(self.value - np.asarray(done, dtype=float), 0.0)

    def scaled(self, factor: float) -> Deterministic:
        return Deterministic(self.value * factor)
