"""Perfectly parallel up to a number of cores, flat above: s(k) = min(k, κ).

f is infinite below κ and 0 above, so a job wants exactly κ cores at any price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Lt

from malleable.catalog.spec import INFINITY
from malleable.contracts import Speedup

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Rooftop(Speedup):
    """Perfectly parallel up to `cores`, flat above."""

    cores: Annotated[float, Ge(1), Lt(INFINITY)]

    vectorised: ClassVar[bool] = True

    def speed(self, cores: FloatArray) -> FloatArray:
        return np.minimum(cores, self.cores)

    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k = np.asarray(cores, dtype=float)
        zero = np.zeros_like(k)
        return self.speed(k), np.where(k < self.cores, 1.0, 0.0), zero, zero

    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        return np.broadcast_arrays(self.cores, price, weight)[0].astype(float)[()]

    work_demand = demand

    @property
    def peak(self) -> Any:
        return self.cores

    @property
    def most_efficient(self) -> Any:
        return self.cores
