"""What a figure shows: panels with axes, series of points and grids of numbers; not how it looks.

`malleable.plots` draws a `Figure` interactively on a page, and as SVG, PNG and PDF on paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.statistics.intervals import Estimate


@dataclass(frozen=True)
class Axis:
    """An axis: what it measures, and how."""

    title: str
    scale: str = "linear"
    """`linear` or `log`."""
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()
    """Names of the positions 0, 1, 2, … if the axis has names and not numbers."""


@dataclass(frozen=True)
class Series:
    """Points (x, y) with a name in the legend; those that do not exist are NaN."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    """Lower ends of the intervals, if there are any."""
    high: tuple[float, ...] = ()
    style: str = "line"
    """`line`, `dashed`, `dotted`, `points` (error bars if there are intervals), `both`, `bars`, `thin`."""
    colour: int | None = None
    """Number in the palette; the same number is the same colour in every figure. None: the next one."""
    notes: tuple[str, ...] = ()
    """A remark for each point, shown beside it on the page."""

    @classmethod
    def of(
        cls,
        name: str,
        x: Iterable[float],
        y: Iterable[Estimate],
        style: str = "line",
        colour: int | None = None,
        notes: tuple[str, ...] = (),
    ) -> Series:
        """Estimates as a series; an interval that is the whole line is not drawn."""
        shown = [(e.mean, e.low, e.high) if isfinite(e.half_width) else (e.mean, nan, nan) for e in y]
        mean, low, high = (tuple(point[end] for point in shown) for end in range(3))
        return cls(name, tuple(x), mean, low, high, style, colour, notes)


@dataclass(frozen=True)
class Grid:
    """Numbers over a plane: z[row][column] at y[row], x[column]."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[tuple[float, ...], ...]
    title: str = ""
    """What z measures."""
    middle: float | None = None
    """The value that is neither good nor bad: colours part there."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    grid: Grid | None = None
    title: str = ""
    marks: tuple[tuple[float, float, str], ...] = ()
    """Points to mark with a text: (x, y, text), such as an infeasible setting."""


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with a caption that says what to see."""

    name: str
    """Also the name of its files."""
    title: str
    caption: str
    panels: tuple[Panel, ...]
