"""The power law s(k) = k^p of the paper.

f(k) = s'/(s − k s') = p/((1−p)k), so the width worth buying at price l is c·p/((1−p)·l), at least one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.speedups.base import ROW, Fit, Formulas, OpenFraction, PriceForm, Speedup, bounded_power

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray


def speed(encoded: FloatArray, row: int, k: float) -> float:
    """k^p. A square root takes a fifth of the time of a power, and ½ is what people write."""
    p = float(encoded[row + ROW.A])
    return math.sqrt(k) if p == 0.5 else float(k**p)


def demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """c·p/((1−p)·l)."""
    p = float(encoded[row + ROW.A])
    return max(1.0, weight * (p / (1.0 - p)) / price)


def work_demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """(w·p/l)^{1/(1−p)}."""
    p = float(encoded[row + ROW.A])
    return max(1.0, bounded_power(weight * p / price, 1.0 / (1.0 - p)))


def shape(encoded: FloatArray, row: int, z: float) -> tuple[float, float, float]:
    """The elasticity is p."""
    p = float(encoded[row + ROW.A])
    return math.exp(p * z), p, 0.0


def price_forms(one: Power) -> tuple[PriceForm, PriceForm]:
    """The two demands above."""
    p = one.exponent
    return PriceForm(p / (1.0 - p), 1.0), PriceForm(p ** (1.0 / (1.0 - p)), 1.0 / (1.0 - p))


@dataclass(frozen=True)
class Power(Speedup):
    """Power law: s(k) = k^exponent."""

    exponent: OpenFraction

    vectorised: ClassVar[bool] = True
    formulas: ClassVar = Formulas(("exponent",), speed, demand, work_demand, shape, True, price_forms)
    fit: ClassVar = Fit(((0.5,),), lambda theta, _: Power(theta[0]))

    def speed(self, cores: FloatArray) -> FloatArray:
        return np.power(cores, self.exponent)

    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k, p = np.asarray(cores, dtype=float), self.exponent
        s = k**p
        return s, p * s / k, p * (p - 1) * s / k**2, p * (p - 1) * (p - 2) * s / k**3

    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        ratio = self.exponent / (1.0 - self.exponent)
        with np.errstate(divide="ignore", over="ignore"):
            return np.maximum(1.0, np.asarray(weight) * ratio / np.asarray(price, dtype=float))

    def work_demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.asarray(weight) * self.exponent / np.asarray(price, dtype=float)
            return np.maximum(1.0, ratio ** (1.0 / (1.0 - self.exponent)))

    @property
    def peak(self) -> Any:
        return np.full(np.shape(self.exponent), np.inf)[()]
