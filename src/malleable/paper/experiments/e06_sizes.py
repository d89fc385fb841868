"""Exact sizes do not matter on many cores: the proposition that all jobs of a class run on k_i* cores."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort, Findings, Table, Verdict
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._by_size import alone
from malleable.paper.experiments._curves import drawn, high, low
from malleable.paper.experiments._widths import measured, predicted
from malleable.paper.simulation_cells import compared
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

LOAD = 0.25
SEED = 6
NEAR = (0.1, 0.25)
"""ε: how near to k_i* counts as on k_i* cores."""
CORES, QUICK_CORES = (16, 64, 256, 1024, 4096, 16384), (16, 64, 256)
MIXED, QUICK_MIXED = (8, 16, 32, 64, 128, 256, 512, 1024), (16, 64, 128)
ALONE, QUICK_ALONE = (8, 16, 32, 64, 128, 256, 512, 1024, 2048), (8, 128, 256, 512)
PLAIN, QUICK_PLAIN = (8, 16, 32, 64, 128, 256), (8, 64)
"""Numbers of cores for WHAM's widths; A-heSRPT on the paper's classes; on one class, levelled and plain."""
DRAWN = {16: 5, 256: 1, 1024: 7, 16384: 0}
"""Numbers of cores whose distributions of widths are drawn, with their colours."""
CLASS = 1
"""The class whose widths are drawn."""
SETTLED = 128
"""From this many cores on, a + b/n + c/n² is fitted to differences with one class."""
CLOSE, PRECISE = 0.03, 0.1
"""How near to the predicted share a measured one must be; precision of a limit that counts."""

TITLES = {
    "mixed": "A-heSRPT, the paper's classes",
    "hesrpt": "A-heSRPT, one class",
    "levelled": "levelled heSRPT, one class",
}
Ratios = list[tuple[int, Estimate]]
"""Numbers of cores, and the cost over WHAM's on them."""

CHOICES = {
    "epsilon": "k within 10 % or 25 % of k_i*, relative",
    "A-heSRPT": (
        "heSRPT's shares at every arrival and departure by remaining size, one exponent fitted to all "
        "classes; jobs due less than a core get one, and the rule is applied again to the others"
    ),
    "one class": "class 2 of the paper alone (√k), where WHAM and EQUI coincide",
    "levelled heSRPT": "jobs due less than a core get one, and the shares of all others are scaled down once",
    "run length": "the simulations of rules by size have fewer jobs the more cores, at least 30 a core",
    "widths": "the first fifth of a run is left out; 20 batches, 95 %",
}


def cells(effort: Effort) -> list[Cell]:
    """Widths under WHAM by n; rules by size against WHAM, with the paper's classes and with one."""
    best = bound(paper_workload(64, LOAD), 64).widths.tolist()
    windows = [[i, (1.0 - near) * k, (1.0 + near) * k] for near in NEAR for i, k in enumerate(best)]
    cores, mixed, level, plain = _grids(effort)
    jobs = effort.jobs // 2
    run = {"load": LOAD, "seed": SEED}
    wide = {**run, "windows": windows}
    made = [Cell("predicted", predicted, {"cores": list(cores), "load": LOAD, "near": list(NEAR)}, 0.1)]
    for n in cores:
        asked = {"policy": "wham", "cores": n, "jobs": max(jobs, 30 * n), "distribution": n in DRAWN}
        made.append(Cell(f"widths-{n}", measured, {**asked, **wide}, jobs * (1.0 + n / 4000) / 3e6))
    few = _jobs(effort, 256, 128)
    asked = {"policy": "hesrpt", "cores": 256, "jobs": few, "distribution": True}
    made.append(Cell("widths-by-size", measured, {**asked, **wide}, few / 2e5))
    for n in mixed:
        few = _jobs(effort, n, 128)
        asked = {"policies": ["wham", "hesrpt"], "cores": n, "jobs": few}
        made.append(Cell(f"mixed-{n}", compared, {**asked, **run}, few * (1.0 + n / 16) / 1e6))
    for policy, grid, whole in (("levelled", level, 512), ("hesrpt", plain, 128)):
        for n in grid:
            few = _jobs(effort, n, whole)
            asked = {"policy": policy, "cores": n, "jobs": few}
            made.append(Cell(f"{policy}-{n}", alone, {**asked, **run}, few * (1.0 + n / whole) / 3e5))
    return made


