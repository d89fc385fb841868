"""One panel on the page: its lines, bands, bars, heat map and marks as traces of plotly.js."""

from __future__ import annotations

import html
import math
import textwrap
from typing import TYPE_CHECKING, Any

from malleable.plots import _layout as layout
from malleable.plots import _style
from malleable.plots._arrangement import LONGEST, names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.plots.figures import Axis, Grid, Panel, Series

DIGITS = 8
"""Significant digits that are kept: more than any screen shows."""


class Traces:
    """The traces of a panel; `seen` are the names that stand in the legend already."""

    def __init__(self, panel: Panel, number: int, known: dict[str, _style.Look], seen: set[str]) -> None:
        self.panel, self.number, self.known, self.seen = panel, number, known, seen
        self.x, self.y, self.colours = names(number)
        above = [value for value in layout.values_along(panel, "y") if value > 0.0]
        # A log scale has no place for an interval that reaches down to 0.
        self.floor = 0.9 * min(above, default=1.0) if panel.y.scale == "log" else -math.inf
        self.place = {"xaxis": self.x.replace("axis", ""), "yaxis": self.y.replace("axis", "")}

    def all(self) -> list[dict[str, Any]]:
        """Everything drawn in it, from the back to the front."""
        panel, bars = self.panel, layout.bars(self.panel)
        made = [self.heat(panel.grid)] if panel.grid is not None else []
        made += [self.band(one) for one in panel.series if one.style not in {"points", "bars"}]
        for position, one in enumerate(panel.series):
            made.append(self.bars(one, bars[position]) if position in bars else self.line(one, position))
        made += [self.marks(marks) for marks in layout.marks(panel)]
        return [{**trace, **self.place} for trace in made if trace]

    def line(self, one: Series, position: int) -> dict[str, Any]:
        """A series of points: joined or not, with error bars if it is not joined."""
        style = self.known[one.name]
        dash = "second" if style.second and one.style not in _style.DASHES else one.style
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": {"points": "markers", "both": "lines+markers"}.get(one.style, "lines"),
            "x": _plain(layout.dodged(self.panel, position)),
            "y": _plain(one.y),
            "connectgaps": False,
            "line": {
                "color": style.colour,
                "width": 1.0 if one.style == "thin" else 2.2,
                "dash": _style.DASHES[dash][1] if dash in _style.DASHES else "solid",
            },
            "marker": {"color": style.colour, "symbol": style.sign[1], "size": 8},
            "opacity": 0.75 if one.style == "thin" else 1.0,
            **self.named(one),
        }
        if trace["mode"] == "lines" and any(layout.alone(one)):
            trace |= {"mode": "lines+markers"}
            trace["marker"] = {
                **trace["marker"],
                "size": [8 if lonely else 0 for lonely in layout.alone(one)],
            }
        return trace | (_errors(one) if one.style == "points" else {})

    def bars(self, one: Series, bars: list[layout.Bar]) -> dict[str, Any]:
        """A series of bars."""
        style = self.known[one.name]
        trace = {
            "type": "bar",
            "x": _plain(one.x),
            "y": _plain(one.y),
            "marker": {"color": style.colour, "pattern": {"shape": "/" if style.second else ""}},
            **_errors(one, "#8A8A8A"),
            **self.named(one),
        }
        if self.panel.x.scale == "linear":
            trace["offset"] = _plain(bar.left - x for bar, x in zip(bars, one.x, strict=True))
            trace["width"] = _plain(bar.right - bar.left for bar in bars)
        return trace

    def band(self, one: Series) -> dict[str, Any]:
        """The intervals of a series as areas behind its line."""
        x: list[float | None] = []
        y: list[float | None] = []
        stretches = layout.stretches(one)
        for stretch in stretches:
            across, low, high = zip(*stretch, strict=True)
            x += [*across, *reversed(across), None]
            y += [*(max(value, self.floor) for value in low), *reversed(high), None]
        if not x:
            return {}
        red, green, blue = (int(self.known[one.name].colour[i : i + 2], 16) for i in (1, 3, 5))
        colour = f"rgba({red},{green},{blue},0.2)"
        return {
            "type": "scatter",
            "mode": "lines",
            "x": [None if value is None else _digits(value) for value in x],
            "y": [None if value is None else _digits(value) for value in y],
            # The interval of a point that stands alone is an area without width, so it has a rim.
            "line": {"width": 1.3 if min(map(len, stretches)) == 1 else 0.0, "color": colour},
            "fill": "toself",
            "fillcolor": colour,
            "hoverinfo": "skip",
            "legendgroup": in_lines(one.name) or None,
            "showlegend": False,
        }

    def named(self, one: Series) -> dict[str, Any]:
        """Name, place in the legend (once per figure), and what is shown beside a point."""
        first = bool(one.name) and one.name not in self.seen
        self.seen.add(one.name)
        axis, name = self.panel.x, in_lines(one.name)
        made: dict[str, Any] = {"name": name, "legendgroup": name or None, "showlegend": first}
        across = "%{x:.6~g}"
        if axis.categories:
            made["text"] = [_label(x, axis) for x in one.x]
            made["textposition"] = "none" if one.style == "bars" else None
            across = "%{text}"
        lines = [name, f"{safe(axis.title)}: {across}", f"{safe(self.panel.y.title)}: %{{y:.6~g}}"]
        if one.notes:
            made["customdata"] = [safe(note) for note in one.notes]
            lines.append("%{customdata}")
        made["hovertemplate"] = "<br>".join(line for line in lines if line) + "<extra></extra>"
        return made

    def heat(self, grid: Grid) -> dict[str, Any]:
        """Numbers over the plane as colours."""
        texts, across, along = layout.written(grid), self.panel.x, self.panel.y
        return {
            "type": "heatmap",
            "x": _plain(layout.edges(grid.x, across)),
            "y": _plain(layout.edges(grid.y, along)),
            "z": [_plain(row) for row in grid.z],
            "customdata": [[[_label(x, across), _label(y, along)] for x in grid.x] for y in grid.y],
            "hovertemplate": (
                f"{safe(across.title)}: %{{customdata[0]}}<br>{safe(along.title)}: "
                f"%{{customdata[1]}}<br>{safe(grid.title or 'value')}: %{{z:.6~g}}<extra></extra>"
            ),
            "coloraxis": self.colours,
            **({} if texts is None else {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 11}}),
        }

    def marks(self, marks: layout.Marks) -> dict[str, Any]:
        """Marked points; those without a height stand on the upper rim."""
        legend = f"× {marks.text}"
        first = marks.in_legend and legend not in self.seen
        self.seen.add(legend)
        text = safe(marks.text)
        return {
            "type": "scatter",
            "mode": "markers" if marks.in_legend else "markers+text",
            "x": _plain(x for x, _ in marks.points),
            "y": _plain(y if math.isfinite(y) else self.rim() for _, y in marks.points),
            "marker": {"symbol": "x", "size": 9, "color": _style.MARK},
            "text": [in_lines(marks.text, 24)] * len(marks.points),
            "textposition": [self.beside(x) for x, _ in marks.points],
            "textfont": {"color": _style.MARK, "size": 12},
            "hovertext": [text] * len(marks.points),
            "hoverinfo": "text",
            "name": in_lines(marks.text),
            "legendgroup": safe(legend),
            "showlegend": first,
            "cliponaxis": False,
        }

    def rim(self) -> float:
        """The largest y that there is."""
        return self.panel.y.high or max(layout.values_along(self.panel, "y"), default=1.0)

    def beside(self, x: float) -> str:
        """On which side of a point there is room for a text."""
        values = layout.values_along(self.panel, "x") or [x]
        low, high = min(values), max(values)
        if self.panel.x.scale == "log" and min(low, x) > 0.0:
            low, high, x = math.log(low), math.log(high), math.log(x)
        return "bottom left" if x > low + 0.55 * (high - low) else "bottom right"


