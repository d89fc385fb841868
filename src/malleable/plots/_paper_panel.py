"""One panel on paper: lines, bands, bars, heat maps and marks, by matplotlib."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from malleable.plots import _layout as layout
from malleable.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from malleable.plots.figures import Axis, Grid, Panel, Series


LABEL_ROOM = 0.062
"""Height of a line of a label at the end of a curve, as a share of the panel's."""


class Painter:
    """Paints one panel; `handles` collects the legend, unless curves have labels (`direct`)."""

    def __init__(
        self,
        drawing: Drawing,
        axes: Axes,
        panel: Panel,
        known: dict[str, _style.Look],
        handles: dict[str, Any],
        *,
        direct: bool = False,
    ) -> None:
        self.drawing, self.axes, self.panel, self.known, self.handles = drawing, axes, panel, known, handles
        self.direct = direct

    def paint(self) -> None:
        """All of the panel: the marks last, when it is known where the data end."""
        panel, axes = self.panel, self.axes
        axes.set_xscale(panel.x.scale)
        axes.set_yscale(panel.y.scale)
        if panel.grid is not None:
            self.heat(panel.grid)
        bars = layout.bars(panel)
        for position, one in enumerate(panel.series):
            handle = self.bars(one, bars[position]) if position in bars else self.line(one, position)
            if one.name and not self.direct:
                self.handles.setdefault(one.name, handle)
        there = [point for marks in layout.marks(panel) for point in marks.points]
        axes.update_datalim([point for point in there if all(map(math.isfinite, point))])
        axes.autoscale_view()
        self.axis("x", panel.x)
        self.axis("y", panel.y)
        if panel.title:
            axes.set_title("\n".join(textwrap.wrap(panel.title, 46)))
        for marks in layout.marks(panel):
            self.marks(marks)
        if self.direct:
            self.labels()

    def labels(self) -> None:
        """The name of each curve at its end, moved up or down where names would touch."""
        axes = self.axes
        ends = [(one, layout.end_of(one)) for one in self.panel.series if one.name]
        there = [(one, end) for one, end in ends if end is not None]
        to_share = axes.transScale + axes.transLimits
        shares = [to_share.transform(end) for _, end in there]
        lines = max(one.name.count("\n") + 1 for one, _ in there) if there else 1
        places = layout.spread([float(share[1]) for share in shares], LABEL_ROOM * lines)
        for (one, _), share, place in zip(there, shares, places, strict=True):
            colour = self.known[one.name].colour
            axes.annotate(
                one.name, tuple(share), xycoords="axes fraction", xytext=(1.025, place),
                textcoords="axes fraction", va="center", ha="left", fontsize=9.5, color=colour,
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1.0},
            )  # fmt: skip

    def line(self, one: Series, position: int) -> Any:
        """A series of points: joined or not, with its band or error bars."""
        style, x = self.known[one.name], np.array(layout.dodged(self.panel, position), dtype=float)
        y = _clean(one.y)
        common: dict[str, Any] = {"color": style.colour, "zorder": 3.0}
        if one.style in {"points", "both"}:
            common |= {"marker": style.sign[0], "markeredgecolor": "white", "markeredgewidth": 0.5}
            common["markevery"] = max(1, len(x) // 40) if one.style == "both" else None
        if one.style == "points":
            if one.low and one.high:
                errors = [y - _clean(one.low), _clean(one.high) - y]
                del common["markevery"]
                return self.axes.errorbar(
                    x, y, np.maximum(errors, 0.0), linestyle="none", elinewidth=1.3, capsize=3.0, **common
                )
            return self.axes.plot(x, y, linestyle="none", **common)[0]
        if one.low and one.high:
            for stretch in layout.stretches(one):
                # The interval of a point that stands alone is an area without width, so it has a rim.
                rim = 1.3 if len(stretch) == 1 else 0.0
                across, low, high = np.array(stretch).T
                self.axes.fill_between(
                    across, low, high, color=style.colour, alpha=0.2, linewidth=rim, zorder=2.0
                )
        if one.style == "thin":
            common |= {"linewidth": 0.8, "alpha": 0.75}
        dash = "second" if style.second and one.style not in _style.DASHES else one.style
        pattern = (0.0, _style.DASHES[dash][0]) if dash in _style.DASHES else "solid"
        if one.style != "both" and any(layout.alone(one)):
            lonely = np.where(layout.alone(one), y, np.nan)
            self.axes.plot(x, lonely, linestyle="none", marker=style.sign[0], color=style.colour)
        return self.axes.plot(x, y, linestyle=pattern, **common)[0]

    def bars(self, one: Series, bars: list[layout.Bar]) -> Any:
        """A series of bars, with error bars if there are intervals."""
        style, heights = self.known[one.name], _clean([bar.height for bar in bars])
        left = np.array([bar.left for bar in bars])
        width = np.array([bar.right for bar in bars]) - left
        errors: Any = None
        if one.low and one.high:
            errors = np.maximum([heights - _clean(one.low), _clean(one.high) - heights], 0.0)
        return self.axes.bar(
            left, heights, width, align="edge", color=style.colour, edgecolor="white", linewidth=0.6,
            hatch="///" if style.second else None, yerr=errors, ecolor=_style.INK, capsize=2.5, zorder=2.5,
        )  # fmt: skip

    def heat(self, grid: Grid) -> None:
        """Numbers over the plane as colours; hatched where there are none."""
        colours = _style.SEQUENTIAL if grid.middle is None else _style.DIVERGING
        low, high = _style.span(grid)
        z = np.ma.masked_invalid(np.array(grid.z, dtype=float))
        mesh = self.axes.pcolormesh(
            layout.edges(grid.x, self.panel.x), layout.edges(grid.y, self.panel.y), z,
            cmap=LinearSegmentedColormap.from_list("ours", list(colours)), vmin=low, vmax=high, zorder=1.0,
            rasterized=z.size > 400,
        )  # fmt: skip
        self.axes.set_facecolor(_style.NOTHING)
        self.axes.patch.set_hatch("////")
        self.axes.grid(visible=False)
        self.drawing.colorbar(mesh, ax=self.axes, label=grid.title, fraction=0.06, pad=0.02)
        size = 9.0 if len(grid.x) <= 6 else 8.0 if len(grid.x) <= 8 else 6.5
        for y, row, texts in zip(grid.y, grid.z, layout.written(grid) or (), strict=False):
            for x, value, text in zip(grid.x, row, texts, strict=True):
                if text:
                    ink = _style.ink_on(_style.mixed(colours, (value - low) / (high - low)))
                    self.axes.text(x, y, text, ha="center", va="center", fontsize=size, color=ink)

    def marks(self, marks: layout.Marks) -> None:
        """Points with a text beside each, or in the legend if there are many; on the rim if y is none."""
        for x, y in marks.points:
            high = math.isfinite(y)
            transform = self.axes.transData if high else self.axes.get_xaxis_transform()
            handle = self.axes.plot(
                [x], [y if high else 0.97], "X", color=_style.MARK, markersize=7.5, markeredgecolor="white",
                markeredgewidth=0.7, transform=transform, clip_on=False, linestyle="none", zorder=5.0,
                scalex=False, scaley=False,
            )[0]  # fmt: skip
            if marks.in_legend:
                self.handles.setdefault(f"× {marks.text}", handle)
                continue
            across = self.axes.transAxes.inverted().transform(transform.transform((x, y if high else 0.97)))
            right, upper = across[0] > 0.55, across[1] > 0.85
            self.axes.annotate(
                "\n".join(textwrap.wrap(marks.text, 30)), (x, y if high else 0.97), xycoords=transform,
                xytext=(-7 if right else 7, -5 if upper else 5), textcoords="offset points",
                ha="right" if right else "left", va="top" if upper else "bottom",
                fontsize=9.0, color=_style.MARK, zorder=6.0, annotation_clip=False,
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.0},
            )  # fmt: skip

    def axis(self, which: str, axis: Axis) -> None:
        """Title, ends and ticks of an axis."""
        ours = self.axes.xaxis if which == "x" else self.axes.yaxis
        ours.set_label_text("\n".join(textwrap.wrap(axis.title, 56 if which == "x" else 36)))
        ends = self.axes.set_xlim if which == "x" else self.axes.set_ylim
        ends(axis.low, axis.high)
        ticks = layout.ticks(self.panel, which)
        if ticks is None:
            return
        ours.set_major_locator(FixedLocator([place for place, _ in ticks]))
        ours.set_major_formatter(FixedFormatter([text for _, text in ticks]))
        ours.set_minor_locator(NullLocator())
        if axis.categories:
            self.axes.grid(visible=False, axis="x" if which == "x" else "y")
            if axis.low is None and axis.high is None and self.panel.grid is None:
                ends(-0.6, len(axis.categories) - 0.4)
            room = 60 / max(len(axis.categories), 1)
            if which == "x" and max(map(len, axis.categories)) > room:
                for label in ours.get_ticklabels():
                    label.set(rotation=layout.slope(axis), ha="right", rotation_mode="anchor")


def _clean(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers, with NaN for infinities: they have no place on paper."""
    made = np.array(values, dtype=float)
    made[~np.isfinite(made)] = np.nan
    return made
