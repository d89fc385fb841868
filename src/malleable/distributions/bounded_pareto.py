"""The bounded Pareto law: density proportional to x^(−α−1) on [L, H].

With q = log(H/L), log(X/L) is an exponential of rate α cut off at q, so

    E[X^r] = L^r · α/(1 − e^(−αq)) · ∫₀^q e^((r−α)t) dt,

where the integral is q at r = α. Measured job sizes are often of this form with α near 1
(Harchol-Balter and Downey, *Exploiting process lifetime distributions for dynamic load balancing*, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log, log1p
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import power, product
from malleable.distributions.base.interval import check_ends

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class BoundedPareto(Distribution):
    """Pareto of a given shape, cut off to lie between `low` and `high`."""

    shape: Positive
    low: Positive
    high: Positive

    def check(self) -> None:
        check_ends(self.low, self.high)

    @property
    def _width(self) -> float:
        """log(H/L), without cancellation when the two are close or overflow when they are far apart."""
        if self.high < 2.0 * self.low:
            return log1p((self.high - self.low) / self.low)
        return log(self.high) - log(self.low)

    def moment(self, order: int) -> float:
        a, q = self.shape, self._width
        excess = order - a
        if excess > 0.0:
            # L^r e^(excess·q) = L^α H^excess; written so, no factor overflows before the moment itself does.
            integral = product(power(self.low, a), power(self.high, excess)) * -expm1(-excess * q) / excess
        elif excess < 0.0:
            integral = power(self.low, order) * expm1(excess * q) / excess
        else:
            integral = power(self.low, order) * q
        return a * integral / -expm1(-a * q)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        above = -np.log1p(rng.random(size) * expm1(-self.shape * self._width)) / self.shape
        return np.minimum(self.low * np.exp(above), self.high)

    def scaled(self, factor: float) -> BoundedPareto:
        return BoundedPareto(self.shape, self.low * factor, self.high * factor)
