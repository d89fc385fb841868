"""How figures look, on paper and on the page alike: colours, signs, and which series has which.

The colours are Okabe and Ito's, which people with any common colour blindness can tell apart, without their
black and yellow: all of these can be read on white and on a dark page. Signs and dashes differ as well, so
that a figure survives a black-and-white printer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from malleable.plots.figures import Figure, Grid

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#B8A100")
"""Blue, vermilion, green, purple, orange, sky, grey, mustard."""
SIGNS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
    ("p", "pentagon"),
    ("<", "triangle-left"),
    (">", "triangle-right"),
)
"""Signs of points as matplotlib and plotly call them."""
DASHES = {
    "dashed": ((5.0, 2.2), "dash"),
    "dotted": ((1.2, 1.8), "dot"),
    "second": ((7.0, 2.0, 1.2, 2.0), "dashdot"),
}
"""Dashes as matplotlib (in line widths) and plotly write them; `second` when the colours have run out."""
DIVERGING = ("#004B77", "#0072B2", "#7FB8D8", "#F5F5F5", "#EFB27F", "#D55E00", "#8F3F00")
"""From below the middle (blue) to above it (vermilion)."""
SEQUENTIAL = ("#440154", "#443983", "#31688E", "#21918C", "#35B779", "#90D743", "#FDE725")
"""Viridis."""
INK = "#262626"
FAINT = "#D9D9D9"
NOTHING = "#E8E8E8"
"""Where a grid has no value."""
MARK = "#D81B60"
"""Points that are marked, such as infeasible ones."""


class Look(NamedTuple):
    """What a series looks like."""

    colour: str
    sign: tuple[str, str]
    second: bool
    """Whether its colour is in use for another one, so that its line must differ."""


def look(number: int) -> Look:
    """The look with that number; the same one in every figure."""
    return Look(PALETTE[number % len(PALETTE)], SIGNS[number % len(SIGNS)], number // len(PALETTE) % 2 == 1)


def looks(figure: Figure) -> dict[str, Look]:
    """The look of every series, by name: the number it asks for, or the next free one."""
    series = [one for panel in figure.panels for one in panel.series]
    numbers = {one.name: one.colour for one in series if one.colour is not None}
    free = (number for number in range(2 * len(series) + 1) if number not in set(numbers.values()))
    for one in series:
        if one.name not in numbers:
            numbers[one.name] = next(free)
    return {name: look(number) for name, number in numbers.items()}


def span(grid: Grid) -> tuple[float, float]:
    """From which number to which the colours of a grid go; the same way up and down from the middle."""
    known = [z for row in grid.z for z in row if abs(z) < float("inf")] or [0.0]
    if grid.middle is None:
        low, high = min(known), max(known)
        return (low, high) if high > low else (low - 0.5, high + 0.5)
    reach = max(abs(z - grid.middle) for z in known) or 1.0
    return grid.middle - reach, grid.middle + reach


def mixed(colours: tuple[str, ...], share: float) -> str:
    """The colour that stands at `share` (0 to 1) of the way through `colours`."""
    place = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    first = min(int(place), len(colours) - 2)
    pairs = zip(_parts(colours[first]), _parts(colours[first + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - first)):02X}" for a, b in pairs)


def ink_on(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = _parts(colour)
    return "#FFFFFF" if 0.299 * red + 0.587 * green + 0.114 * blue < 140.0 else "#000000"


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
