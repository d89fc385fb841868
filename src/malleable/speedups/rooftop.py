"""Perfectly parallel up to a number of cores, flat above: s(k) = min(k, κ).

f is infinite below κ and 0 above, so a job wants exactly κ cores at any price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.speedups.base import ALONG, ROW, Fit, Formulas, Speedup, Width, width_between

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray


def speed(encoded: FloatArray, row: int, k: float) -> float:
    """min(k, κ)."""
    return min(k, float(encoded[row + ROW.A]))


def demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:  # noqa: ARG001
    """κ at any price, whoever buys."""
    return float(encoded[row + ROW.A])


def shape(encoded: FloatArray, row: int, z: float) -> tuple[float, float, float]:
    """Flat from κ on."""
    return min(math.exp(z), float(encoded[row + ROW.A])), 0.0, 0.0


@dataclass(frozen=True)
class Rooftop(Speedup):
    """Perfectly parallel up to `cores`, flat above."""

    cores: Width

    vectorised: ClassVar[bool] = True
    formulas: ClassVar = Formulas(("cores",), speed, demand, demand, shape)
    fit: ClassVar = Fit(
        tuple((x,) for x in ALONG), lambda theta, widest: Rooftop(width_between(theta[0], widest)), kink=True
    )

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
