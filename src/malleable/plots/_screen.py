"""Figures on the page: traces and layout for plotly.js, checked by plotly's own schema.

Panels stand side by side on a wide screen and one above another on a phone; both arrangements are worked
out here and put into `layout.meta`, so that the page only has to choose.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from malleable.plots import _layout as layout
from malleable.plots import _style
from malleable.plots._arrangement import arrangements, letters, names, slanting
from malleable.plots._screen_panel import Traces, in_lines, safe

if TYPE_CHECKING:
    from malleable.plots.figures import Axis, Figure, Panel

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def described(figure: Figure) -> dict[str, Any]:
    """Traces and layout of a figure."""
    known, seen = _style.looks(figure), set[str]()
    traces, settings = [], _common()
    for number, panel in enumerate(figure.panels):
        traces += Traces(panel, number, known, seen).all()
        frame = _Frame(panel, number, letters(figure))
        settings |= frame.axes()
        settings["annotations"] += frame.title()
    settings["meta"] = arrangements(figure)
    drawn = go.Figure({"data": traces, "layout": settings})
    whole: dict[str, Any] = json.loads(drawn.to_json())
    return {"data": whole["data"], "layout": whole["layout"]}


def _common() -> dict[str, Any]:
    return {
        "template": "none",
        "font": {"family": FONT, "size": 13},
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "legend": {"orientation": "h", "x": 0.0, "xanchor": "left", "yanchor": "bottom", "tracegroupgap": 0},
        "annotations": [],
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "bargap": 1.0 - layout.GROUP,
        "autosize": True,
    }


class _Frame:
    """What stands around a panel: its axes, the scale of its colours, and its title."""

    def __init__(self, panel: Panel, number: int, width: int) -> None:
        self.panel, self.width = panel, width
        self.x, self.y, self.colours = names(number)
        self.place = {"xaxis": self.x.replace("axis", ""), "yaxis": self.y.replace("axis", "")}

    def axes(self) -> dict[str, Any]:
        """The pair of axes, and the colours if there is a grid."""
        made = {
            self.x: self.axis("x", self.panel.x) | {"anchor": self.place["yaxis"]},
            self.y: self.axis("y", self.panel.y) | {"anchor": self.place["xaxis"]},
        }
        if self.panel.grid is not None:
            grid = self.panel.grid
            low, high = _style.span(grid)
            scale = _style.SEQUENTIAL if grid.middle is None else _style.DIVERGING
            made[self.colours] = {
                "cmin": low,
                "cmax": high,
                "colorscale": [[i / (len(scale) - 1), colour] for i, colour in enumerate(scale)],
                "colorbar": {
                    "title": {"text": safe(grid.title), "side": "right"},
                    "thickness": 12,
                    "outlinewidth": 0,
                    "xanchor": "left",
                    "yanchor": "middle",
                    "lenmode": "fraction",
                },
            }
        return made

    def axis(self, which: str, axis: Axis) -> dict[str, Any]:
        """An axis: title, scale, ends, ticks."""
        made: dict[str, Any] = {
            "title": {
                "text": in_lines(axis.title, self.width if which == "x" else 34),
                "standoff": 8,
                "font": {"size": 13},
            },
            "type": axis.scale,
            "automargin": True,
            "zeroline": False,
            "showline": True,
            "ticks": "outside",
            "ticklen": 4,
            "showgrid": not axis.categories and self.panel.grid is None,
        }
        low, high = self.ends(which, axis)
        if low is not None and high is not None:
            made["range"] = [low, high]
        else:
            # A range with an open end would be forgotten as soon as the page changes its width.
            made["autorangeoptions"] = {"minallowed": low, "maxallowed": high}
        ticks = layout.ticks(self.panel, which)
        if ticks is not None:
            made |= {"tickmode": "array", "tickvals": [place for place, _ in ticks]}
            made["ticktext"] = [safe(text) for _, text in ticks]
        if which == "x":
            made |= {"tickangle": -layout.slope(axis) if slanting(axis) else 0, "ticklabeloverflow": "allow"}
        return made

    def ends(self, which: str, axis: Axis) -> tuple[float | None, float | None]:
        """The ends of an axis as plotly counts them; None where it is to find one itself."""
        low, high = axis.low, axis.high
        if low is None and high is None:
            if self.panel.grid is not None:
                borders = layout.edges(getattr(self.panel.grid, which), axis)
                low, high = min(borders), max(borders)
            elif axis.categories:
                low, high = -0.6, len(axis.categories) - 0.4
        counted = (math.log10(end) if end is not None and axis.scale == "log" else end for end in (low, high))
        first, last = counted
        return first, last

    def title(self) -> list[dict[str, Any]]:
        """The panel's title, above its left end."""
        if not self.panel.title:
            return []
        return [
            {
                "text": f"<b>{in_lines(self.panel.title, self.width)}</b>",
                "xref": f"{self.place['xaxis']} domain",
                "yref": f"{self.place['yaxis']} domain",
                "x": 0.0,
                "y": 1.0,
                "xanchor": "left",
                "yanchor": "bottom",
                "yshift": 4,
                "align": "left",
                "showarrow": False,
            }
        ]
