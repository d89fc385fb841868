"""The Weibull law: P(X > x) = exp(−(x/s)^k); heavy-tailed for shape k < 1, exponential at k = 1.

The scale is s = m/Γ(1 + 1/k) for the mean m, and E[X^r] = s^r Γ(1 + r/k). Both are taken through log Γ,
because Γ(1 + r/k) overflows at shapes as large as 0.02.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, log
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import above_zero, exp, log_gamma, power, product
from malleable.errors import ParameterError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Weibull(Distribution):
    """Weibull with a given shape and mean."""

    shape: Positive
    mean: Positive = field()

    def check(self) -> None:
        if not isfinite(log_gamma(1.0 + 1.0 / self.shape)):
            raise ParameterError(
                f"a shape of {self.shape:g} is beyond the range of numbers", "choose a larger one", ("shape",)
            )

    def moment(self, order: int) -> float:
        log_ratio = log_gamma(1.0 + order / self.shape) - order * log_gamma(1.0 + 1.0 / self.shape)
        return product(power(self.mean, order), exp(log_ratio))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        log_scale = log(self.mean) - log_gamma(1.0 + 1.0 / self.shape)
        return above_zero(np.exp(log_scale + np.log(above_zero(rng.standard_exponential(size))) / self.shape))

    def scaled(self, factor: float) -> Weibull:
        return Weibull(self.shape, self.mean * factor)
