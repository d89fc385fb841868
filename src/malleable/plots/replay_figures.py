"""Figures of a replay: costs, losses over time, Gantt charts, slowdowns, users, calendar and blame.

A Gantt chart of twenty thousand jobs shows nothing, so jobs are put together: a row for each class, a column
for each stretch of time, and the cores that the jobs of the class had then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.plots.figures import Axis, Figure, Grid, Panel, Series
from malleable.plots.result_figures import comparison_figure
from malleable.plots.trace_figures import week
from malleable.traces.describing.over_time import DAY, HOUR, area_up_to

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.replays import Replay, Schedule
    from malleable.replays.blame import Fault

COLUMNS = 120
"""Columns of a Gantt chart at most."""
CORNERS = 160
"""Corners of a line at most."""
MOST_USERS = 12
MOST_ROWS = 12
DAYS_FROM = 3.0
"""A replay that lasts longer than so many days is shown in days, a shorter one in hours."""


class Clock:
    """Time since the first arrival in days or hours."""

    def __init__(self, found: Replay) -> None:
        self.first = float(found.jobs.times[0])
        self.last = max(one.end for one in found.schedules)
        self.unit, self.name = (DAY, "days") if self.last - self.first > DAYS_FROM * DAY else (HOUR, "hours")

    @property
    def axis(self) -> Axis:
        """The axis of time."""
        return Axis(f"{self.name} from the first job")

    def grid(self, points: int) -> FloatArray:
        """Times that divide all of it equally."""
        return np.linspace(self.first, self.last, points + 1)

    def shown(self, times: FloatArray) -> tuple[float, ...]:
        """Times as the axis counts them."""
        return tuple(((times - self.first) / self.unit).tolist())


def replay_figures(found: Replay, baseline: Schedule) -> dict[str, Figure]:
    """All figures that there is something for, by what they are about."""
    clock = Clock(found)
    made: dict[str, Figure | None] = {
        "costs": _costs(found),
        "over_time": _over_time(found, clock),
        "lost": _lost(found, clock),
        **_gantt(found.best, baseline, clock),
        "slowdowns": _slowdowns(found),
        "users": _users(found),
        "calendar": _calendar(found),
        "blame": _blame(found),
        "shares": _shares(found),
    }
    return {name: figure for name, figure in made.items() if figure is not None}


def _costs(found: Replay) -> Figure:
    figure = comparison_figure(found.comparison, "replay-costs")
    caption = (
        "Mean cost of a job under each policy (its weight times the time from its arrival to its end). No "
        "schedule, even one that knows all jobs beforehand, lies below the dashed line."
    )
    return Figure(figure.name, figure.title, caption, figure.panels)


def in_use(one: Schedule, edges: FloatArray) -> FloatArray:
    """Cores in use by class of the log, means between edges; (classes, stretches)."""
    area = np.concatenate(
        [np.zeros((len(one.usage.cores), 1)), np.cumsum(one.usage.cores * one.usage.length, axis=1)], axis=1
    )
    up_to = np.array([np.interp(edges, one.usage.edges, row) for row in area])
    found: FloatArray = np.diff(up_to, axis=1) / np.diff(edges)
    return found


def _over_time(found: Replay, clock: Clock) -> Figure:
    edges = clock.grid(CORNERS)
    middles = 0.5 * (edges[1:] + edges[:-1])
    x = clock.shown(middles)
    used, queue = [], []
    for number, one in enumerate(found.schedules):
        total = in_use(one, edges).sum(axis=0)
        used.append(Series(one.policy, x, tuple(total.tolist()), colour=number))
        area = area_up_to(edges, one.jobs.times, one.starts, np.ones(len(one.jobs)))
        waiting = np.maximum(np.diff(area) / np.diff(edges), 0.0)
        queue.append(Series(one.policy, x, tuple(waiting.tolist()), colour=number))
    panels = (
        Panel(clock.axis, Axis("cores in use", low=0.0), tuple(used), title="Utilisation"),
        Panel(clock.axis, Axis("jobs that wait", low=0.0), tuple(queue), title="Queue"),
    )
    caption = f"Cores in use (of {found.cores:g}) and jobs that have come and not started, over time."
    return Figure("replay-over-time", "Utilisation and queue over time", caption, panels)


def _lost(found: Replay, clock: Clock) -> Figure | None:
    """Cost beyond the bound, as it mounts up."""
    if found.bound is None or not found.faults:
        return None
    edges = clock.grid(CORNERS)
    least = found.bound.per_job
    series = []
    for number, one in enumerate(found.schedules):
        fault = found.faults.get(one.policy)
        if fault is not None:
            lost = tuple((100.0 * mounting(fault, found, edges) / least).tolist())
            series.append(Series(one.policy, clock.shown(edges), lost, colour=number))
    caption = (
        "What each policy has lost so far beyond the bound for these jobs, in percent of the bound: the "
        "regret of jobs that have ended, and the price of cores that stood idle. The last value is the gap."
    )
    panel = Panel(clock.axis, Axis("lost so far, % of the least possible", low=0.0), tuple(series))
    return Figure("replay-lost", "Cost over time against the bound", caption, (panel,))


def mounting(fault: Fault, found: Replay, times: FloatArray) -> FloatArray:
    """Regret of jobs that ended up to some times, and of cores that stood idle until then."""
    one = fault.schedule
    order = np.argsort(one.ends)
    regret = np.append(0.0, np.cumsum(fault.regrets[order]))
    ended: FloatArray = regret[np.searchsorted(one.ends[order], times, side="right")]
    bound = found.bound
    if bound is None:
        return ended
    paid = np.diff(np.interp(times, bound.edges, bound.path.paid))
    idle = np.maximum(found.cores - in_use(one, times).sum(axis=0), 0.0) * paid
    total = float(idle.sum())
    # Slices of time are coarser than prices; in all it is what it is.
    scaled = idle * (fault.idle / total) if total > 0.0 else idle
    lost: FloatArray = ended + np.append(0.0, np.cumsum(scaled))
    return lost


def _gantt(best: Schedule, baseline: Schedule, clock: Clock) -> dict[str, Figure]:
    """Who had the cores under the best policy and under another, and the difference."""
    edges = clock.grid(COLUMNS)
    x = clock.shown(0.5 * (edges[1:] + edges[:-1]))
    names = best.by_class.names
    rows = tuple(map(float, range(len(names))))

    def figure(name: str, title: str, cores: FloatArray, middle: float | None, what: str) -> Figure:
        z = tuple(tuple(row) for row in cores.tolist())
        panel = Panel(clock.axis, Axis("", categories=names), grid=Grid(x, rows, z, what, middle))
        caption = f"The jobs of each class, and how many {what} they had over time."
        return Figure(f"replay-{name}", title, caption, (panel,))

    mine = in_use(best, edges)
    made = {"gantt": figure("gantt", f"Who had the cores under {best.policy}", mine, None, "cores")}
    if baseline is not best:
        theirs = in_use(baseline, edges)
        title = f"Who had the cores under {baseline.policy}"
        made["gantt_practice"] = figure("gantt-practice", title, theirs, None, "cores")
        title = f"The difference: {best.policy} less {baseline.policy}"
        made["gantt_difference"] = figure("gantt-difference", title, mine - theirs, 0.0, "more cores")
    return made


def _slowdowns(found: Replay) -> Figure:
    response, slowdown = [], []
    for number, one in enumerate(found.schedules):
        response.append(_longer(one.policy, one.responses, number))
        slowdown.append(_longer(one.policy, one.slowdowns, number))
    panels = (
        Panel(Axis("response time, s", "log"), Axis("share of jobs above", "log"), tuple(response)),
        Panel(Axis("bounded slowdown", "log"), Axis("share of jobs above", "log"), tuple(slowdown)),
    )
    caption = (
        "Which share of the jobs took longer than x from arrival to end, and which had a larger bounded "
        "slowdown: that time over the run time in the log, of which at least 10 s count; never below 1."
    )
    return Figure("replay-slowdowns", "Response times and slowdowns", caption, panels)


def _longer(name: str, values: FloatArray, colour: int) -> Series:
    """The share of values above x, with the largest in full."""
    ordered = np.sort(values[values > 0.0])
    count = len(ordered)
    evenly = np.linspace(0, count - 1, CORNERS)
    tail = count - np.geomspace(1, max(count, 1), CORNERS)
    places = np.unique(np.clip(np.concatenate([evenly, tail]), 0, count - 1).astype(int))
    above = 1.0 - (places + 0.5) / count
    return Series(name, tuple(ordered[places].tolist()), tuple(above.tolist()), colour=colour)


def _users(found: Replay) -> Figure | None:
    rows = found.users_of(found.best, MOST_USERS)
    if len(rows) < 2:
        return None
    names = tuple(row["name"] for row in rows)
    series = []
    for number, one in enumerate(found.schedules):
        mine = {row["name"]: row["slowdown"] for row in found.users_of(one, len(found.jobs))}
        values = tuple(mine[name] for name in names)
        series.append(
            Series(one.policy, tuple(map(float, range(len(names)))), values, style="points", colour=number)
        )
    panel = Panel(Axis("user", categories=names), Axis("mean bounded slowdown", "log"), tuple(series))
    caption = f"The {len(names)} users who used most of the machine: how their jobs fared."
    return Figure("replay-users", "Users", caption, (panel,))


def _calendar(found: Replay) -> Figure | None:
    if found.calendar is None:
        return None
    panel = week(found.calendar.values, found.calendar.days, "job-hours saved per hour")
    caption = (
        "What one more core would have saved, by the hour of the week: the mean price of a core in the "
        "bound. "
        f"{found.calendar.words}"
    )
    return Figure("replay-calendar", "The value of a core over the week", caption, (panel,))


def _blame(found: Replay) -> Figure | None:
    fault = found.faults.get(found.best.policy)
    if fault is None or found.bound is None:
        return None
    scale = 100.0 / found.bound.per_job
    panels = []
    for title, shares in (("By class", fault.by_class), ("By width in the log", fault.by_width),
                          ("By user", fault.by_user)):  # fmt: skip
        some = shares[:MOST_ROWS]
        if len(some) > 1:
            places = tuple(map(float, range(len(some))))
            heights = tuple(scale * share.regret for share in some)
            bars = Series("regret", places, heights, style="bars", colour=1)
            names = tuple(share.name.removeprefix("width ") for share in some)
            panels.append(Panel(Axis("", categories=names), Axis("% of the bound"), (bars,), title=title))
    if len(panels) > 1 and panels[0].series[0].y == panels[1].series[0].y:
        del panels[0]  # classes are by width
    caption = (
        f"What jobs lose under {found.best.policy} beyond the bound, by who they are, in percent of the "
        f"bound. Besides, idle cores lose {scale * fault.idle:.3g} %."
    )
    return Figure("replay-blame", "Who is to blame", caption, tuple(panels)) if panels else None


def _shares(found: Replay) -> Figure | None:
    curve = found.shares
    if curve is None or not curve.shares:
        return None
    x = tuple(100.0 * share for share in curve.shares)
    series = [
        Series(name, x, tuple(_number(row[i]) for row in curve.costs), style="both", colour=i)
        for i, name in enumerate(curve.policies)
    ]
    if any(bound is not None for bound in curve.bounds):
        least = tuple(_number(bound) for bound in curve.bounds)
        series.append(Series("least possible", x, least, style="dashed", colour=6))
    panel = Panel(
        Axis("share of the jobs that are malleable, %"), Axis("mean cost of a job", "log"), tuple(series)
    )
    caption = (
        "The same log as more and more of its jobs can be resized; others keep the width they asked for."
    )
    return Figure("replay-shares", "What malleability is worth", caption, (panel,))


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
