"""Amdahl's law: a share q of the work is sequential.

s(k) = 1/(q + (1−q)/k) and f(k) = (1−q)/(q k²), so the width worth buying at price l is √(c(1−q)/(q l)).
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
class Amdahl(Speedup):
    """Amdahl's law: a share `sequential` of the work runs on one core only."""

    sequential: OpenFraction

    vectorised: ClassVar[bool] = True

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
