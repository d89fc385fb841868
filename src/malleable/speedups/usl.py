"""The Universal Scalability Law (Gunther): contention σ and coherency κ; the speed falls past its peak.

s(k) = k/(1 + σ(k−1) + κk(k−1)), highest at k = √((1−σ)/κ). The width worth buying at price l solves
f(k) = (1−σ−κk²)/(k²(σ+2κk−κ)) = l/c =: y, that is 2κy·k³ + (y(σ−κ)+κ)·k² = 1−σ: increasing and convex
for k ≥ 1, so Newton's method from above falls monotonically onto the root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Lt

from malleable.errors import ParameterError
from malleable.speedups.base import ROW, Fit, Formulas, NonNegative, Speedup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray

NEWTON_STEPS, COMPILED_STEPS = 80, 200
LARGEST = 1e18
"""A width beyond which nothing is bought, where cores are free and the speed never peaks."""


def speed(encoded: FloatArray, row: int, k: float) -> float:
    """k/(1 + σ(k−1) + κk(k−1))."""
    sigma, kappa = float(encoded[row + ROW.A]), float(encoded[row + ROW.B])
    return k / (1.0 + sigma * (k - 1.0) + kappa * k * (k - 1.0))


def demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """The root of 2κy·k³ + (y(σ−κ)+κ)·k² = 1−σ, y = price/weight, by Newton's method from above."""
    sigma, kappa, top = (
        float(encoded[row + ROW.A]),
        float(encoded[row + ROW.B]),
        float(encoded[row + ROW.PEAK]),
    )
    if weight <= 0.0 or price * (sigma + kappa) >= weight * (1.0 - sigma - kappa):
        return 1.0
    y = price / weight
    a, b, c = 2.0 * kappa * y, y * (sigma - kappa) + kappa, 1.0 - sigma
    k = top
    if a > 0.0:
        k = min(k, (c / a) ** (1.0 / 3.0))
    if b > 0.0:
        k = min(k, math.sqrt(c / b))
    if k == math.inf:
        return math.inf
    k = max(1.0, k)
    for _ in range(COMPILED_STEPS):
        following = max(1.0, k - (k * k * (a * k + b) - c) / (k * (3.0 * a * k + 2.0 * b)))
        done = abs(following - k) <= 1e-15 * k
        k = following
        if done:
            break
    return k


def work_demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """The root of y·d² + κk² = 1−σ with d = 1 + σ(k−1) + κk(k−1): increasing and convex, so from above."""
    sigma, kappa, top = (
        float(encoded[row + ROW.A]),
        float(encoded[row + ROW.B]),
        float(encoded[row + ROW.PEAK]),
    )
    if weight <= 0.0 or price >= weight * (1.0 - sigma - kappa):
        return 1.0
    y = price / weight
    k = top
    if sigma > 0.0:
        k = min(k, math.sqrt((1.0 - sigma) / y) / sigma)
    k = max(1.0, k)
    for _ in range(COMPILED_STEPS):
        d = 1.0 + sigma * (k - 1.0) + kappa * k * (k - 1.0)
        d1 = sigma - kappa + 2.0 * kappa * k
        above = y * d * d + kappa * k * k - (1.0 - sigma)
        following = max(1.0, k - above / (2.0 * y * d * d1 + 2.0 * kappa * k))
        done = abs(following - k) <= 1e-15 * k
        k = following
        if done:
            break
    return k


def shape(encoded: FloatArray, row: int, z: float) -> tuple[float, float, float]:
    """With d as above the elasticity is (1 − σ − κk²)/d."""
    sigma, kappa, k = float(encoded[row + ROW.A]), float(encoded[row + ROW.B]), math.exp(z)
    d = 1.0 + sigma * (k - 1.0) + kappa * k * (k - 1.0)
    rise = 1.0 - sigma - kappa * k * k
    return k / d, rise / d, -k * (2.0 * kappa * k * d + rise * (sigma - kappa + 2.0 * kappa * k)) / (d * d)


