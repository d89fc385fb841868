"""Figures and tables of e06_sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.e06_sizes.cells import (
    DRAWN,
    NEAR,
)
from malleable.paper.experiments.e06_sizes.readings import (
    Ratios,
    share_of,
    width_of,
)
from malleable.paper.experiments.shared.curves import high, low
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
CLASS = 1
"""The class whose widths are drawn."""

TITLES = {
    "mixed": "A-heSRPT, the paper's classes",
    "hesrpt": "A-heSRPT, one class",
    "levelled": "levelled heSRPT, one class",
}


def figure(cores: tuple[int, ...], values: Values) -> Figure:
    """Widths that gather at k_i*, by number of cores."""
    known, x = values["predicted"], tuple(map(float, cores))
    shares = [
        s
        for i, name in enumerate(known["names"])
        for s in (
            Series.of(name, x, share_of(0, i, cores, values), "points", i),
            Series(f"{name}, predicted", x, tuple(known["shares"][0][i]), style="dotted", colour=i),
        )
    ]
    steps = [
        _step(f"WHAM, n = {n}", values[f"widths-{n}"], colour, values)
        for n, colour in DRAWN.items()
        if n in cores
    ]
    steps.append(_step("A-heSRPT, n = 256", values["widths-by-size"], 4, values))
    name, part = known["names"][CLASS], Axis("share of work", low=0.0, high=1.0)
    return Figure(
        "sizes-widths",
        "Widths gather at k*",
        f"First: share of a class's work that WHAM does within {NEAR[0]:.0%} of k_i*, with 95 % intervals, "
        f"and what the mean field's fluctuations predict. Second: share of the work of {name} done on at "
        "most the given multiple of k*; under WHAM it becomes a step at 1, under A-heSRPT widths stay spread "
        "out.",
        (
            Panel(Axis("cores n", "log"), part, tuple(shares)),
            Panel(Axis("width / k*", low=0.0, high=3.0), part, tuple(steps)),
        ),
    )


def _step(name: str, value: Any, colour: int, values: Values) -> Series:
    """The distribution of widths of the class that is drawn, up to three times k*."""
    found, unit = value["distribution"][CLASS], width_of(CLASS, values)
    pairs = [(k / unit, s) for k, s in zip(found["width"], found["share"], strict=True) if k <= 3.0 * unit]
    return Series(name, tuple(k for k, _ in pairs), tuple(s for _, s in pairs), style="line", colour=colour)


def costs_figure(ratios: dict[str, Ratios], values: Values) -> Figure:
    """What knowing sizes gains or loses against WHAM."""
    shown = [
        Series.of(TITLES[key], [float(n) for n, _ in rows], [r for _, r in rows], "both", 3 + i)
        for i, (key, rows) in enumerate(ratios.items())
    ]
    x = tuple(float(n) for n, _ in ratios["levelled"])
    aim = values[f"levelled-{ratios['levelled'][-1][0]}"]["ratio"]
    shown.append(Series("its limit", x, (aim,) * len(x), style="dashed", colour=5))
    shown.append(Series("WHAM", x, (1.0,) * len(x), style="dashed", colour=0))
    return Figure(
        "sizes-costs",
        "What going by size costs",
        "Cost over that of WHAM on the same jobs, with 95 % intervals of the paired difference. Below 1 "
        "going by size is better: only with one class and few cores. On many cores it is worse.",
        (Panel(Axis("cores n", "log"), Axis("cost / cost of WHAM"), tuple(shown)),),
    )


def shares_table(cores: tuple[int, ...], values: Values) -> Table:
    """Shares of work near k_i*, measured and predicted."""
    known = values["predicted"]
    rows = [
        (name, known["widths"][i], near, n, s.mean, low(s), high(s), known["shares"][p][i][j])
        for i, name in enumerate(known["names"])
        for p, near in enumerate(NEAR)
        for j, (n, s) in enumerate(zip(cores, share_of(p, i, cores, values), strict=True))
    ]
    names = ("class", "k*", "epsilon", "cores", "share of work", "low", "high", "predicted")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return Table("sizes-widths", "Work that WHAM does within ε of k* (95 %)", columns)


def costs_table(ratios: dict[str, Ratios], values: Values) -> Table:
    """Costs relative to WHAM's."""
    rows = []
    for key, found in ratios.items():
        for n, ratio in found:
            value = values[f"{key}-{n}"]
            ours, (policy, theirs) = value["results"]["wham"], list(value["results"].items())[1]
            costs = (ours["cost"]["mean"], *(theirs["cost"][end] for end in ("mean", "low", "high")))
            d = read_interval(value["differences"][policy])
            rows.append((TITLES[key], n, *costs, d.mean, low(d), high(d), ratio.mean, theirs["jobs"]))
    names = ("policy", "cores", "WHAM's cost", "cost", "cost low", "cost high", "difference")
    more = ("difference low", "difference high", "ratio", "jobs simulated")
    columns = dict(zip((*names, *more), zip(*rows, strict=True), strict=True))
    return Table("sizes-costs", "Going by size against WHAM on the same jobs (95 %)", columns)
