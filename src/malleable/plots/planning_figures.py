"""Figures of explanations and plans: what jobs want at a price, and what cores cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import JobType
    from malleable.planning import Explanation, Plan
    from malleable.planning.plan import Point

MOST_JOBS = 8
"""Jobs that are drawn: those with the most cores."""
POINTS = 121
DECADE = 4.0
"""The prices that are drawn lie within so large a factor of those of the jobs."""


def explanation_figure(found: Explanation, name: str = "explanation") -> Figure:
    """The cores that each job wants at a price, where it stands, and its width with a core more or less."""
    widest = sorted(found.jobs, key=lambda job: -job.cores)[:MOST_JOBS]
    panels = (_demand(found, [job.id for job in widest]), _widths(found, [job.id for job in widest]))
    at = "" if found.price is None else f" at the price {found.price:.4g}"
    caption = (
        "Left: the cores that each job would want at a price per core, and where it stands"
        f"{at}. Right: its cores now, with one core more, and with one core fewer."
    )
    return Figure(name, f"{found.policy} on {found.cores:g} cores", caption, panels)


def _demand(found: Explanation, names: list[str]) -> Panel:
    """A curve for each job: the price that would make it want its width is its last core's worth."""
    jobs = found.present
    if jobs is None or not len(jobs):
        return Panel(Axis("price per core"), Axis("cores"))
    stands = [_own_price(found, name) for name in names]
    known = [price for price in [*stands, found.price or np.nan] if price > 0.0]
    middle = known or [1.0]
    prices = np.geomspace(min(middle) / DECADE, max(middle) * DECADE, POINTS)
    series = []
    for number, name in enumerate(names):
        j = jobs.ids.index(name)
        one = _type(found, j)
        wanted = np.clip(one.speedup.demand(prices, float(jobs.weight[j])), 0.0, found.cores)
        series.append(Series(name, tuple(prices.tolist()), tuple(wanted.tolist()), colour=number))
    has = tuple(found.of(name).cores for name in names)
    series.append(Series("has", tuple(stands), has, style="points", colour=7))
    if found.price:
        series.append(
            Series("price", (found.price, found.price), (0.0, found.cores), style="dashed", colour=6)
        )
    return Panel(Axis("price per core", "log"), Axis("cores that a job wants"), tuple(series))


def _own_price(found: Explanation, name: str) -> float:
    """The price at which the job would want just the width that it has."""
    jobs, job = found.present, found.of(name)
    if jobs is None or job.cores < 1.0:
        return float("nan")
    j = jobs.ids.index(name)
    one = _type(found, j)
    s, slope = (float(value[()]) for value in one.speedup.derivatives(np.array(job.cores))[:2])
    rest = s - job.cores * slope
    return float(jobs.weight[j]) * slope / rest if rest > 0.0 else float("nan")


def _type(found: Explanation, j: int) -> JobType:
    jobs = found.present
    if jobs is None:
        raise ValueError("an explanation that was read from a file has no jobs to draw")
    return jobs.workload.job_types[int(jobs.class_index[j])] if jobs.own_types is None else jobs.own_types[j]


def _widths(found: Explanation, names: list[str]) -> Panel:
    """Cores now, and with a core more or less."""
    places = tuple(map(float, range(len(names))))
    now: FloatArray = np.array([found.of(name).cores for name in names])
    series = [Series("now", places, tuple(now.tolist()), style="bars", colour=0)]
    for event, title, colour in ((found.next_core, "one core more", 2), (found.lost_core, "one fewer", 1)):
        if event is not None and not event.problem:
            by = {change.id: change.cores for change in event.changes}
            widths = now + np.array([by.get(name, 0.0) for name in names])
            series.append(Series(title, places, tuple(widths.tolist()), style="points", colour=colour))
    return Panel(Axis("job", categories=tuple(names)), Axis("cores"), tuple(series))


def plan_figure(found: Plan, name: str = "plan") -> Figure:
    """Cost over cores beside bound and mean field, and the metric of the target beside its limit."""
    if not found.curve:
        return Figure(name, found.title, "There was nothing to run.", (Panel(Axis("cores"), Axis("cost")),))
    x = tuple(float(point.cores) for point in found.curve)
    run = [point for point in found.curve if point.value is not None]
    cost = Panel(Axis("cores n"), Axis("mean holding cost per job"), _costs(found, x))
    panels = (cost,) if found.metric == "cost" else (cost, _metric(found, run, x))
    if found.metric == "cost":
        panels = (replace(cost, series=(*cost.series, _limit(found, x))),)
    caption = (
        f"{found.target} under {found.policy}: costs that were run, with their intervals, the bound that no "
        "policy beats, and the mean field with its 1/n correction."
    )
    return Figure(name, found.title, caption, panels)


def _costs(found: Plan, x: tuple[float, ...]) -> tuple[Series, ...]:
    run = [point for point in found.curve if point.cost is not None]
    on_target = found.metric == "cost"
    low, high = (
        tuple((getattr(p, end) or np.nan) if on_target else np.nan for p in run) for end in ("low", "high")
    )
    cores, costs = tuple(float(p.cores) for p in run), tuple(p.cost or np.nan for p in run)
    shown = Series("run", cores, costs, low, high, "points", 1)
    lines = (("bound", "bound", "dashed", 6), ("refined", "mean field with 1/n", "line", 0))
    known = [row for row in lines if any(getattr(point, row[0]) is not None for point in found.curve)]
    return (shown, *(_line(found, x, key, title, style, colour) for key, title, style, colour in known))


def _line(found: Plan, x: tuple[float, ...], key: str, title: str, style: str, colour: int) -> Series:
    values = (getattr(point, key) for point in found.curve)
    return Series(title, x, tuple(np.nan if v is None else v for v in values), style=style, colour=colour)


def _metric(found: Plan, run: list[Point], x: tuple[float, ...]) -> Panel:
    cores = tuple(float(point.cores) for point in run)
    values, low, high = (tuple(getattr(p, key) for p in run) for key in ("value", "low", "high"))
    return Panel(
        Axis("cores n"),
        Axis(found.metric),
        (Series(found.metric, cores, values, low, high, "points", 1), _limit(found, x)),
    )


def _limit(found: Plan, x: tuple[float, ...]) -> Series:
    """The line that the metric is to be below."""
    limit = np.nan if found.limit is None else found.limit
    return Series("target", (x[0], x[-1]), (limit, limit), style="dotted", colour=7)
