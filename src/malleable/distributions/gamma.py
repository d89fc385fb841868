"""The gamma law: density proportional to x^(k−1) e^(−kx/m), with shape k and mean m.

E[X^r] = m^r (1 + 1/k)…(1 + (r−1)/k); squared coefficient of variation 1/k. At whole k it is the Erlang law.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base import gamma_ages, phases
from malleable.distributions.base.float_limits import above_zero
from malleable.distributions.erlang import Erlang

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Gamma(Distribution):
    """Gamma with a given shape and mean."""

    shape: Positive
    mean: Positive = field()

    def moment(self, order: int) -> float:
        return prod(self.mean * (1.0 + i / self.shape) for i in range(order))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return above_zero(rng.gamma(self.shape, self.mean / self.shape, size))

    @property
    def _scale(self) -> float:
        return self.mean / self.shape

    def survival(self, x: FloatArray) -> FloatArray:
        return gamma_ages.survival(self.shape, np.asarray(x, dtype=float) / self._scale)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        x = np.asarray(done, dtype=float) / self._scale
        return self._scale * gamma_ages.mean_remaining(self.shape, x)

    def scaled(self, factor: float) -> Gamma:
        return Gamma(self.shape, self.mean * factor)

    def phase_type(self) -> tuple[FloatArray, FloatArray] | None:
        if not self.shape.is_integer() or self.shape > phases.MOST_PHASES:
            return None
        return Erlang(int(self.shape), self.shape / self.mean).phase_type()
