"""A number and its confidence interval, from nearly independent batches and, where it pays, controls.

Batches b = 1..B give influence values z_b: by how much batch b pulls the estimate θ away, so that Σ z_b = 0
and Var θ ≈ Var z / B. The plain interval is θ ± t_{B−1} √(s²/B).

Control variates (Lavenberg & Welch 1981) are numbers C_b of known mean 0 that go up and down with z_b.
Regressing z on 1 and C, the intercept estimates θ with the part that C explains taken out:

    θ' = θ − β·C̄,    Var θ' = s²_{z|C} (1/B + C̄ᵀ S⁻¹ C̄),    S = Σ (C_b − C̄)(C_b − C̄)ᵀ,

with B − q − 1 degrees of freedom for q controls. With the thin SVD  C − C̄ = U D Vᵀ  and g = D⁻¹Vᵀ C̄ this
is θ − (Uᵀz)·g and 1/B + g·g, and controls that depend on one another drop out with their zero D.

Neighbouring batches of one run with lag-1 autocorrelation r > 0 understate Var θ; as in Skart (Tafazzoli &
Wilson 2011) it is multiplied by (1 + r)/(1 − r), the ratio for an AR(1) process. Independent batches pay
for it with intervals 5 % wider; without it, AR(1) series a hundred relaxation times long are covered 91 % of
the time instead of 94 %. Replications need none.

The mean of skewed batches and their spread go together: where the mean is too low, the interval is too short.
In runs that are not long, Student's quantile t is therefore replaced by Johnson's (1978) as modified by Hall
(1992), also used in Skart, at both ends, with γ the batches' skewness:

    G(t) = [(1 + 6β(t − β))^{1/3} − 1] / (2β),   β = γ/(6√B),   interval θ − G(±t)·√Var,

and a tenth is added, so that each of many settings is covered, and not only their average.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf, isfinite, nan

import numpy as np

from malleable.contracts import FloatArray

SAFETY = 1.1
"""By how much intervals of skewed batches are longer than the correction makes them."""
NEGLIGIBLE = 1e-9
"""Singular values below this share of the largest are rounding errors."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its confidence interval, the whole line where there is too little to tell."""

    mean: float = nan
    low: float = -inf
    high: float = inf

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2.0

    @property
    def relative_half_width(self) -> float:
        """Half-width in units of the mean; infinite when there is no mean to compare with."""
        if self.half_width == 0.0:
            return 0.0
        return self.half_width / abs(self.mean) if self.mean != 0.0 and isfinite(self.mean) else inf

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit: everything times a positive factor."""
        return Estimate(self.mean * factor, self.low * factor, self.high * factor)

    def over(self, unit: float) -> Estimate:
        """The same as multiples of a positive unit."""
        return Estimate(self.mean / unit, self.low / unit, self.high / unit)

    def shifted(self, by: float) -> Estimate:
        """Everything larger by a known number."""
        return Estimate(self.mean + by, self.low + by, self.high + by)

    def __str__(self) -> str:
        return f"{self.mean:.6g} ± {self.half_width:.2g}"


def around(centre: Estimate, other: Estimate) -> Estimate:
    """The first estimate, its interval as far to either side as the wider of both."""
    if not (isfinite(centre.mean) and isfinite(other.mean)):
        return centre
    below = max(centre.mean - centre.low, other.mean - other.low)
    above = max(centre.high - centre.mean, other.high - other.mean)
    return Estimate(centre.mean, centre.mean - below, centre.mean + above)


@dataclass(frozen=True)
class Controls:
    """Which control variates were used: how many, and by what factor they cut the variance."""

    number: int = 0
    variance_reduction: float = 1.0
    """Variance of the plain estimate over that of the reported one, the loss of degrees counted."""

    @property
    def used(self) -> bool:
        """Whether the reported numbers rest on control variates."""
        return self.number > 0


def reached(estimate: Estimate, precision: float | None) -> bool:
    """Whether the relative half-width is at most `precision`; always true when none is asked for."""
    return precision is None or estimate.relative_half_width <= precision


@cache
def t_quantile(freedom: int, confidence: float) -> float:
    """The two-sided Student quantile: P(|T| ≤ t) = confidence."""
    # scipy.stats would take most of a second to import, and this only the first time it is needed.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(freedom, 0.5 + confidence / 2.0))


@dataclass(frozen=True)
class Basis:
    """Controls in orthonormal form: U and g of the module's equations."""

    directions: FloatArray
    shift: FloatArray

    @property
    def size(self) -> int:
        """Number of independent controls."""
        return len(self.shift)

    @classmethod
    def of(cls, controls: FloatArray) -> Basis:
        """Orthonormalise controls (batches, controls); constant and dependent ones drop out."""
        mean = controls.mean(axis=0)
        centred = controls - mean
        scale = np.sqrt((centred**2).sum(axis=0))
        moving = scale > NEGLIGIBLE * np.sqrt((controls**2).sum(axis=0))
        if not moving.any():
            return cls(np.zeros((len(controls), 0)), np.zeros(0))
        left, values, right = np.linalg.svd(centred[:, moving] / scale[moving], full_matrices=False)
        kept = values > NEGLIGIBLE * values[0]
        shift = right[kept] @ (mean[moving] / scale[moving]) / values[kept]
        return cls(left[:, kept], shift)

    def rest(self, values: FloatArray) -> FloatArray:
        """What the controls do not explain of values (batches,), but for their mean."""
        left: FloatArray = values - self.directions @ (self.directions.T @ values)
        return left