def fitted(theta: Sequence[float], widest: float) -> Usl:
    """A speedup must not fall where it is used: its peak lies at the widest measured width or beyond it."""
    contention, share = theta
    return Usl(contention, share * (1.0 - contention) / widest**2)


@dataclass(frozen=True)
class Usl(Speedup):
    """Universal Scalability Law: contention (waiting for a shared part) and coherency (all-to-all talk)."""

    contention: Annotated[float, Ge(0), Lt(1)]
    coherency: NonNegative

    vectorised: ClassVar[bool] = True
    formulas: ClassVar = Formulas(("contention", "coherency"), speed, demand, work_demand, shape, smooth=True)
    fit: ClassVar = Fit(((0.01, 0.5), (0.2, 0.1), (0.2, 0.9)), fitted)

    def check(self) -> None:
        if self.contention == 0.0 and self.coherency == 0.0:
            raise ParameterError(
                "contention and coherency are both 0, a speedup without limit",
                'use { kind = "rooftop", cores = ... } for perfectly parallel jobs',
            )

    def _overhead(self, k: FloatArray) -> FloatArray:
        return 1.0 + self.contention * (k - 1.0) + self.coherency * k * (k - 1.0)

    def speed(self, cores: FloatArray) -> FloatArray:
        return cores / self._overhead(cores)

    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k, sigma, kappa = np.asarray(cores, dtype=float), self.contention, self.coherency
        d, d1, d2 = self._overhead(k), sigma - kappa + 2.0 * kappa * k, 2.0 * kappa
        n, n1, n2 = 1.0 - sigma - kappa * k**2, -2.0 * kappa * k, -2.0 * kappa
        m = n1 * d - 2.0 * n * d1
        m1 = n2 * d - n1 * d1 - 2.0 * n * d2
        return k / d, n / d**2, m / d**3, (m1 * d - 3.0 * m * d1) / d**4

    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        sigma, kappa = self.contention, self.coherency
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            y = np.asarray(price, dtype=float) / np.asarray(weight)
            a, b, c = 2.0 * kappa * y, y * (sigma - kappa) + kappa, 1.0 - np.asarray(sigma)
            # Each term alone bounds the root from above; the smallest bound is never far from it.
            start = np.fmin(np.fmin(self.peak, np.cbrt(c / a)), np.where(b > 0.0, np.sqrt(c / b), np.inf))
            k = np.maximum(1.0, start)
            for _ in range(NEWTON_STEPS):
                step = (k * k * (a * k + b) - c) / (k * (3.0 * a * k + 2.0 * b))
                following = np.maximum(1.0, k - step)
                done = np.all(np.abs(following - k) <= 1e-15 * k)
                k = following
                if done:
                    break
        return np.where(np.isnan(k), start, k)[()]

    def work_demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        # s'(k) = y means y·d² + κk² = 1−σ with d the overhead: convex and increasing, so Newton from above.
        sigma, kappa = self.contention, self.coherency
        y = np.asarray(price, dtype=float) / np.asarray(weight)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # s'(k) < k⁻²(1−σ)/σ² bounds the width from above where the peak does not.
            far = np.sqrt((1.0 - np.asarray(sigma)) / y) / np.asarray(sigma)
            k = np.maximum(1.0, np.fmin(np.fmin(self.peak, far), LARGEST))
            for _ in range(2 * NEWTON_STEPS):
                d, slope = self._overhead(k), sigma - kappa + 2.0 * kappa * k
                above = y * d * d + kappa * k * k - (1.0 - np.asarray(sigma))
                following = np.maximum(1.0, k - above / (2.0 * y * d * slope + 2.0 * kappa * k))
                following = np.where(np.isnan(following), k, following)
                done = np.all(np.abs(following - k) <= 1e-15 * k)
                k = following
                if done:
                    break
        return k[()]

    @property
    def peak(self) -> Any:
        with np.errstate(divide="ignore"):
            ratio = (1.0 - np.asarray(self.contention)) / np.asarray(self.coherency, dtype=float)
        return np.maximum(1.0, np.sqrt(ratio))[()]