def _grids(effort: Effort) -> tuple[tuple[int, ...], ...]:
    return (
        (QUICK_CORES, QUICK_MIXED, QUICK_ALONE, QUICK_PLAIN) if effort.quick else (CORES, MIXED, ALONE, PLAIN)
    )


def _jobs(effort: Effort, n: int, whole: int) -> int:
    """Rules by size look at every job at every event: beyond `whole` cores runs get shorter."""
    base = 20_000 if effort.quick else effort.jobs // 4
    return max(30 * n, int(base * min(1.0, whole / n)))


def findings(effort: Effort, values: Values) -> Findings:
    """Shares of the work near k_i*, the price of using sizes, and what they say."""
    cores, mixed, level, plain = _grids(effort)
    ratios = {
        "mixed": _ratios("mixed", "hesrpt", mixed, values),
        "hesrpt": _ratios("hesrpt", "hesrpt", plain, values),
        "levelled": _ratios("levelled", "levelled", level, values),
    }
    names = values["predicted"]["names"]
    return Findings(
        title="On many cores the size of a job does not matter",
        source="Proposition: mean field optimal policies should not use exact job size information",
        statement=(
            "On one core it pays to serve short jobs first. The paper proves that on many cores it does not: "
            "under any policy that is optimal in the limit, nearly all work of a class is done on the same "
            "number of cores k_i*, whatever the size of the job. A policy that gives short jobs more, as "
            "heSRPT does (optimal when all jobs are there from the start), loses in the limit."
        ),
        figures=(_figure(cores, values), _costs_figure(ratios, values)),
        tables=(_shares_table(cores, values), _costs_table(ratios, values)),
        verdicts=(
            *(_gathers(i, name, cores, values) for i, name in enumerate(names)),
            _loses(ratios["mixed"]),
            _limit(level, values, ratios["levelled"][-1]),
            _few(ratios["levelled"][0]),
        ),
        remarks=_remarks(ratios, values),
    )


def _share(position: int, i: int, cores: tuple[int, ...], values: Values) -> list[Estimate]:
    """Shares of class i's work within NEAR[position] of k_i*."""
    index = position * len(values["predicted"]["names"]) + i
    return [ev.estimate(values[f"widths-{n}"]["shares"][index]) for n in cores]


def _gathers(i: int, name: str, cores: tuple[int, ...], values: Values) -> Verdict:
    """Shares must grow with n and end where the mean field's fluctuations put them, which tends to 1."""
    found, expected = _share(0, i, cores, values), values["predicted"]["shares"][0][i]
    told = ", ".join(f"{s.mean:.1%} on {n}" for n, s in zip(cores, found, strict=True))
    rises = found[-1].low > found[0].high and not any(b.high < a.low for a, b in pairwise(found))
    close = abs(found[-1].mean - expected[-1]) <= max(CLOSE, found[-1].half_width)
    text = f"{told}; the mean field's fluctuations put {expected[-1]:.1%} there on {cores[-1]} cores"
    statement = f"WHAM gathers the work of {name} within {NEAR[0]:.0%} of k* = {_width(i, values):.4g} cores"
    return Verdict(statement, rises and close, text)


def _width(i: int, values: Values) -> float:
    return float(values["predicted"]["widths"][i])


def _ratios(key: str, policy: str, cores: tuple[int, ...], values: Values) -> Ratios:
    """Cost over WHAM's, from paired differences."""
    found = []
    for n in cores:
        value = values[f"{key}-{n}"]
        base, d = value["results"]["wham"]["cost"]["mean"], ev.estimate(value["differences"][policy])
        found.append((n, Estimate(1.0 + d.mean / base, 1.0 + d.low / base, 1.0 + d.high / base)))
    return found


def _loses(ratios: Ratios) -> Verdict:
    """Its ratio to WHAM must be above 1 on many cores, and must not come down again."""
    told = ", ".join(f"{ratio.mean:.4f} on {n}" for n, ratio in ratios)
    comes_down = any(b.high < a.low for (_, a), (_, b) in pairwise(ratios))
    last = ratios[-1][1]
    text = f"cost over WHAM's {told} cores; last between {last.low:.4f} and {last.high:.4f}"
    holds = False if comes_down or last.high < 1.0 else last.low > 1.0 or None
    return Verdict("A-heSRPT, which goes by size, loses to WHAM on many cores", holds, text)


