"""The Weibull law: P(X > x) = exp(−(x/s)^k); heavy-tailed for shape k < 1, exponential at k = 1.

The scale is s = m/Γ(1 + 1/k) for the mean m, and E[X^r] = s^r Γ(1 + r/k). Both are taken through log Γ,
because Γ(1 + r/k) overflows at shapes as large as 0.02.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lgamma, log
from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import Distribution
from malleable.distributions._numerics import above_zero, exp
from malleable.spec import Positive

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Weibull(Distribution):
    """Weibull with a given shape and mean."""

    shape: Positive
    mean: Positive = field()

    def moment(self, order: int) -> float:
        log_ratio = lgamma(1.0 + order / self.shape) - order * lgamma(1.0 + 1.0 / self.shape)
        return self.mean**order * exp(log_ratio)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        log_scale = log(self.mean) - lgamma(1.0 + 1.0 / self.shape)
        return above_zero(np.exp(log_scale + np.log(above_zero(rng.standard_exponential(size))) / self.shape))

    def scaled(self, factor: float) -> Weibull:
        return Weibull(self.shape, self.mean * factor)
