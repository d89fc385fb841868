"""Where things stand in a figure, worked out once for paper and page: rows, ticks, bars, cells and marks."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

APART = {"x": 0.115, "y": 0.07}
"""How far ticks stand apart at least, as a share of their axis."""
LONGEST = 5
"""Letters of a tick's text on the x axis beyond which ticks stand farther apart."""
PARTS = (tuple(range(1, 11)), (1, 2, 3, 5, 10), (1, 2, 5, 10), (1, 3, 10))
"""Round numbers of a decade, from many to few."""
GROUP = 0.8
"""Share of the room between two positions that bars take up."""
DODGE = 0.11
"""How far points of several series stand apart on an axis of names."""
OFTEN = 3
"""A text that marks this many points is told in the legend and not beside each."""
MOST_NUMBERS = 130
"""Cells of a grid up to which their numbers are written into them."""
MOST_COLUMNS = 12
CROWD = 10
"""Names on an axis from which on they slant steeply."""
MOST_LABELS = 12
"""Curves up to which each is labelled at its end; a legend lists more."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def with_data(figure: Figure) -> Figure:
    """The figure without panels that have nothing to show, unless none has."""
    there = tuple(panel for panel in figure.panels if values_along(panel, "y") or panel.marks)
    return replace(figure, panels=there) if there else figure


def rows(figure: Figure) -> list[tuple[Panel, ...]]:
    """The panels in rows of at most three; four stand in a square; many names need a whole row."""
    count = len(figure.panels)
    crowded = any(len(panel.x.categories) > CROWD for panel in figure.panels)
    wide = 1 if crowded else 2 if count == 4 else min(count, 3)
    return [figure.panels[start : start + wide] for start in range(0, count, wide)]


def known(values: Iterable[float]) -> list[float]:
    """Those that are numbers."""
    return [float(value) for value in values if math.isfinite(value)]


def values_along(panel: Panel, which: str) -> list[float]:
    """All numbers of a panel along x or y."""
    found = [value for one in panel.series for value in getattr(one, which)]
    if which == "y":
        found += [value for one in panel.series for value in (*one.low, *one.high)]
    if panel.grid is not None:
        found += list(getattr(panel.grid, which))
    return known(found)


def ticks(panel: Panel, which: str) -> list[tuple[float, str]] | None:
    """Positions and texts of the ticks along x or y if they are names or stand on a log scale; else None."""
    axis: Axis = getattr(panel, which)
    if axis.categories:
        return list(enumerate(axis.categories))
    positive = sorted({value for value in values_along(panel, which) if value > 0.0})
    if axis.scale != "log" or not positive:
        return None
    low = axis.low if axis.low and axis.low > 0.0 else positive[0]
    high = axis.high if axis.high and axis.high > 0.0 else positive[-1]
    inside = [value for value in positive if low <= value <= high]
    doubling = high <= 2**16 and bool(inside) and all(math.log2(value).is_integer() for value in inside)
    for room in (1.0, 1.7):
        least = room * APART[which] * math.log(high / low)
        places = _apart(inside, least) if doubling else _round_numbers(low, high, least)
        made = [(place, number(place, longest=1e5 if doubling else 1e4)) for place in places]
        if which == "y" or max((len(text) for _, text in made), default=0) <= LONGEST:
            break
    return made


def _apart(places: Sequence[float], least: float) -> list[float]:
    """Those of the places that stand so far apart on a log scale that their texts do not touch."""
    kept: list[float] = []
    for place in places:
        if not kept or math.log(place / kept[-1]) >= least:
            kept.append(place)
    return kept


def _round_numbers(low: float, high: float, least: float) -> list[float]:
    """Round numbers for a log scale: 1, 2, 3, …, or 1, 2, 5, or decades; equal steps if it is short."""
    if high > 5.0 * low:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        parts = next((p for p in PARTS if min(math.log(b / a) for a, b in pairwise(p)) >= least), (1, 10))
        stride = math.ceil(least / math.log(10.0))
        made = [part * 10.0**power for power in range(first, last + 1, stride) for part in parts[:-1]]
    else:
        step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9 * high) / 5.0))
        step *= next(part for part in (1.0, 2.0, 5.0, 10.0) if (high - low) / (part * step) <= 7.0)
        made = [step * count for count in range(math.floor(low / step), math.ceil(high / step) + 1)]
    inside = [float(f"{value:.12g}") for value in made if 0.999 * low <= value <= 1.001 * high]
    return _apart(inside, 0.99 * least)


def number(value: float, digits: int = 6, longest: float = 1e5) -> str:
    """A number on an axis: plain if it is short, else as a power of ten."""
    if value == 0.0 or 1e-3 <= abs(value) < longest:
        return f"{value:.{digits}g}"
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    short = f"{float(mantissa):g}"
    ten = f"10{str(int(power)).translate(SUPERSCRIPTS)}"
    return ten if short == "1" else f"{short}·{ten}"


class Bar(NamedTuple):
    """From where to where a bar stands, and its height."""

    left: float
    right: float
    height: float


def bars(panel: Panel) -> dict[int, list[Bar]]:
    """The bars of each series that has the style, by position in the panel: side by side around their x."""
    chosen = [i for i, one in enumerate(panel.series) if one.style == "bars"]
    places = sorted({_along(x, panel.x) for i in chosen for x in known(panel.series[i].x)})
    room = min((b - a for a, b in pairwise(places)), default=1.0)
    width = GROUP * room / max(len(chosen), 1)
    made: dict[int, list[Bar]] = {}
    for turn, i in enumerate(chosen):
        shift = (turn - len(chosen) / 2.0) * width
        starts = [_along(x, panel.x) + shift for x in panel.series[i].x]
        made[i] = [
            Bar(_back(start, panel.x), _back(start + width, panel.x), height)
            for start, height in zip(starts, panel.series[i].y, strict=True)
        ]
    return made


def dodged(panel: Panel, position: int) -> tuple[float, ...]:
    """The x of a series, moved a little aside if points of several stand at the same names."""
    chosen = [i for i, one in enumerate(panel.series) if one.style == "points"]
    x = panel.series[position].x
    if not panel.x.categories or position not in chosen:
        return x
    shift = (chosen.index(position) - (len(chosen) - 1) / 2.0) * min(DODGE, 0.7 / len(chosen))
    return tuple(value + shift for value in x)


def edges(centres: Sequence[float], axis: Axis) -> list[float]:
    """Borders of a grid's cells: halfway between their centres, as the axis counts."""
    at = [_along(centre, axis) for centre in centres]
    if len(at) == 1:
        inner, first, last = [], at[0] - 0.5, at[0] + 0.5
    else:
        inner = [(a + b) / 2.0 for a, b in pairwise(at)]
        first, last = 2.0 * at[0] - inner[0], 2.0 * at[-1] - inner[-1]
    return [_back(place, axis) for place in (first, *inner, last)]


