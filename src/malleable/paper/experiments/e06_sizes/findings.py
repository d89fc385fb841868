"""What the cells of e06_sizes show: figures, tables and verdicts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e06_sizes.cells import DRAWN, NEAR, grids
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import ends, from_rows
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

Ratios = list[tuple[int, Estimate]]
"""Numbers of cores, and the cost over WHAM's on them."""
CLASS = 1
"""The class whose widths are drawn."""
TITLES = {
    "mixed": "A-heSRPT, the paper's classes",
    "hesrpt": "A-heSRPT, one class",
    "levelled": "levelled heSRPT, one class",
}
RULES = {"mixed": "hesrpt", "hesrpt": "hesrpt", "levelled": "levelled"}
"""The rule by size of each kind of cell."""
SETTLED = 128
"""From this many cores on, a + b/n + c/n² is fitted to differences with one class."""
CLOSE, PRECISE = 0.03, 0.1
"""How near to the predicted share a measured one must be; precision of a limit that counts."""
CHOICES = {
    "epsilon": "k within 10 % or 25 % of k_i*, relative",
    "A-heSRPT": (
        "heSRPT's shares at every arrival and departure by remaining size, one exponent fitted to all "
        "classes; jobs due less than a core get one, and the rule is applied again to the others"
    ),
    "one class": "class 2 of the paper alone (√k), where WHAM and EQUI coincide",
    "levelled heSRPT": "jobs due less than a core get one, and the shares of all others are scaled down once",
    "run length": "the simulations of rules by size have fewer jobs the more cores, at least 30 per core",
    "widths": "the first fifth of a run is left out; 20 batches, 95 %",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Shares of the work near k_i*, the price of using sizes, and what they say."""
    cores, mixed, level, plain = grids(effort)
    grid = {"mixed": mixed, "hesrpt": plain, "levelled": level}
    ratios = {key: ratios_of(key, where, values) for key, where in grid.items()}
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
        figures=(figure(cores, values), costs_figure(ratios, values)),
        tables=(shares_table(cores, values), costs_table(ratios, values)),
        verdicts=(
            *(widths_gather(i, name, cores, values) for i, name in enumerate(names)),
            loses_verdict(ratios["mixed"]),
            limit_verdict(level, values, ratios["levelled"][-1]),
            few_cores_verdict(ratios["levelled"][0]),
        ),
        remarks=_remarks(ratios, values),
    )


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
        "At one n all rules of a comparison see the same jobs, at least 30 per core.",
    )


def share_of(position: int, i: int, cores: tuple[int, ...], values: Values) -> list[Estimate]:
    """Shares of class i's work within NEAR[position] of k_i*."""
    index = position * len(values["predicted"]["names"]) + i
    return [read_interval(values[f"widths-{n}"]["shares"][index]) for n in cores]


def width_of(i: int, values: Values) -> float:
    """The width k_i* of a class."""
    return float(values["predicted"]["widths"][i])


def ratios_of(key: str, cores: tuple[int, ...], values: Values) -> Ratios:
    """Cost over WHAM's, from paired differences."""
    return [(n, Compared(values[f"{key}-{n}"]).share(RULES[key]).shifted(1.0)) for n in cores]


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
        (name, known["widths"][i], near, n, *ends(s), known["shares"][p][i][j])
        for i, name in enumerate(known["names"])
        for p, near in enumerate(NEAR)
        for j, (n, s) in enumerate(zip(cores, share_of(p, i, cores, values), strict=True))
    ]
    names = ("class", "k*", "epsilon", "cores", "share of work", "low", "high", "predicted")
    return Table("sizes-widths", "Work that WHAM does within ε of k* (95 %)", from_rows(names, rows))


def costs_table(ratios: dict[str, Ratios], values: Values) -> Table:
    """Costs relative to WHAM's."""
    rows = []
    for key, found in ratios.items():
        for n, ratio in found:
            value = Compared(values[f"{key}-{n}"])
            policy = RULES[key]
            cost, jobs = value.cost(policy), value.result(policy)["jobs"]
            known = value.cost("wham").mean, cost.mean, cost.low, cost.high
            rows.append((TITLES[key], n, *known, *ends(value.apart(policy)), ratio.mean, jobs))
    names = ("policy", "cores", "WHAM's cost", "cost", "cost low", "cost high", "difference")
    more = ("difference low", "difference high", "ratio", "jobs simulated")
    columns = from_rows((*names, *more), rows)
    return Table("sizes-costs", "Going by size against WHAM on the same jobs (95 %)", columns)


def widths_gather(i: int, name: str, cores: tuple[int, ...], values: Values) -> Verdict:
    """Shares must grow with n and end where the mean field's fluctuations put them, which tends to 1."""
    found, expected = share_of(0, i, cores, values), values["predicted"]["shares"][0][i]
    told = ", ".join(f"{s.mean:.1%} on {n}" for n, s in zip(cores, found, strict=True))
    rises = found[-1].low > found[0].high and not any(b.high < a.low for a, b in pairwise(found))
    close = abs(found[-1].mean - expected[-1]) <= max(CLOSE, found[-1].half_width)
    text = f"{told}; the mean field's fluctuations put {expected[-1]:.1%} there on {cores[-1]} cores"
    statement = (
        f"WHAM gathers the work of {name} within {NEAR[0]:.0%} of k* = {width_of(i, values):.4g} cores"
    )
    return Verdict(statement, rises and close, text)


def loses_verdict(ratios: Ratios) -> Verdict:
    """Its ratio to WHAM must be above 1 on many cores, and must not come down again."""
    told = ", ".join(f"{ratio.mean:.4f} on {n}" for n, ratio in ratios)
    comes_down = any(b.high < a.low for (_, a), (_, b) in pairwise(ratios))
    last = ratios[-1][1]
    text = f"cost over WHAM's {told} cores; last between {last.low:.4f} and {last.high:.4f}"
    holds = False if comes_down or last.high < 1.0 else last.low > 1.0 or None
    return Verdict("A-heSRPT, which goes by size, loses to WHAM on many cores", holds, text)


def limit_verdict(cores: tuple[int, ...], values: Values, last: tuple[int, Estimate]) -> Verdict:
    """The limit of the paired difference against that of the fluid equation of `_by_size`."""
    known = values[f"levelled-{cores[-1]}"]
    aim = (known["ratio"] - 1.0) * known["limit"]
    differences = [Compared(values[f"levelled-{n}"]).apart("levelled") for n in cores]
    found, points = ev.limit(cores, differences, SETTLED)
    told = f"cost over WHAM's {last[1].mean:.4f} on {last[0]} cores, in the limit {known['ratio']:.4f}"
    statement = "With one class, levelled heSRPT stays above WHAM by the limit of its fluid equation"
    verdict = ev.tends_to(statement, found, aim, PRECISE, f"{points} points; {told}")
    return Verdict(statement, verdict.holds and found.low > 0.0, verdict.measured)


def few_cores_verdict(first: tuple[int, Estimate]) -> Verdict:
    """Whether sizes help on few cores."""
    n, ratio = first
    text = f"cost over WHAM's {ratio.mean:.4f} ({ratio.low:.4f} to {ratio.high:.4f}) on {n} cores"
    holds = True if ratio.high < 1.0 else False if ratio.low > 1.0 else None
    return Verdict("With one class and few cores sizes do help: levelled heSRPT beats WHAM", holds, text)
