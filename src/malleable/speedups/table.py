"""A measured speedup: straight lines between the given points, flat after the last.

Measurements fall, are flat, or start super-linear; the widths worth buying are the vertices of their upper
concave hull in any case (see `malleable.numerics.hull`). With `hull = true` the speedup *is* that hull: a
job that is given a bad number of cores is taken to use a good one now and then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import MinLen

from malleable.errors import ParameterError
from malleable.numerics.hull import FLAT, Hull, pricing_hull, upper_hull
from malleable.speedups.base import ROW, Formulas, Positive, Speedup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray

UNIT = 1e-9
"""How far from 1 a table may say s(1) is."""


def speed(encoded: FloatArray, row: int, k: float) -> float:
    """Straight between corners, flat after the last."""
    start, points = int(encoded[row + ROW.START]), int(encoded[row + ROW.POINTS])
    j = corner_below(encoded, start, points, k)
    s0 = float(encoded[start + points + j])
    if j == points - 1:
        return s0
    k0, k1, s1 = float(encoded[start + j]), float(encoded[start + j + 1]), encoded[start + points + j + 1]
    return float(s0 + (k - k0) / (k1 - k0) * (s1 - s0))


def demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """The vertex behind the last step whose price is above price/weight."""
    vertices = int(encoded[row + ROW.VERTICES])
    widths = int(encoded[row + ROW.START]) + 2 * int(encoded[row + ROW.POINTS])
    return float(encoded[widths + _steps(encoded, widths + vertices, vertices - 1, price, weight)])


def work_demand(encoded: FloatArray, row: int, price: float, weight: float) -> float:
    """The vertex behind the last edge whose slope is above price/weight."""
    vertices = int(encoded[row + ROW.VERTICES])
    widths = int(encoded[row + ROW.START]) + 2 * int(encoded[row + ROW.POINTS])
    return float(encoded[widths + _steps(encoded, widths + 2 * vertices - 1, vertices - 1, price, weight)])


def shape(encoded: FloatArray, row: int, z: float) -> tuple[float, float, float]:
    """A polygon has none that a search could use: its corners are compared instead."""
    return speed(encoded, row, math.exp(z)), 0.0, 0.0


def corner_below(encoded: FloatArray, start: int, points: int, k: float) -> int:
    """The last of the corners whose width is at most k."""
    low, high = 0, points
    while high - low > 1:
        middle = (low + high) // 2
        if encoded[start + middle] <= k:
            low = middle
        else:
            high = middle
    return low


def _steps(encoded: FloatArray, start: int, edges: int, price: float, weight: float) -> int:
    """How many of the edges, whose prices fall, a job of this weight buys at this price."""
    low, high = 0, edges
    while low < high:
        middle = (low + high) // 2
        if encoded[start + middle] * weight > price:
            low = middle + 1
        else:
            high = middle
    return low


@dataclass(frozen=True)
class Table(Speedup):
    """Measured points, joined by straight lines; `hull` replaces them by their upper concave hull."""

    cores: Annotated[tuple[Positive, ...], MinLen(1)]
    speedup: Annotated[tuple[Positive, ...], MinLen(1)]
    hull: bool = False

    vectorised: ClassVar[bool] = True
    formulas: ClassVar = Formulas((), speed, demand, work_demand, shape)

    def check(self) -> None:
        k, s = self.cores, self.speedup
        if len(k) != len(s):
            raise ParameterError(f"cores has {len(k)} entries but speedup has {len(s)}")
        for i in range(1, len(k)):
            if k[i] <= k[i - 1]:
                raise ParameterError(f"must increase, but {k[i]:g} follows {k[i - 1]:g}", path=("cores", i))
        if k[0] != 1.0:
            raise ParameterError(
                f"must start at 1, got {k[0]:g}", "measure the job on one core too", ("cores", 0)
            )
        if abs(s[0] - 1.0) > UNIT:
            hint = f"speedup is relative to one core: divide by {s[0]:g}"
            raise ParameterError(f"must be 1 on one core, got {s[0]:g}", hint, ("speedup", 0))
        for i in range(1, len(k)):
            if s[i] < s[i - 1] and not self.hull:
                raise ParameterError(
                    f"speedup table falls from {s[i - 1]:g} at k={k[i - 1]:g} to {s[i]:g} at k={k[i]:g}",
                    "pass hull = true to use its concave hull",
                )

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """The corners of s(k): the measurements, or their hull."""
        k, s = np.array(self.cores), np.array(self.speedup)
        return upper_hull(k, s) if self.hull else (k, s)

    @cached_property
    def pricing(self) -> Hull:
        """The widths worth buying and the price of each step."""
        return pricing_hull(*self.points)

    @classmethod
    def stack(cls, members: Sequence[Self]) -> Speedup:
        stacked = object.__new__(cls)
        # Padding repeats the last corner and prices edges at 0, so that no price ever selects it.
        corners = tuple(_padded([one.points[i] for one in members]) for i in (0, 1))
        widths, speeds = (_padded([one.pricing[i] for one in members]) for i in (0, 1))
        prices = _padded([one.pricing.prices for one in members], filling=0.0)
        vars(stacked).update(points=corners, pricing=Hull(widths, speeds, prices))
        return stacked

    def speed(self, cores: FloatArray) -> FloatArray:
        (k, s), x = self.points, np.asarray(cores, dtype=float)[..., None]
        if k.shape[-1] == 1:
            return np.ones(x.shape[:-1]) * s[..., 0]
        i = np.clip((k <= x).sum(-1) - 1, 0, k.shape[-1] - 2)[..., None]
        k0, k1, s0, s1 = (_pick(array, j) for array in (k, s) for j in (i, i + 1))
        x = x[..., 0]
        share = np.clip((x - k0) / np.where(k1 > k0, k1 - k0, 1.0), 0.0, 1.0)
        return s0 + share * (s1 - s0)

    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        (k, s), x = self.points, np.asarray(cores, dtype=float)
        zero = np.zeros(x.shape)
        if k.shape[-1] == 1:
            return self.speed(x), zero, zero, zero
        with np.errstate(invalid="ignore"):
            slopes = np.nan_to_num(np.diff(s) / np.diff(k))
        i = (k <= x[..., None]).sum(-1) - 1
        slope = _pick(slopes, np.clip(i, 0, slopes.shape[-1] - 1)[..., None])
        return self.speed(x), np.where(i >= slopes.shape[-1], 0.0, slope), zero, zero

    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        l, c = np.asarray(price, dtype=float), np.asarray(weight, dtype=float)
        bought = (self.pricing.prices * c[..., None] > l[..., None]).sum(-1)
        return _pick(self.pricing.widths, bought[..., None])[()]

    def work_demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        l, c = np.asarray(price, dtype=float), np.asarray(weight, dtype=float)
        k, s, _ = self.pricing
        with np.errstate(invalid="ignore"):
            slopes = np.nan_to_num(np.diff(s) / np.diff(k))
        bought = (slopes * c[..., None] > l[..., None]).sum(-1)
        return _pick(k, bought[..., None])[()]

    @property
    def peak(self) -> Any:
        return self.pricing.widths[..., -1]

    @property
    def most_efficient(self) -> Any:
        return self.pricing.widths[..., 0]

    @cached_property
    def concave(self) -> bool:
        k, s = self.points
        return bool(np.all(s >= np.interp(k, *upper_hull(k, s)) * (1.0 - FLAT)) and np.all(np.diff(s) >= 0.0))

    def capped(self, cores: float) -> Table:
        if self.concave or cores >= self.cores[-1]:
            return self
        k, s = self.points
        inside = k < cores
        widths, speeds = np.append(k[inside], cores), np.append(s[inside], self.speed(np.array(cores)))
        return Table(tuple(widths.tolist()), tuple(speeds.tolist()))


def _padded(rows: Sequence[FloatArray], filling: float | None = None) -> FloatArray:
    """Rows of different lengths as one array, filled up with `filling` or each row's last entry."""
    lengths = np.fromiter(map(len, rows), dtype=np.intp, count=len(rows))
    shape = (len(rows), int(lengths.max()))
    flat = np.concatenate(rows)
    last = flat[np.cumsum(lengths) - 1] if filling is None else np.full(len(rows), filling)
    padded = np.broadcast_to(last[:, None], shape).copy()
    padded[np.arange(shape[1]) < lengths[:, None]] = flat
    return padded


def _pick(rows: FloatArray, index: Any) -> FloatArray:
    """Entry `index` of each row, for one shared row or one row per job."""
    if rows.ndim == 1:
        return np.asarray(np.take(rows, index)[..., 0])
    rows = np.broadcast_to(rows, (*index.shape[:-1], rows.shape[-1]))
    return np.asarray(np.take_along_axis(rows, index, -1)[..., 0])
