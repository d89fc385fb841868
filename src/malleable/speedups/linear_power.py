"""Linear up to a number of cores, a power law above: s(k) = k, then κ·(k/κ)^p.

f is infinite below κ and p/((1−p)k) above, so at price l a job wants max(κ, c·p/((1−p)·l)) cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.speedups.base import (
    ALONG,
    ROW,
    Fit,
    Formulas,
    OpenFraction,
    Speedup,
    Width,
    bounded_power,
    width_between,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray


def speed(encoded: FloatArray, row: int, k: float) -> float:
    """k up to κ, then κ·(k/κ)^p."""
    kappa = float(encoded[row + ROW.A])
    return k if k <= kappa else float(kappa * (k / kappa) ** float(encoded[row + ROW.B]))


def demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """max(κ, c·p/((1−p)·l))."""
    kappa, p = float(encoded[row + ROW.A]), float(encoded[row + ROW.B])
    return max(kappa, weight * (p / (1.0 - p)) / price)


def work_demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """κ·max(1, w·p/l)^{1/(1−p)}."""
    kappa, p = float(encoded[row + ROW.A]), float(encoded[row + ROW.B])
    return max(kappa, kappa * bounded_power(weight * p / price, 1.0 / (1.0 - p)))


def shape(encoded: FloatArray, row: int, z: float) -> tuple[float, float, float]:
    """The elasticity is p from κ on."""
    kappa, p = float(encoded[row + ROW.A]), float(encoded[row + ROW.B])
    return math.exp(p * z) * kappa ** (1.0 - p), p, 0.0


@dataclass(frozen=True)
class LinearPower(Speedup):
    """Linear up to `cores`, a power law with `exponent` above."""

    cores: Width
    exponent: OpenFraction

    vectorised: ClassVar[bool] = True
    formulas: ClassVar = Formulas(("cores", "exponent"), speed, demand, work_demand, shape)
    fit: ClassVar = Fit(
        tuple((x, 0.5) for x in ALONG),
        lambda theta, widest: LinearPower(width_between(theta[0], widest), theta[1]),
        kink=True,
    )

    def speed(self, cores: FloatArray) -> FloatArray:
        return np.where(cores <= self.cores, cores, self._power(cores))

    def _power(self, k: FloatArray) -> FloatArray:
        return self.cores * np.power(np.maximum(k, self.cores) / self.cores, self.exponent)

    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k, p = np.asarray(cores, dtype=float), self.exponent
        s, linear = self._power(k), k < self.cores
        return (
            np.where(linear, k, s),
            np.where(linear, 1.0, p * s / k),
            np.where(linear, 0.0, p * (p - 1) * s / k**2),
            np.where(linear, 0.0, p * (p - 1) * (p - 2) * s / k**3),
        )

    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        ratio = self.exponent / (1.0 - self.exponent)
        with np.errstate(divide="ignore", over="ignore"):
            return np.maximum(self.cores, np.asarray(weight) * ratio / np.asarray(price, dtype=float))

    def work_demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.asarray(weight) * self.exponent / np.asarray(price, dtype=float)
            return np.maximum(self.cores, self.cores * ratio ** (1.0 / (1.0 - self.exponent)))

    @property
    def peak(self) -> Any:
        return np.full(np.shape(self.exponent), np.inf)[()]

    @property
    def most_efficient(self) -> Any:
        return self.cores
