"""The power law s(k) = k^p of the paper.

f(k) = s'/(s − k s') = p/((1−p)k), so the width worth buying at price l is c·p/((1−p)·l), at least one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import OpenFraction
from malleable.contracts import Speedup

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Power(Speedup):
    """Power law: s(k) = k^exponent."""

    exponent: OpenFraction

    vectorised: ClassVar[bool] = True

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
