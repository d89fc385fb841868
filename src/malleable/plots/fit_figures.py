"""Figures of fits: a speedup beside its measurements, and sizes beside their samples."""

from __future__ import annotations

from math import isfinite, nan
from typing import TYPE_CHECKING

import numpy as np

from malleable.fitting import Fit, SizeFit
from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

GRID = 121
"""Places at which a curve is drawn."""
STEPS = 400
"""Corners of an empirical survival function at most."""
LEAST = 1e-4
"""The lowest survival that is drawn."""


def fit_figure(found: Fit | SizeFit, name: str = "fit") -> Figure:
    """The figure of a fit, whichever it is."""
    return speedup_figure(found, name) if isinstance(found, Fit) else sizes_figure(found, name)


def speedup_figure(fit: Fit, name: str = "fit") -> Figure:
    """The fitted speedup with its band, the measurements, and what is left of them."""
    widest = max(point.cores for point in fit.points)
    grid = np.unique(np.append(np.geomspace(1.0, widest, GRID), [p.cores for p in fit.points]))
    x = Axis("cores k", "log" if widest > 8.0 else "linear")
    panels = (
        Panel(x, Axis("speedup s(k)", x.scale), _speedups(fit, grid)),
        Panel(x, Axis("measured / fitted − 1, %"), _residuals(fit)),
    )
    title = f"{fit.family} fitted to {fit.measurements.name}"
    caption = (
        f"Measured speedups, relative to one core as fitted ({fit.criterion}); whiskers are the slowest and "
        "the fastest run, the band holds the fitted speedup with 95 % confidence by bootstrap."
    )
    return Figure(name, title, caption, panels)


def _speedups(fit: Fit, grid: FloatArray) -> tuple[Series, ...]:
    widths = tuple(grid.tolist())
    band = fit.band(grid)
    low, high = ((), ()) if band is None else (tuple(end.tolist()) for end in band)
    curve = Series(f"fitted ({fit.family})", widths, tuple(fit.speedup(grid).tolist()), low, high, colour=0)
    linear = Series("perfectly parallel", (1.0, widths[-1]), (1.0, widths[-1]), style="dotted", colour=6)
    return linear, curve, _points(fit)


def _points(fit: Fit) -> Series:
    low = tuple(nan if p.low is None else p.low for p in fit.points)
    high = tuple(nan if p.high is None else p.high for p in fit.points)
    whiskers = (low, high) if any(map(isfinite, low)) else ((), ())
    cores, speeds = tuple(p.cores for p in fit.points), tuple(p.speedup for p in fit.points)
    return Series("measured", cores, speeds, *whiskers, style="points", colour=1)


def _residuals(fit: Fit) -> tuple[Series, ...]:
    cores = tuple(p.cores for p in fit.points)
    left = tuple(100.0 * p.residual for p in fit.points)
    zero = Series("", (cores[0], cores[-1]), (0.0, 0.0), style="dotted", colour=6)
    return zero, Series("measured", cores, left, style="points", colour=1)


def sizes_figure(fit: SizeFit, name: str = "sizes") -> Figure:
    """The survival functions of the samples and of the fitted law."""
    x, count = fit.samples, len(fit.samples)
    survival = 1.0 - np.arange(1, count + 1) / count
    # All of the largest samples: the tail is drawn on a logarithmic axis.
    largest = np.arange(max(0, count - STEPS), count - 1)
    some = np.unique(np.append(np.linspace(0, count - 2, STEPS).astype(int), largest))
    # Each sample is a step down: before it the level of the sample before, after it its own.
    across = np.repeat(x[some], 2)
    level = np.column_stack([1.0 - some / count, survival[some]]).ravel()
    grid = np.geomspace(x[0], x[-1], GRID)
    series = (
        Series("samples", tuple(across.tolist()), tuple(level.tolist()), colour=1),
        Series(
            f"fitted ({fit.family})",
            tuple(grid.tolist()),
            _above(fit.mixture.survival(grid)),
            style="dashed",
            colour=0,
        ),
    )
    panels = (
        Panel(Axis("size x", "log"), Axis("P(X > x)"), series, title="Body"),
        Panel(Axis("size x", "log"), Axis("P(X > x)", "log"), series, title="Tail"),
    )
    caption = (
        f"Survival functions of {count:,} samples and of the fitted law ({fit.criterion}); the largest "
        f"distance is {fit.distance:.3g}."
    )
    return Figure(name, f"{fit.family} fitted to {count:,} sizes", caption, panels)


def _above(survival: FloatArray) -> tuple[float, ...]:
    """What can be drawn on a logarithmic axis."""
    return tuple(value if value > LEAST else nan for value in survival.tolist())
