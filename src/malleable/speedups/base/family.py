"""What a family of speedups may give beside its class, so that it is as fast as any, and can be fitted.

`formulas` are plain functions that the engine compiles: they read a speedup's row of an encoded table
(`engine.speedup_table`) in place of an object. `fit` says how to search for the parameters. Both are found
with the class, by listing the folder; a family that gives neither is tabulated, and cannot be fitted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.numerics.places import places

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Row(NamedTuple):
    """What stands in a row of the encoding."""

    FAMILY: int
    A: int
    B: int
    """The parameters of the family, in their order, or 0."""
    PEAK: int
    LEAST: int
    """The smallest width of the highest speed, and the most efficient width."""
    START: int
    POINTS: int
    VERTICES: int
    """Of a table: where its data stand, how many corners it has, and how many vertices its hull."""
    SMOOTH: int
    """1 if s is strictly concave from one core on, so that any job worth a core buys s′(k) = price/weight."""
    FACTOR: int
    EXPONENT: int
    SHIFT: int
    """Of `PriceForm`, for what GREEDY buys; an exponent of 0 where there is no such form."""


ROW = places(Row)


class PriceForm(NamedTuple):
    """A demand in closed form: factor·(weight/price)^exponent − shift, but at least one core."""

    factor: float
    exponent: float
    shift: float = 0.0


class Formulas(NamedTuple):
    """The formulas of a family on numbers; they are given widths of at least one core, and prices above 0."""

    parameters: tuple[str, ...]
    """The fields that stand in A and B of a row."""
    speed: Callable[..., float]
    """speed(encoded, row, k): s(k)."""
    demand: Callable[..., float]
    """demand(encoded, row, price, weight): what WHAM buys, argmin (weight + price·k)/s(k)."""
    work_demand: Callable[..., float]
    """work_demand(encoded, row, price, weight): what GREEDY buys, argmax weight·s(k) − price·k."""
    shape: Callable[..., tuple[float, float, float]]
    """shape(encoded, row, z): s, its elasticity e = k·s′/s, and de/dz at k = e^z ≥ k_e."""
    smooth: bool = False
    """Whether s is strictly concave and k_e = 1, with any parameters."""
    price_forms: Callable[[Any], tuple[PriceForm, PriceForm]] | None = None
    """What WHAM and what GREEDY buy, where both have a closed form."""


STARTS = 6
"""Starts of a search for a kink."""
ALONG = tuple((i + 0.5) / STARTS for i in range(STARTS))
"""Those starts."""


class Fit(NamedTuple):
    """How a family is fitted: a search over numbers in the unit interval."""

    starts: tuple[tuple[float, ...], ...]
    build: Callable[[Sequence[float], float], Any]
    """The speedup of such numbers, given the widest measured width."""
    kink: bool = False
    """Whether speedups have a kink; where nothing tells two families apart, it is the one without."""


def width_between(share: float, widest: float) -> float:
    """From 1 to a little beyond the widest measured width, evenly in the logarithm."""
    return float((1.25 * widest) ** share)


LARGE_LOGARITHM = 709.7
"""Of the largest float, nearly."""


def bounded_power(base: float, exponent: float) -> float:
    """base^exponent, infinite where it would overflow."""
    if base <= 0.0:
        return 0.0
    if math.log(base) * exponent > LARGE_LOGARITHM:
        return math.inf
    return float(base**exponent)