def _limit(cores: tuple[int, ...], values: Values, last: tuple[int, Estimate]) -> Verdict:
    """The limit of the paired difference against that of the fluid equation of `_by_size`."""
    known = values[f"levelled-{cores[-1]}"]
    aim = (known["ratio"] - 1.0) * known["limit"]
    differences = [ev.estimate(values[f"levelled-{n}"]["differences"]["levelled"]) for n in cores]
    found, points = ev.limit(cores, differences, SETTLED)
    told = f"cost over WHAM's {last[1].mean:.4f} on {last[0]} cores, in the limit {known['ratio']:.4f}"
    statement = "With one class, levelled heSRPT stays above WHAM by the limit of its fluid equation"
    verdict = ev.tends_to(statement, found, aim, PRECISE, f"{points} points; {told}")
    return Verdict(statement, verdict.holds and found.low > 0.0, verdict.measured)


def _few(first: tuple[int, Estimate]) -> Verdict:
    n, ratio = first
    text = f"cost over WHAM's {ratio.mean:.4f} ({ratio.low:.4f} to {ratio.high:.4f}) on {n} cores"
    holds = True if ratio.high < 1.0 else False if ratio.low > 1.0 else None
    return Verdict("With one class and few cores sizes do help: levelled heSRPT beats WHAM", holds, text)


def _remarks(ratios: dict[str, Ratios], values: Values) -> tuple[str, ...]:
    n, plain = ratios["hesrpt"][-1]
    limit = values[f"levelled-{ratios['levelled'][-1][0]}"]["ratio"]
    return (
        (
            "A-heSRPT is heSRPT with a repair: jobs due less than a core get one, and the rule is applied "
            "again to the others. Each round leaves the largest of them with less than a core again, so on "
            "many cores the rounds end with nearly all jobs on one core, and the ratio keeps growing. With "
            f"one class it is {plain.mean:.3f} on {n} cores; levelled, with the shares scaled down once "
            f"instead, it tends to {limit:.4f} (9/8 without the level). The paper does not say which it uses."
        ),
        (
            "That the share within ε tends to 1 is what the proposition says in finite terms: the width "
            "under WHAM fluctuates around k_i* by a relative amount of order 1/√n."
        ),
        "At one n all rules of a comparison see the same jobs, at least 30 a core.",
    )


def _figure(cores: tuple[int, ...], values: Values) -> Figure:
    known, x = values["predicted"], tuple(map(float, cores))
    shares = [
        s
        for i, name in enumerate(known["names"])
        for s in (
            drawn(name, x, _share(0, i, cores, values), "points", i),
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
    found, unit = value["distribution"][CLASS], _width(CLASS, values)
    pairs = [(k / unit, s) for k, s in zip(found["width"], found["share"], strict=True) if k <= 3.0 * unit]
    return Series(name, tuple(k for k, _ in pairs), tuple(s for _, s in pairs), style="line", colour=colour)


def _costs_figure(ratios: dict[str, Ratios], values: Values) -> Figure:
    shown = [
        drawn(TITLES[key], [float(n) for n, _ in rows], [r for _, r in rows], "both", 3 + i)
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


def _shares_table(cores: tuple[int, ...], values: Values) -> Table:
    known = values["predicted"]
    rows = [
        (name, known["widths"][i], near, n, s.mean, low(s), high(s), known["shares"][p][i][j])
        for i, name in enumerate(known["names"])
        for p, near in enumerate(NEAR)
        for j, (n, s) in enumerate(zip(cores, _share(p, i, cores, values), strict=True))
    ]
    names = ("class", "k*", "epsilon", "cores", "share of work", "low", "high", "predicted")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return Table("sizes-widths", "Work that WHAM does within ε of k* (95 %)", columns)


def _costs_table(ratios: dict[str, Ratios], values: Values) -> Table:
    rows = []
    for key, found in ratios.items():
        for n, ratio in found:
            value = values[f"{key}-{n}"]
            ours, (policy, theirs) = value["results"]["wham"], list(value["results"].items())[1]
            costs = (ours["cost"]["mean"], *(theirs["cost"][end] for end in ("mean", "low", "high")))
            d = ev.estimate(value["differences"][policy])
            rows.append((TITLES[key], n, *costs, d.mean, low(d), high(d), ratio.mean, theirs["jobs"]))
    names = ("policy", "cores", "WHAM's cost", "cost", "cost low", "cost high", "difference")
    more = ("difference low", "difference high", "ratio", "jobs simulated")
    columns = dict(zip((*names, *more), zip(*rows, strict=True), strict=True))
    return Table("sizes-costs", "Going by size against WHAM on the same jobs (95 %)", columns)
