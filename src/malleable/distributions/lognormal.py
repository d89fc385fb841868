"""The lognormal law: log X is normal with standard deviation σ.

With the mean m given, log X has mean log m − σ²/2 and E[X^r] = m^r exp(σ² r(r−1)/2). All moments are finite,
yet the tail is heavier than exponential.

With z = log(a/m)/σ + σ/2 and the normal tail Φc, P(X > a) = Φc(z) and

    E[X − a | X > a] = m Φc(z−σ)/Φc(z) − a = a E[e^(σ(Z−z)) − 1 | Z > z].

Far out the two terms of the first form cancel, and Φc underflows. There the second is a ratio of integrals of
e^(−t) times smooth functions of t = z(Z−z), which Gauss and Laguerre's rule gives to all digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import above_zero, exp, power, product

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


RULE = np.polynomial.laguerre.laggauss(32)
FAR = 6.0
"""From this z on the rule is exact to rounding, for σ up to z/2."""


@dataclass(frozen=True)
class Lognormal(Distribution):
    """Lognormal with a given mean and the standard deviation `sigma` of its logarithm."""

    mean: Positive = field()
    sigma: Positive = field()

    def moment(self, order: int) -> float:
        return product(power(self.mean, order), exp(power(self.sigma, 2) * order * (order - 1) / 2.0))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return above_zero(rng.lognormal(log(self.mean) - self.sigma**2 / 2.0, self.sigma, size))

    def _normal(self, x: FloatArray) -> FloatArray:
        """z: where x stands on the scale of the standard normal law."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(x, 0.0) / self.mean) / self.sigma + 0.5 * self.sigma

    def survival(self, x: FloatArray) -> FloatArray:
        from scipy.special import ndtr  # noqa: PLC0415 - keeps `import malleable` light

        return np.asarray(ndtr(-self._normal(x)), dtype=float)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        from scipy.special import ndtr  # noqa: PLC0415

        a, z = np.asarray(done, dtype=float), self._normal(done)
        low = np.minimum(z, 0.0)
        early = self.mean * ndtr(self.sigma - low) / ndtr(-low) - a
        far = z > max(FAR, 2.0 * self.sigma)
        middle = (z > self.sigma) & ~far
        with np.errstate(over="ignore"):
            late = a * np.piecewise(z, [z <= 0.0, far, middle], [0.0, _far, _middle, _near], self.sigma)
        return np.asarray(np.where(z <= 0.0, early, late), dtype=float)

    def scaled(self, factor: float) -> Lognormal:
        return Lognormal(self.mean * factor, self.sigma)


# E[e^(σ(Z−z)) − 1 | Z > z] for a standard normal Z, in three ways.


def _near(z: FloatArray, sigma: float) -> FloatArray:
    """For 0 < z ≤ σ, where the expectation is large, perhaps too large for the tails themselves."""
    from scipy.special import log_ndtr  # noqa: PLC0415

    exponent = log_ndtr(sigma - z) - log_ndtr(-z) + sigma * (0.5 * sigma - z)
    return np.asarray(np.expm1(exponent), dtype=float)


def _middle(z: FloatArray, sigma: float) -> FloatArray:
    """For z > σ, by scaled tails, which do not underflow."""
    from scipy.special import erfcx  # noqa: PLC0415

    return np.asarray(erfcx((z - sigma) / sqrt(2.0)) / erfcx(z / sqrt(2.0)) - 1.0, dtype=float)


def _far(z: FloatArray, sigma: float) -> FloatArray:
    """For large z, where nothing may be subtracted."""
    nodes, weights = RULE
    steps = nodes / z[..., None]
    weights = weights * np.exp(-0.5 * steps**2)
    return np.asarray((weights * np.expm1(sigma * steps)).sum(axis=-1) / weights.sum(axis=-1), dtype=float)
