"""Figures and tables of e15_few_cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.e15_few_cores.held_out import PAIRS
from malleable.paper.experiments.e15_few_cores.readings import (
    IMPROVED,
    TRUSTING,
    WHAM,
    Point,
    paired,
)
from malleable.paper.experiments.e15_few_cores.systems import BLIND_STUDY, WORKLOADS
from malleable.paper.experiments.shared.paired_gains import Gain, together
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHORT = {"weights": "weights", "sizes": "sizes", "two": "paper", "four": "four"}
"""Names of systems that fit below an axis."""
GAPS = {WHAM: "WHAM", IMPROVED: "wham-improved", TRUSTING: "… with headroom=1"}
"""Policies whose distances from the optimum are drawn, and their names."""
COLOURS = {"weights": 0, "four": 1, "paper": 2}
"""Of systems that are drawn as curves."""


def gaps_figure(points: list[Point]) -> Figure:
    """Gaps to the optimum, setting by setting."""
    names = tuple(
        f"{SHORT[name]}: {cores} cores, {load:g}" for name, cores, load in (p.where for p in points)
    )
    x = tuple(map(float, range(len(points))))
    series = tuple(
        Series(title, x, tuple(p.gap(policy) for p in points), style="points", colour=colour)
        for colour, (policy, title) in enumerate(GAPS.items())
    )
    return Figure(
        "few-cores-gaps",
        "Distance from the optimum",
        "By how many per cent WHAM and wham-improved cost more than the best policy that is blind to sizes: "
        "exact chains, by system, number of cores and load. As it is, wham-improved is ready for a load 25 % "
        "higher than told; with headroom=1 it is not.",
        (Panel(Axis("", categories=names), Axis("above the optimum, %", "log"), series),),
    )


def gaps_table(points: list[Point]) -> Table:
    """The same beside the numbers of the study."""
    known = [BLIND_STUDY.get(p.where) for p in points]
    columns: dict[str, tuple[Any, ...]] = {
        "system": tuple(WORKLOADS[p.where[0]][0] for p in points),
        "cores": tuple(p.where[1] for p in points),
        "load": tuple(p.where[2] for p in points),
        "optimum": tuple(p.value["real"]["optimum"] for p in points),
        "WHAM above it, %": tuple(p.gap(WHAM) for p in points),
        "wham-improved, %": tuple(p.gap(IMPROVED) for p in points),
        "with headroom=1, %": tuple(p.gap(TRUSTING) for p in points),
        "WHAM in the study, %": tuple(None if k is None else k.wham for k in known),
        "fit of the study, %": tuple(None if k is None else k.fitted for k in known),
        "states": tuple(p.value["states"] for p in points),
    }
    return Table("few-cores-gaps", "Exact distances from the optimum", columns)


def terms_figure(terms: Mapping[str, list[Point]]) -> Figure:
    """What exact costs add to V*, times n, beside both coefficients."""
    panels = []
    for name, points in terms.items():
        x, last = tuple(float(p.where[1]) for p in points), points[-1].value
        series = []
        rows = (("wham", "WHAM", "wham term"), ("optimum", "the optimum", "best term"))
        for colour, (which, title, term) in enumerate(rows):
            exact = tuple(p.term(which) for p in points)
            series.append(Series(title, x, exact, style="both", colour=colour))
            line = (last[term],) * len(x)
            series.append(Series(f"{title}: theory", x, line, style="dashed", colour=colour))
        title = f"{WORKLOADS[name][0]}, ρ = {points[0].where[2]:g}"
        panels.append(Panel(Axis("cores n", "log"), Axis("(cost − V*)·n"), tuple(series), title=title))
    return Figure(
        "few-cores-terms",
        "The 1/n term: exact chains and theory",
        "What exact costs exceed V* by, times n: WHAM, and the best policy that is blind to sizes. They tend "
        "to the coefficients that theory gives (dashed), which lie close together.",
        tuple(panels),
    )


def held_out_figure(gains: Mapping[str, list[Gain]]) -> Figure:
    """All held-out workloads, from the largest gain to the smallest."""
    panels = []
    for pair, mine in gains.items():
        known = sorted(together(mine), key=lambda e: e.mean)
        shown = [Estimate(*(100.0 * v for v in (e.mean, e.low, e.high))) for e in known]
        x = [float(i) for i in range(1, len(shown) + 1)]
        title = f"{PAIRS[pair].policy} against {PAIRS[pair].base}"
        one = Series.of("held-out workloads", x, shown, "points", 0)
        panels.append(Panel(Axis("rank"), Axis("difference of cost, %"), (one,), title=title))
    return Figure(
        "few-cores-held-out",
        "Workloads that were held out",
        "Cost relative to the policy that is improved, on the same jobs, workload by workload; below 0 is "
        "cheaper. Intervals hold all together with 99 %. Points at 0 without one are workloads on which the "
        "policy steps back.",
        tuple(panels),
    )


def limits_figure(limits: Sequence[Point], loads: Mapping[str, list[Point]]) -> Figure:
    """Cost over V* by n, and what is gained by load."""
    series = []
    for name in dict.fromkeys(p.where[0] for p in limits):
        mine, colour = [p for p in limits if p.where[0] == name], COLOURS[name]
        x = tuple(float(p.where[1]) for p in mine)
        for policy, style in ((WHAM, "dashed"), (IMPROVED, "both")):
            y = tuple(p.value["results"][policy]["gap"] for p in mine)
            series.append(Series(f"{WORKLOADS[name][0]}: {policy}", x, y, style=style, colour=colour))
    panels = [Panel(Axis("cores n", "log"), Axis("cost above V*", "log"), tuple(series), title="many cores")]
    for pair, points in loads.items():
        if points:
            title = f"{PAIRS[pair].policy} against {PAIRS[pair].base}"
            axes = Axis("load ρ"), Axis("difference of cost, %")
            panels.append(Panel(*axes, _over_loads(pair, points), title=title))
    return Figure(
        "few-cores-limits",
        "Many cores, and high loads",
        "First: by which share the cost exceeds the lower bound, over the number of cores. WHAM knows sizes "
        "here, and makes use of them when jobs outnumber cores; wham-improved is WHAM on the paper's "
        "workload and on many cores. Then: what is gained over the load (95 %).",
        tuple(panels),
    )


def _over_loads(pair: str, points: list[Point]) -> tuple[Series, ...]:
    series = []
    for name in dict.fromkeys(p.where[0] for p in points):
        mine = [p for p in points if p.where[0] == name]
        gains = [paired(pair, p.place, p.value).percent for p in mine]
        title = f"{WORKLOADS[name][0]}, n = {mine[0].where[1]}"
        series.append(Series.of(title, [p.where[2] for p in mine], gains, "both", COLOURS[name]))
    return tuple(series)
