"""Amdahl's law: a share q of the work is sequential.

s(k) = 1/(q + (1−q)/k) and f(k) = (1−q)/(q k²), so the width worth buying at price l is √(c(1−q)/(q l)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.speedups.base import ROW, Fit, Formulas, OpenFraction, PriceForm, Speedup

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray


def speed(encoded: FloatArray, row: int, k: float) -> float:
    """1/(q + (1−q)/k)."""
    q = float(encoded[row + ROW.A])
    return 1.0 / (q + (1.0 - q) / k)


def demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """√(c(1−q)/(q l))."""
    q = float(encoded[row + ROW.A])
    return max(1.0, math.sqrt(weight * (1.0 - q) / (q * price)))


def work_demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """(√(w(1−q)/l) − (1−q))/q."""
    q = float(encoded[row + ROW.A])
    return max(1.0, (math.sqrt(weight * (1.0 - q) / price) - (1.0 - q)) / q)


def shape(encoded: FloatArray, row: int, z: float) -> tuple[float, float, float]:
    """The elasticity is (1−q)/(qk + 1−q)."""
    q, k = float(encoded[row + ROW.A]), math.exp(z)
    d = q * k + (1.0 - q)
    e = (1.0 - q) / d
    return k / d, e, -e * (1.0 - e)


def price_forms(one: Amdahl) -> tuple[PriceForm, PriceForm]:
    """The two demands above."""
    q = one.sequential
    return PriceForm(math.sqrt((1.0 - q) / q), 0.5), PriceForm(math.sqrt(1.0 - q) / q, 0.5, (1.0 - q) / q)


@dataclass(frozen=True)
class Amdahl(Speedup):
    """Amdahl's law: a share `sequential` of the work runs on one core only."""

    sequential: OpenFraction

    vectorised: ClassVar[bool] = True
    formulas: ClassVar = Formulas(("sequential",), speed, demand, work_demand, shape, True, price_forms)
    fit: ClassVar = Fit(((0.01,), (0.2,), (0.8,)), lambda theta, _: Amdahl(theta[0]))

    def speed(self, cores: FloatArray) -> FloatArray:
        return 1.0 / (self.sequential + (1.0 - self.sequential) / cores)

    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k, q = np.asarray(cores, dtype=float), self.sequential
        d = q * k + (1.0 - q)
        return k / d, (1.0 - q) / d**2, -2.0 * q * (1.0 - q) / d**3, 6.0 * q**2 * (1.0 - q) / d**4

    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        q = self.sequential
        with np.errstate(divide="ignore", over="ignore"):
            return np.maximum(
                1.0, np.sqrt(np.asarray(weight) * (1.0 - q) / (q * np.asarray(price, dtype=float)))
            )

    def work_demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        q = self.sequential
        with np.errstate(divide="ignore", over="ignore"):
            root = np.sqrt(np.asarray(weight) * (1.0 - q) / np.asarray(price, dtype=float))
        return np.maximum(1.0, (root - (1.0 - q)) / q)

    @property
    def peak(self) -> Any:
        return np.full(np.shape(self.sequential), np.inf)[()]
