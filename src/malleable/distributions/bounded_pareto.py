"""The bounded Pareto law: density proportional to x^(−α−1) on [L, H].

With q = log(H/L), log(X/L) is an exponential of rate α cut off at q, so

    E[X^r] = L^r · α/(1 − e^(−αq)) · ∫₀^q e^((r−α)t) dt,

where the integral is q at r = α. Given X > a ≥ L, X is of the same form on [a, H], so with q = log(H/a)

    E[X − a | X > a] = a · α/(1 − e^(−αq)) · ∫₀^q (e^t − 1) e^(−αt) dt.

Measured job sizes are often of this form with α near 1
(Harchol-Balter and Downey, *Exploiting process lifetime distributions for dynamic load balancing*, 1997).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import expm1, log
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import check_ends, power, product
from malleable.distributions.base.inverse import LAW, Inverse

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


RULE = np.polynomial.legendre.leggauss(20)


def variate(laws: Any, row: Any, u: float) -> float:
    """L·(1 − (1 − u)(1 − e^(−αq)))^(−1/α), at most H."""
    above = -math.log1p(-(1.0 - u) * float(laws[row + LAW.C])) * float(laws[row + LAW.B])
    return min(float(laws[row + LAW.A]) * math.exp(above), float(laws[row + LAW.D]))


def inverse_numbers(law: BoundedPareto) -> tuple[float, ...]:
    """L, 1/α, 1 − e^(−αq), H."""
    return law.low, 1.0 / law.shape, -expm1(-law.shape * log(law.high / law.low)), law.high


@dataclass(frozen=True)
class BoundedPareto(Distribution):
    """Pareto of a given shape, cut off to lie between `low` and `high`."""

    shape: Positive
    low: Positive
    high: Positive

    inverse: ClassVar = Inverse(inverse_numbers, variate)

    def check(self) -> None:
        check_ends(self.low, self.high)

    @property
    def _width(self) -> float:
        return float(self._width_from(np.array(self.low)))

    def _width_from(self, x: FloatArray) -> FloatArray:
        """log(H/x), without cancellation when the two are close or overflow when they are far apart."""
        near = self.high < 2.0 * x
        return np.where(
            near, np.log1p((self.high - x) / np.where(near, x, self.high)), log(self.high) - np.log(x)
        )

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

    def survival(self, x: FloatArray) -> FloatArray:
        start = np.clip(x, self.low, self.high)
        left, q = self._width_from(start), self._width
        with np.errstate(under="ignore"):
            return np.exp(self.shape * (left - q)) * np.expm1(-self.shape * left) / expm1(-self.shape * q)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        start = np.clip(done, self.low, self.high)
        q = self._width_from(start)
        ended = q <= 0.0
        q = np.where(ended, 1.0, q)
        with np.errstate(under="ignore"):
            excess = _excess(self.shape, start, self.high, q) * (self.shape / -np.expm1(-self.shape * q))
        return np.maximum(self.low - np.asarray(done, dtype=float), 0.0) + np.where(ended, 0.0, excess)

    def scaled(self, factor: float) -> BoundedPareto:
        return BoundedPareto(self.shape, self.low * factor, self.high * factor)


def _excess(shape: float, a: FloatArray, high: float, q: FloatArray) -> FloatArray:
    """a ∫₀^q (e^t − 1) e^(−αt) dt for a e^q = H, by a rule where the closed forms would cancel."""
    nodes, weights = RULE
    short = np.minimum(q, 2.0 / max(shape, 1.0))
    t = 0.5 * np.multiply.outer(short, 1.0 + nodes)
    by_rule = 0.5 * short * (np.expm1(t) * np.exp(-shape * t) @ weights)
    more = 1.0 - shape
    if shape > 2.0:
        # At q = 700 the second term is 0 in floats already, but for e^q.
        closed = a * (1.0 - np.exp(-shape * q) * (1.0 + shape * np.expm1(np.minimum(q, 700.0))))
        closed /= -shape * more
    elif shape >= 1.0:
        closed = a * ((np.expm1(more * q) / more if more else q) + np.expm1(-shape * q) / shape)
    else:
        # a e^(more·q) = a^α H^more; written so, no factor overflows.
        closed = a**shape * high**more * -np.expm1(-more * q) / more + a * np.expm1(-shape * q) / shape
    return np.where(q > short, closed, a * by_rule)
