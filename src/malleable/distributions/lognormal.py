"""The lognormal law: log X is normal with standard deviation σ.

With the mean m given, log X has mean log m − σ²/2 and E[X^r] = m^r exp(σ² r(r−1)/2). All moments are finite,
yet the tail is heavier than exponential.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import above_zero, exp, power, product

if TYPE_CHECKING:
    import numpy as np

    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Lognormal(Distribution):
    """Lognormal with a given mean and the standard deviation `sigma` of its logarithm."""

    mean: Positive = field()
    sigma: Positive = field()

    def moment(self, order: int) -> float:
        return product(power(self.mean, order), exp(power(self.sigma, 2) * order * (order - 1) / 2.0))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return above_zero(rng.lognormal(log(self.mean) - self.sigma**2 / 2.0, self.sigma, size))

    def scaled(self, factor: float) -> Lognormal:
        return Lognormal(self.mean * factor, self.sigma)
