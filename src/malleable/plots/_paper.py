"""Figures on paper: drawn by matplotlib, without pyplot and its global state, the same bytes every time."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing

from malleable.plots import _layout as layout
from malleable.plots import _style
from malleable.plots._fonts import families
from malleable.plots._paper_panel import Painter

if TYPE_CHECKING:
    from malleable.plots.figures import Figure

SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#8C8C8C",
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelcolor": _style.INK,
    "axes.labelsize": 11.0,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.10,
    "figure.titlesize": 12.5,
    "figure.titleweight": "bold",
    "font.size": 10.0,
    "grid.color": _style.FAINT,
    "grid.linewidth": 0.6,
    "hatch.color": "#B5B5B5",
    "hatch.linewidth": 0.6,
    "legend.fontsize": 10.0,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.8,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "malleable",
    "text.color": _style.INK,
    "text.parse_math": False,
    "xtick.color": "#595959",
    "ytick.color": "#595959",
}
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
ALONE, BESIDE = (6.8, 3.8), (4.6, 3.5)
"""Width and height of a panel in inches, alone in a figure and beside others."""
LETTER = 0.082
"""Width of a letter in a legend, in inches."""
LONGEST = 56
"""Letters of a line in a legend."""


def drawn(figure: Figure, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """The figure as files, by suffix."""
    with mpl.rc_context({**SETTINGS, "font.family": families()}):
        drawing = _drawing(figure)
        return {suffix: _saved(drawing, suffix) for suffix in suffixes}


def _saved(drawing: Drawing, suffix: str) -> bytes:
    file = io.BytesIO()
    drawing.savefig(file, format=suffix, dpi=160, metadata=METADATA[suffix])
    return file.getvalue()


def _drawing(figure: Figure) -> Drawing:
    rows = layout.rows(figure)
    width, height = ALONE if len(rows[0]) == 1 else BESIDE
    width *= len(rows[0])
    drawing = Drawing(figsize=(width, height * len(rows) + 0.4), layout="constrained")
    FigureCanvasAgg(drawing)
    known = _style.looks(figure)
    handles: dict[str, Any] = {}
    direct = layout.direct(figure)
    for number, panel in enumerate(figure.panels):
        axes = drawing.add_subplot(len(rows), len(rows[0]), number + 1)
        Painter(drawing, axes, panel, known, handles, direct=direct).paint()
    _legend(drawing, handles, width)
    drawing.suptitle("\n".join(textwrap.wrap(figure.title, int(width / 0.115))))
    # Everything has its place now: no need to look for it again with every file.
    drawing.draw_without_rendering()
    drawing.set_layout_engine(None)
    return drawing


def _width(name: str) -> int:
    """Letters in the longest line."""
    return max(map(len, name.split("\n")))


def _legend(drawing: Drawing, handles: dict[str, Any], width: float) -> None:
    """One legend below all panels, where it covers nothing, in as many columns as fit."""
    if not handles:
        return
    names = ["\n".join(textwrap.wrap(name, LONGEST)) for name in handles]
    for columns in range(len(names), 0, -1):
        # Legends are filled column by column.
        widest = (max(map(_width, column)) for column in np.array_split(names, columns))
        if sum(LETTER * letters + 0.95 for letters in widest) <= width or columns == 1:
            break
    drawing.legend(list(handles.values()), names, loc="outside lower center", ncols=columns, handlelength=2.4)
    drawing.set_figheight(
        drawing.get_figheight() + 0.2 * sum(name.count("\n") + 1 for name in names) / columns
    )
