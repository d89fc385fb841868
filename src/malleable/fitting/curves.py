"""Curves without a formula: the concave hull of the measurements, and the concave curve nearest to them.

The hull is that of `malleable.numerics.hull`, the least concave curve that no measurement lies above. The
nearest concave curve is a least-squares fit: concave, non-falling functions with corners at the measured
widths are r(k) = c + Σⱼ bⱼ·(min(k, kⱼ) − k₁) with c, bⱼ ≥ 0, so it is a problem of non-negative least squares
(Lawson and Hanson 1974; `scipy.optimize.nnls`). It averages the noise that the hull follows upwards.

Where one core was not measured, both start from (0, 0): the job is taken to be perfectly parallel up to its
most efficient measured width. After the widest width both are flat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import Speedup
from malleable.numerics.hull import upper_hull
from malleable.speedups.table import Table

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.fitting.measurements import Points

DIGITS = 6
"""Significant digits of fitted parameters: more than measurements have, and few enough to read."""
SAME = 1e-9
"""Relative gain below which a corner is rounding."""


@dataclass(frozen=True)
class Curve:
    """A fitted speedup and the rate on one core that it goes with."""

    family: str
    speedup: Speedup
    rate: float
    parameters: int
    """How many numbers were fitted, the rate among them."""
    position: tuple[float, ...] = ()
    """Where the search of a parametric fit ended, a good place to start the next one."""

    def log_rates(self, widths: FloatArray) -> FloatArray:
        """The logarithm of the fitted rate at each width."""
        return np.log(self.rate * np.asarray(self.speedup(widths)))


def rounded(value: float) -> float:
    """The value with as many digits as are printed, so that what is printed is what was fitted."""
    return float(f"{value:.{DIGITS}g}")


def hull(points: Points) -> Curve:
    """The upper concave hull of the points."""
    return _from_corners("hull", *_from_origin(points, np.exp(points.log_rates)), len(points.widths))


def concave(points: Points) -> Curve:
    """The concave, non-falling curve nearest to the points, by relative error."""
    rates, root = np.exp(points.log_rates), np.sqrt(points.weights)
    k, corners = points.widths, concave_corners(points.widths)
    # Imported here: a scheduler that learns speedups starts faster without.
    from scipy.optimize import nnls  # noqa: PLC0415

    found, _ = nnls(corners / rates[:, None] * root[:, None], root)
    return _from_corners("concave", *_from_origin(points, corners @ found), len(k))


def concave_corners(widths: FloatArray) -> FloatArray:
    """Column j: the j-th of the functions whose non-negative sums are concave and do not fall, at all widths.

    Where the first width is 1 the first column is constant; else it is linear through the origin.
    """
    corners = np.minimum(widths[:, None], widths[None, :])
    if widths[0] == 1.0:
        corners[:, 1:] -= 1.0
    return np.asarray(corners)


def _from_origin(points: Points, rates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Widths and rates of the corners, with the origin where one core was not measured."""
    if points.widths[0] == 1.0:
        return points.widths, rates
    return np.append(0.0, points.widths), np.append(0.0, rates)


def _from_corners(family: str, widths: FloatArray, rates: FloatArray, parameters: int) -> Curve:
    """The speedup with these corners, relative to one core."""
    k, r = upper_hull(widths, rates)
    one = float(np.interp(1.0, k, r))
    cores, speeds = [1.0], [1.0]
    for width, rate in zip(k.tolist(), r.tolist(), strict=True):
        if width > 1.0 and rate / one > speeds[-1] * (1.0 + SAME):
            cores.append(width)
            speeds.append(rounded(rate / one))
    return Curve(family, Table(tuple(cores), tuple(speeds), hull=True), one, parameters)
