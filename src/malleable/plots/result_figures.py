"""Figures of what simulations say: the classes of one result, and the policies of a comparison."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import TYPE_CHECKING

from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.results import Comparison, Result
    from malleable.statistics import Percentiles

LEVELS = {"p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
COST = Axis("mean holding cost per job")
UNSTEADY = "unstable"
WIDE = 3.0
"""Ratio of the highest cost to the lowest beyond which costs stand on a log scale."""


def result_figure(result: Result, name: str = "result") -> Figure:
    """Response times and slowdowns per class: means, with their intervals, and percentiles."""
    names = tuple(one.name for one in result.classes)
    places = tuple(map(float, range(len(names))))
    means = [one.response_time for one in result.classes]
    response = (
        Series.of("mean", places, means, "points", 0),
        *_percentiles(places, [one.response for one in result.classes]),
    )
    slowdown = (
        Series("mean", places, tuple(one.mean_slowdown for one in result.classes), style="points", colour=0),
        *_percentiles(places, [one.slowdown for one in result.classes]),
    )
    panels = (
        Panel(Axis("class", categories=names), _axis("response time", response), response),
        Panel(Axis("class", categories=names), _axis("slowdown (response time / size)", slowdown), slowdown),
    )
    caption = (
        f"Response times and slowdowns per class under {result.policy}, {result.jobs:,} jobs, with "
        f"{result.confidence:.0%} intervals of the means. Mean holding cost per job: {result.cost}"
        + ("." if result.status == "complete" else f" ({result.status}).")
    )
    title = f"{result.policy} on {result.cores:g} cores at load {result.load:.4g}"
    return Figure(name, title, caption, panels)


def comparison_figure(comparison: Comparison, name: str = "comparison") -> Figure:
    """Mean cost with its interval per policy: over cores, over load, or side by side in a single setting.

    Where there are several numbers of cores and several loads for one of them, each load has a panel. The
    lower bound, which holds for all policies shown, is dashed; a run that did not settle is marked.
    """
    results = comparison.results
    cores = {result.cores for result in results}
    settings = {(result.cores, _load(result)) for result in results}
    policies = tuple(dict.fromkeys(result.policy for result in results))
    if len(settings) == 1:
        panels = [_side_by_side(results)]
    elif len(cores) == 1:
        panels = [_costs(results, _load, Axis("load ρ"))]
    elif len(settings) == len(cores):
        panels = [_costs(results, _cores, Axis("cores n", "log"))]
    else:
        by_load = {
            load: [r for r in results if _load(r) == load] for load in sorted({v for _, v in settings})
        }
        panels = [
            _costs(chosen, _cores, Axis("cores n", "log"), title=f"load {load:.4g}")
            for load, chosen in by_load.items()
        ]
    confidence = f"{min(result.confidence for result in results):.0%}"
    caption = (
        f"Mean holding cost per job of {', '.join(policies)} on the same jobs, with {confidence} intervals. "
        "Lower is better; no policy lies below the dashed bound"
        + (", or below the dotted one on these jobs." if any(r.bound_jobs for r in results) else ".")
    )
    return Figure(name, "Mean holding cost per job", caption, tuple(panels))


def _costs(results: Sequence[Result], place: Callable[[Result], float], x: Axis, title: str = "") -> Panel:
    """Costs of all policies, a curve each, over what `place` says."""
    policies = dict.fromkeys(result.policy for result in results)
    series = [
        _curve(policy, [r for r in results if r.policy == policy], place, "both", number)
        for number, policy in enumerate(policies)
    ]
    marks = tuple((place(r), r.cost.mean, f"{r.policy} {UNSTEADY}") for r in results if not r.stable)
    curves = (*series, *_bound(results, place))
    known = [y for one in curves for y in one.y if y > 0.0]
    scale = "log" if known and max(known) > WIDE * min(known) else "linear"
    return Panel(x, replace(COST, scale=scale), curves, title=title, marks=marks)


def _side_by_side(results: Sequence[Result]) -> Panel:
    """Costs in a single setting, policies along the axis."""
    names = tuple(result.policy for result in results)

    def place(result: Result) -> float:
        return float(results.index(result))

    marks = tuple((place(r), r.cost.mean, UNSTEADY) for r in results if not r.stable)
    series = (_curve("mean cost", results, place, "points", 0), *_bound(results, place))
    return Panel(Axis("policy", categories=names), COST, series, marks=marks)


def _curve(
    name: str, results: Sequence[Result], place: Callable[[Result], float], style: str, colour: int
) -> Series:
    """Costs of the runs that have a steady state."""
    steady = sorted((result for result in results if result.stable), key=place)
    return Series.of(name, map(place, steady), [result.cost for result in steady], style, colour)


def _bound(results: Sequence[Result], place: Callable[[Result], float]) -> tuple[Series, ...]:
    """The lower bounds: the tightest for any jobs, and where it was asked for, the one for these jobs."""
    for_any = [(r, r.bound_tight) for r in results]
    for_these = [(r, r.bound_jobs.mean if r.bound_jobs else None) for r in results]
    made = []
    for name, style, colour, values in (
        ("knowing the future", "dotted", 4, for_these),
        ("lower bound", "dashed", 6, for_any),
    ):
        lowest: dict[float, float] = {}
        for result, value in values:
            if value is not None:
                lowest[place(result)] = min(value, lowest.get(place(result), inf))
        points = sorted(lowest.items())
        if points:
            x, y = (tuple(point[end] for point in points) for end in range(2))
            made.append(Series(name, x, y, style=style, colour=colour))
    return tuple(made)


def _cores(result: Result) -> float:
    return result.cores


def _load(result: Result) -> float:
    """The load, without the last digits: arrival rates that were scaled to one load give it to rounding."""
    return float(f"{result.load:.10g}")


def _percentiles(places: tuple[float, ...], found: Sequence[Percentiles]) -> tuple[Series, ...]:
    """A series for each percentile; a class without jobs has none."""
    levels = (tuple(nan if (v := getattr(one, key)) is None else v for one in found) for key in LEVELS)
    named = zip(LEVELS.values(), levels, strict=True)
    return tuple(
        Series(name, places, values, style="points", colour=number)
        for number, (name, values) in enumerate(named, 1)
    )


def _axis(title: str, shown: Sequence[Series]) -> Axis:
    """Logarithmic where there is anything to take a logarithm of: tails are far from medians."""
    return Axis(title, "log" if any(y > 0.0 for one in shown for y in one.y) else "linear")
