"""Figures of logs: load over time, when jobs come, widths and lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.traces.describing import TraceSummary

DAY = 86400.0
CORNERS = 200
"""Corners of a distribution function at most."""


def trace_figure(found: TraceSummary, name: str = "log") -> Figure:
    """What a log looks like, in four panels."""
    trace = found.trace
    panels = [
        panel
        for panel in (
            _load(found),
            week(found.cycle, found.days, "jobs that came", "When jobs come"),
            _widths(found),
            _laws(found),
        )
        if panel
    ]
    caption = (
        f"{len(trace):,} jobs over {trace.span / DAY:.3g} days: the {trace.unit} in use over time; how many "
        "jobs came, by weekday and hour; jobs and core-seconds by width; and how long jobs ran."
    )
    return Figure(name, f"The log {trace.name.rpartition('/')[2]}", caption, tuple(panels))


def _load(found: TraceSummary) -> Panel | None:
    if found.load_over_time is None:
        return None
    edges, used = found.load_over_time
    days = tuple((edges[:-1] / DAY).tolist())
    series = [Series(f"{found.trace.unit} in use", days, tuple(used.tolist()), colour=0)]
    if found.cores is not None:
        ends = (0.0, float(edges[-1]) / DAY)
        series.append(Series("machine", ends, (found.cores, found.cores), style="dashed", colour=6))
    axis = Axis(f"{found.trace.unit} in use", low=0.0)
    return Panel(Axis("days from the first job"), axis, tuple(series), title="Load over time")


def week(values: FloatArray, days: Sequence[str], what: str, title: str = "") -> Panel:
    """Numbers by weekday and hour, Monday on top."""
    rows = values[::-1].tolist()
    return Panel(
        Axis("hour of the day"),
        Axis("", categories=tuple(reversed([day[:3] if len(day) > 5 else day for day in days]))),
        grid=Grid(
            tuple(map(float, range(24))), tuple(map(float, range(7))), tuple(tuple(row) for row in rows), what
        ),
        title=title,
    )


def _widths(found: TraceSummary) -> Panel:
    parts = found.widths
    names = tuple(part.name.removeprefix("width ") for part in parts)
    places = tuple(map(float, range(len(names))))
    jobs = tuple(100.0 * part.jobs / len(found.trace) for part in parts)
    series = [Series("jobs", places, jobs, style="bars", colour=0)]
    if found.core_seconds:
        used = tuple(100.0 * (part.core_seconds or 0.0) / found.core_seconds for part in parts)
        series.append(Series("core-seconds", places, used, style="bars", colour=1))
    return Panel(
        Axis(found.trace.unit, categories=names), Axis("share, %"), tuple(series), title="Widths of jobs"
    )


def _laws(found: TraceSummary) -> Panel | None:
    trace = found.trace
    columns = {"run time": trace.duration, "size": trace.size, "between arrivals": np.diff(trace.submit)}
    series = tuple(
        _survival(name, np.sort(column[column > 0.0]), colour)
        for colour, (name, column) in enumerate(columns.items(), 2)
        if column is not None and (column > 0.0).any()
    )
    return (
        Panel(Axis("seconds", "log"), Axis("share that is longer"), series, title="How long")
        if series
        else None
    )


def _survival(name: str, ordered: FloatArray, colour: int) -> Series:
    places = np.unique(np.linspace(0, len(ordered) - 1, CORNERS).astype(int))
    longer = 1.0 - (places + 1.0) / len(ordered)
    return Series(name, tuple(ordered[places].tolist()), tuple(longer.tolist()), colour=colour)
