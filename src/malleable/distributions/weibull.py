"""The Weibull law: P(X > x) = exp(−(x/s)^k); heavy-tailed for shape k < 1, exponential at k = 1.

The scale is s = m/Γ(1 + 1/k) for the mean m, and E[X^r] = s^r Γ(1 + r/k). Both are taken through log Γ,
because Γ(1 + r/k) overflows at shapes as large as 0.02.

With y = (a/s)^k and c = 1/k, E[X − a | X > a] = m e^y Γ(c, y)/Γ(c). Far out this is ac/(y − c + g), where g
is what remains at the age y of a gamma variable of shape c.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, log
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base import gamma_ages
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

    @property
    def _log_scale(self) -> float:
        return log(self.mean) - log_gamma(1.0 + 1.0 / self.shape)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return above_zero(
            np.exp(self._log_scale + np.log(above_zero(rng.standard_exponential(size))) / self.shape)
        )

    def _hazard(self, x: FloatArray) -> FloatArray:
        """(x/s)^k, the cumulated hazard, which may be infinite."""
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return np.exp(self.shape * (np.log(np.maximum(x, 0.0)) - self._log_scale))

    def survival(self, x: FloatArray) -> FloatArray:
        with np.errstate(under="ignore"):
            return np.exp(-self._hazard(x))

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        y, c = self._hazard(done), 1.0 / self.shape
        far = gamma_ages.is_far(c, y)
        near = np.where(far, 0.0, y)
        distant = np.where(far, y, gamma_ages.FARTHEST)
        rest = distant - c + gamma_ages.mean_remaining(c, distant)
        with np.errstate(over="ignore", under="ignore"):
            body = self.mean * np.exp(near) * gamma_ages.survival(c, near)
            return np.where(far, np.asarray(done) * (c / rest), body)

    def scaled(self, factor: float) -> Weibull:
        return Weibull(self.shape, self.mean * factor)