def fit(
    point: float,
    influence: FloatArray,
    basis: Basis,
    confidence: float,
    *,
    independent: bool,
    skewed: bool = False,
) -> Estimate:
    """The estimate and its interval from influence values (batches,), by regression on the controls.

    With `skewed` the ends are corrected for the skewness of the batches.
    """
    batches = len(influence)
    freedom = batches - basis.size - 1
    if freedom < 1 or not isfinite(point):
        return Estimate(point)
    centred = influence - influence.mean()
    slopes = basis.directions.T @ centred
    residuals = basis.rest(centred)
    variance = float(residuals @ residuals) / freedom * (1.0 / batches + float(basis.shift @ basis.shift))
    if not independent:
        variance *= correlation_factor(residuals)
    mean = point - float(slopes @ basis.shift)
    quantile, error = t_quantile(freedom, confidence), variance**0.5
    if skewed and batches > 2 and error > 0.0:
        beta, unit = skewness(residuals) / (6.0 * batches**0.5), SAFETY * error
        return Estimate(mean, mean - bent(quantile, beta) * unit, mean - bent(-quantile, beta) * unit)
    half = quantile * error
    return Estimate(mean, mean - half, mean + half)


def skewness(values: FloatArray) -> float:
    """The skewness of a sample of at least three, without its bias."""
    count, centred = len(values), values - values.mean()
    scale = float(np.sqrt((centred**2).mean()))
    correction = count**2 / ((count - 1.0) * (count - 2.0))
    return float(((centred / scale) ** 3).mean()) * correction if scale > 0.0 else 0.0


def bent(quantile: float, beta: float) -> float:
    """G of the module's equations: a quantile of the studentised mean of skewed values."""
    if abs(beta) < NEGLIGIBLE:
        return quantile
    return (float(np.cbrt(1.0 + 6.0 * beta * (quantile - beta))) - 1.0) / (2.0 * beta)


def correlation_factor(values: FloatArray) -> float:
    """By how much positive autocorrelation of batches raises the variance of their mean."""
    r = min(max(lag_one(values), 0.0), 0.9)
    return (1.0 + r) / (1.0 - r)


def lag_one(values: FloatArray) -> float:
    """Lag-1 autocorrelation by von Neumann's ratio, which has mean 0 for independent values."""
    centred = values - values.mean()
    square, steps = float(centred @ centred), np.diff(values)
    return 1.0 - float(steps @ steps) / (2.0 * square) if square > 0.0 else 0.0


def correlated(values: FloatArray, quantile: float = 1.2816) -> bool:
    """Von Neumann's test: is the lag-1 autocorrelation larger than chance gives one time in ten?"""
    count = len(values)
    return count > 3 and lag_one(values) * ((count**2 - 1.0) / (count - 2.0)) ** 0.5 > quantile