def written(grid: Grid) -> list[list[str]] | None:
    """The numbers of a grid as short texts, alike in decimals; None if it is too fine to hold them."""
    if len(grid.x) * len(grid.y) > MOST_NUMBERS or len(grid.x) > MOST_COLUMNS:
        return None
    largest = max((abs(z) for row in grid.z for z in known(row)), default=0.0)
    decimals = 2 - math.floor(math.log10(largest)) if largest > 0.0 else 0
    if not -3 <= decimals <= 4:
        return [[number(z, 2) if math.isfinite(z) else "" for z in row] for row in grid.z]
    # Rounded first and added to 0, so that nothing is written as -0.
    places = max(decimals, 0)
    return [
        [f"{round(z, places) + 0.0:.{places}f}" if math.isfinite(z) else "" for z in row] for row in grid.z
    ]


class Marks(NamedTuple):
    """Points marked with the same text."""

    text: str
    points: list[tuple[float, float]]
    in_legend: bool


def marks(panel: Panel) -> list[Marks]:
    """Marked points by their text."""
    found: dict[str, list[tuple[float, float]]] = {}
    for x, y, text in panel.marks:
        found.setdefault(text, []).append((x, y))
    return [Marks(text, points, len(points) >= OFTEN) for text, points in found.items()]


def stretches(one: Series) -> list[list[tuple[float, float, float]]]:
    """The interval of a series as stretches of (x, low, high) without gaps."""
    found: list[list[tuple[float, float, float]]] = [[]]
    if one.low and one.high:
        for y, *point in zip(one.y, one.x, one.low, one.high, strict=True):
            if all(map(math.isfinite, (y, *point))):
                found[-1].append((point[0], point[1], point[2]))
            elif found[-1]:
                found.append([])
    return [stretch for stretch in found if stretch]


def alone(one: Series) -> list[bool]:
    """Which points of a line have no neighbour to be joined with; a line alone would not show them."""
    there = [False, *(math.isfinite(y) for y in one.y), False]
    return [there[i] and not there[i - 1] and not there[i + 1] for i in range(1, len(there) - 1)]


def _along(value: float, axis: Axis) -> float:
    """A position as the axis counts it."""
    return math.log(value) if axis.scale == "log" else value


def _back(place: float, axis: Axis) -> float:
    return math.exp(place) if axis.scale == "log" else place


def direct(figure: Figure) -> bool:
    """Whether every curve of the figure is labelled where it ends: one panel, and curves over numbers."""
    if len(figure.panels) != 1:
        return False
    panel = figure.panels[0]
    curves = [one for one in panel.series if one.name]
    return (
        panel.grid is None
        and not panel.x.categories
        and 1 < len(curves) <= MOST_LABELS
        and all(one.style not in {"points", "bars"} for one in curves)
    )


def end_of(one: Series) -> tuple[float, float] | None:
    """The last point of a curve that exists, farthest along x."""
    points = [(x, y) for x, y in zip(one.x, one.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
    return max(points, default=None)


def spread(places: Sequence[float], apart: float, high: float = 1.0) -> list[float]:
    """The places moved as little as needed to stand `apart` from each other, in their order, up to `high`."""
    order = sorted(range(len(places)), key=places.__getitem__)
    # Isotonic regression of the places less their shares of the gaps: groups that touch share their mean.
    groups: list[list[float]] = []  # sum, count
    for turn, i in enumerate(order):
        groups.append([places[i] - turn * apart, 1.0])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, count = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += count
    level = [total / count for total, count in groups for _ in range(int(count))]
    over = max(0.0, level[-1] + (len(order) - 1) * apart - high) if order else 0.0
    made = [0.0] * len(places)
    for turn, i in enumerate(order):
        made[i] = level[turn] + turn * apart - over
    return made


def slope(axis: Axis) -> int:
    """Degrees by which names on an axis slant if they must: the more there are, the steeper."""
    return 40 if len(axis.categories) <= CROWD else 65
