"""Linear up to a number of cores, a power law above: s(k) = k, then κ·(k/κ)^p.

f is infinite below κ and p/((1−p)k) above, so at price l a job wants max(κ, c·p/((1−p)·l)) cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Lt

from malleable.catalog.spec import INFINITY, OpenFraction
from malleable.contracts import Speedup

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class LinearPower(Speedup):
    """Linear up to `cores`, a power law with `exponent` above."""

    cores: Annotated[float, Ge(1), Lt(INFINITY)]
    exponent: OpenFraction

    vectorised: ClassVar[bool] = True

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
