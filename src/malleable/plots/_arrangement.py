"""Where the panels of a figure stand on a page: side by side if it is wide, one above another if not.

plotly counts in shares of the drawing area, people in pixels; the legend stands above the panels, in a
height that is judged by the length of its texts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.plots import _layout as layout

if TYPE_CHECKING:
    from malleable.plots.figures import Axis, Figure

BOTTOM = 62
"""Pixels below the last panel, for ticks and a title."""
BETWEEN = 92
"""Pixels between two rows: ticks and title of one, title of the next."""
TITLE = 26
ENTRY = 21
"""Height of a line in the legend."""
LONGEST = 36
"""Letters of a line in the legend."""
LETTER = 7.2
"""Width of a letter in the legend."""


class Screen(NamedTuple):
    """What is known of a screen."""

    width: int
    """The least one, in pixels."""
    height: int
    """Of a panel."""
    columns: int
    """How many panels stand side by side at most."""
    gap: float
    """Between two panels, as a share of the width."""
    bar: float
    """What a scale of colours takes, as a share of the width."""


WIDE, NARROW = Screen(640, 330, 3, 0.1, 0.11), Screen(330, 270, 1, 0.0, 0.22)


def names(number: int) -> tuple[str, str, str]:
    """What plotly calls the axes and the colours of a panel."""
    tail = "" if number == 0 else str(number + 1)
    return f"xaxis{tail}", f"yaxis{tail}", f"coloraxis{tail}"


def arrangements(figure: Figure) -> dict[str, dict[str, Any]]:
    """Settings for a wide and for a narrow screen, by the names that plotly's relayout knows."""
    return {"wide": _arranged(figure, WIDE), "narrow": _arranged(figure, NARROW)}


def _arranged(figure: Figure, screen: Screen) -> dict[str, Any]:
    columns = min(len(layout.rows(figure)[0]), screen.columns)
    rows = math.ceil(len(figure.panels) / columns)
    heading = heading_height(figure)
    between = BETWEEN + max(map(_slant, (panel.x for panel in figure.panels))) + max(heading - TITLE, 0)
    tall = rows * screen.height + (rows - 1) * between
    width = (1.0 - screen.gap * (columns - 1)) / columns
    legend = ENTRY * legend_lines(figure, screen.width)
    made: dict[str, Any] = {
        "height": tall + heading + legend + BOTTOM + between - BETWEEN,
        "margin": {"l": 62, "r": 14, "t": heading + legend + 6, "b": BOTTOM - 8},
        "legend.y": 1.0 + heading / tall,
        "font.size": 13 if columns > 1 or screen is WIDE else 12,
    }
    for number, panel in enumerate(figure.panels):
        x, y, colours = names(number)
        left = (number % columns) * (width + screen.gap)
        right = left + width
        upper = 1.0 - (number // columns) * (screen.height + between) / tall
        lower = max(upper - screen.height / tall, 0.0)
        if panel.grid is not None:
            right -= screen.bar
            made |= {f"{colours}.colorbar.x": right + 0.01, f"{colours}.colorbar.y": (lower + upper) / 2.0}
            made[f"{colours}.colorbar.len"] = upper - lower
        made |= {f"{x}.domain": [left, right], f"{y}.domain": [lower, upper]}
    return made


def slanting(axis: Axis) -> bool:
    """Whether the names on an axis are too long to stand beside one another."""
    return bool(axis.categories) and sum(map(len, axis.categories)) > 24


def _slant(axis: Axis) -> int:
    """Pixels that slanting names need below the axis."""
    share = math.sin(math.radians(layout.slope(axis)))
    return round(share * LETTER * max(map(len, axis.categories))) if slanting(axis) else 0


def letters(figure: Figure) -> int:
    """Letters that fit above a panel or below it, on any screen."""
    return 29 if len(layout.rows(figure)[0]) == WIDE.columns else 38


def heading_height(figure: Figure) -> int:
    """Pixels that the titles of panels take."""
    lines = max(math.ceil(len(panel.title) / letters(figure)) for panel in figure.panels)
    return TITLE + (lines - 1) * ENTRY if lines else 8


def legend_lines(figure: Figure, width: int) -> int:
    """How many lines the legend takes; plotly makes all entries as wide as the widest."""
    entries = {one.name for panel in figure.panels for one in panel.series if one.name}
    entries |= {m.text for panel in figure.panels for m in layout.marks(panel) if m.in_legend}
    if not entries:
        return 0
    widest = 48 + LETTER * min(max(map(len, entries)), LONGEST)
    deepest = max(math.ceil(len(entry) / LONGEST) for entry in entries)
    return deepest * math.ceil(len(entries) / max(1, int(width // widest)))
