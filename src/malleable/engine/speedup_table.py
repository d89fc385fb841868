"""All speedups of a workload in one flat array, and plain functions that read it.

Rules and kernels are compiled and know no objects, so every class's speedup becomes a row of numbers:

    encoded[0]                number of classes m
    encoded[1]                where the encoding ends; what a rule's table holds beyond is the rule's own
    encoded[2 + 12·i : …]     the row of class i, with the columns of `speedups.base.family.Row`

The data of a table are its corners (k, s) and the pricing hull of `malleable.numerics.hull` (widths, price
and slope of each edge). The functions below are plain Python that numba compiles as it stands; they agree
with the classes to rounding, divide by nothing that may be 0, and allocate nothing. The formulas stand beside
the classes: every family of the library that has some is found here by listing the folder.

A speedup without formulas (`custom`, or a family from elsewhere) is tabulated: corners close enough for a
relative error of s below 1e-6 (`TOLERANCE`) up to its limit, flat beyond. What it demands is then a corner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from malleable import catalog
from malleable.engine.dispatch import by_code, by_code_at
from malleable.errors import ParameterError
from malleable.numerics.adaptive_grid import refined
from malleable.numerics.hull import Hull, pricing_hull
from malleable.speedups.base import ROW, Formulas
from malleable.speedups.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup

PREAMBLE, COLUMNS = 2, len(ROW)

TOLERANCE = 5e-7
"""Relative distance of a tabulated speedup from its function half-way between corners."""
WIDEST = 2.0**20
"""How far a speedup without a limit of its own is tabulated."""
MOST_POINTS = 10**6
"""Corners of a tabulated speedup. Smooth ones need some thousands, jumps up to 24 each."""


def formulas_of(family: type) -> Formulas | None:
    """The formulas of a family itself; a subclass may have changed the speedup."""
    return cast("Formulas | None", vars(family).get("formulas"))


def _with_formulas() -> list[type]:
    """The families of the library that have formulas; their places are their codes."""
    here = __name__.partition(".")[0] + "."
    kinds = sorted(kind for kind, module in catalog.kinds("speedups").items() if module.startswith(here))
    return [family for family in (catalog.find("speedups", kind) for kind in kinds) if formulas_of(family)]


FAMILIES = _with_formulas()
TABLE = FAMILIES.index(Table)
"""The code of speedups that are read off data."""
_FORMULAS = [cast("Formulas", formulas_of(family)) for family in FAMILIES]
_speed = by_code([one.speed for one in _FORMULAS])
_shape = by_code([one.shape for one in _FORMULAS])
_demand = by_code_at([one.demand for one in _FORMULAS])
_work_demand = by_code_at([one.work_demand for one in _FORMULAS])


def encode(speedups: Sequence[Speedup], widest: float = WIDEST) -> FloatArray:
    """The flat description of all speedups; `widest` limits those that must be tabulated."""
    rows = np.zeros((len(speedups), COLUMNS))
    data: list[FloatArray] = []
    end = PREAMBLE + rows.size
    for row, speedup in zip(rows, speedups, strict=True):
        row[ROW.FAMILY] = FAMILIES.index(type(speedup)) if type(speedup) in FAMILIES else TABLE
        row[ROW.PEAK], row[ROW.LEAST] = float(speedup.peak), float(speedup.most_efficient)
        if row[ROW.FAMILY] != TABLE:
            _write_parameters(row, speedup)
            continue
        (k, s), hull = _corners(speedup, widest)
        row[ROW.PEAK], row[ROW.LEAST] = hull.widths[-1], hull.widths[0]
        row[ROW.START], row[ROW.POINTS], row[ROW.VERTICES] = end, len(k), len(hull.widths)
        slopes = np.diff(hull.speeds) / np.diff(hull.widths)
        data += [k, s, hull.widths, np.minimum.accumulate(hull.prices), np.minimum.accumulate(slopes)]
        end += 2 * len(k) + 3 * len(hull.widths) - 2
    return np.concatenate([[float(len(speedups)), float(end)], rows.ravel(), *data])


def _write_parameters(row: FloatArray, speedup: Speedup) -> None:
    """The columns of a speedup with formulas."""
    own = cast("Formulas", formulas_of(type(speedup)))
    for column, name in zip((ROW.A, ROW.B), own.parameters, strict=False):
        row[column] = getattr(speedup, name)
    row[ROW.SMOOTH] = float(own.smooth)
    if own.price_forms is not None:
        row[ROW.FACTOR], row[ROW.EXPONENT], row[ROW.SHIFT] = own.price_forms(speedup)[1]


def _corners(speedup: Any, widest: float) -> tuple[tuple[FloatArray, FloatArray], Hull]:
    if type(speedup) is Table:
        return speedup.points, speedup.pricing
    k, s = tabulated(speedup, min(widest, float(getattr(speedup, "limit", widest))))
    return (k, s), pricing_hull(k, s)


def tabulated(speedup: Speedup, limit: float) -> tuple[FloatArray, FloatArray]:
    """Widths up to `limit` and their speeds, so close that straight lines miss s by at most `TOLERANCE`.

    A function that takes more than `MOST_POINTS` is refused: noise would be followed until memory ends.
    """
    limit = max(limit, 1.0)
    special = [float(speedup.peak), float(speedup.most_efficient), limit]
    k = np.concatenate([np.geomspace(1.0, limit, 1025), np.arange(1.0, min(limit, 128.0) + 1.0), special])
    widths, speeds, full = refined(
        lambda k: np.asarray(speedup(k), dtype=float), np.unique(k[k <= limit]), TOLERANCE, most=MOST_POINTS
    )
    if full:
        raise ParameterError(
            f"{speedup!r:.80} is noisy, or has too many steps: even {MOST_POINTS:,} points up to "
            f"{limit:g} cores do not follow it",
            "smooth it, give it a lower limit, or measure it into a table",
        )
    return widths, speeds


def peak(encoded: FloatArray, i: int) -> float:
    """The smallest width of the highest speed of class i; may be infinite."""
    return float(encoded[PREAMBLE + COLUMNS * i + ROW.PEAK])


def most_efficient(encoded: FloatArray, i: int) -> float:
    """The largest width of class i with the highest s(k)/k."""
    return float(encoded[PREAMBLE + COLUMNS * i + ROW.LEAST])


def speed(encoded: FloatArray, i: int, k: float) -> float:
    """s_i(k) for any k ≥ 0."""
    return _speed(encoded, PREAMBLE + COLUMNS * i, k) if k >= 1.0 else k


def shape(encoded: FloatArray, i: int, z: float) -> tuple[float, float, float]:
    """s, its elasticity e = k·s'/s, and de/dz at k = e^z, at or above the most efficient width.

    For all but tables. The search for a discounted Whittle width is in log k. With `speed` and a formula for
    e at k instead, that rule takes 1.27 to 1.39 times as long (a power in place of an exponential), and gives
    the same widths up to 2e-15 of the cores.
    """
    return _shape(encoded, PREAMBLE + COLUMNS * i, z)  # type: ignore[no-any-return]


def demand(encoded: FloatArray, i: int, price: float, weight: float) -> float:
    """argmin over k ≥ 1 of (weight + price·k)/s_i(k): the width worth buying at a price per core."""
    row = PREAMBLE + COLUMNS * i
    return _demand(encoded, row, price, weight) if price > 0.0 else float(encoded[row + ROW.PEAK])


def work_demand(encoded: FloatArray, i: int, price: float, weight: float) -> float:
    """argmax over k ≥ most_efficient of weight·s_i(k) − price·k: what GREEDY buys at that price."""
    row = PREAMBLE + COLUMNS * i
    return _work_demand(encoded, row, price, weight) if price > 0.0 else float(encoded[row + ROW.PEAK])


def has_corners(encoded: FloatArray, i: int) -> bool:
    """Whether class i's speedup is read off data, and so has corners."""
    return int(encoded[PREAMBLE + COLUMNS * i]) == TABLE


def corners(encoded: FloatArray, i: int) -> tuple[int, int]:
    """Where the corners of class i stand, and how many; their speeds stand behind them."""
    row = PREAMBLE + COLUMNS * i
    return int(encoded[row + ROW.START]), int(encoded[row + ROW.POINTS])


def vertices(encoded: FloatArray, i: int) -> tuple[int, int]:
    """Where the widths worth buying of class i stand, and how many there are."""
    start, points = corners(encoded, i)
    return start + 2 * points, int(encoded[PREAMBLE + COLUMNS * i + ROW.VERTICES])