def _errors(one: Series, colour: str | None = None) -> dict[str, Any]:
    """Error bars, in the colour of the series unless one is given."""
    if not (one.low and one.high):
        return {}
    triples = list(zip(one.y, one.low, one.high, strict=True))
    return {
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": _plain(max(high - y, 0.0) for y, _, high in triples),
            "arrayminus": _plain(max(y - low, 0.0) for y, low, _ in triples),
            "thickness": 1.3,
            "width": 4,
            "color": colour,
        }
    }


def in_lines(text: str, letters: int = LONGEST) -> str:
    """A text in lines that fit a phone."""
    return "<br>".join(map(safe, textwrap.wrap(text, letters)))


def _label(value: float, axis: Axis) -> str:
    """A position for people."""
    return safe(axis.categories[round(value)]) if axis.categories else f"{value:.6g}"


def safe(text: str) -> str:
    """A text that plotly shows as it is: it would read tags, $formulas$, and in some places %{values}."""
    return html.escape(text, quote=False).replace("$", "&#36;").replace("%{", "%&#123;")


def _plain(values: Iterable[float]) -> list[float | None]:
    """Numbers as JSON holds them: None for those that there are not."""
    return [_digits(value) if math.isfinite(value) else None for value in values]


def _digits(value: float) -> float:
    return float(f"{float(value):.{DIGITS}g}")
