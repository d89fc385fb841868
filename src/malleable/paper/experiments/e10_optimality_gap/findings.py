"""What the cells of e10_optimality_gap show: figures, tables and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e10_optimality_gap.cells import (
    DRAWN,
    FEW,
    LOADS,
    WORKLOADS,
    settings_of,
    simulated_settings,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.policies import label
from malleable.paper.experiments.shared.workloads import key_of
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.paper.contracts import Values

SHOWN = ("wham", "equi", "greedy", "greedy:weight=cmu", "wham-integer")
"""Policies whose distances from the optimum are drawn, where they are known."""
TRUNCATED = 1e-4
"""Share of arrivals that find the chain full above which a policy has no cost worth printing."""
EXACT = 1e-6
"""Relative error of the exact costs: what the truncation may leave."""
CLOSE = 0.01
"""A gap that counts as small."""
CHOICES = {
    "sizes": "exponential with the paper's means, so that class counts are all a size-blind policy can know",
    "short and long": "two classes alike but for mean size (0.1 and 1), k^0.8, c = 1, each half of the load",
    "n, ρ": f"n = {', '.join(map(str, FEW))}, more at low load; ρ = {', '.join(map(str, LOADS))}",
    "widths": "any real number of cores; below one core a job shares it in time; whole cores apart",
    "overload": "in the chain WHAM orders by c/E[X], GREEDY with equal weights shares the cores in time",
    "truncation": "1e-6 of the optimum's arrivals find the chain full; up to 1e-4 with three classes",
    "lost jobs": "charged what it would cost to let them in, by the value function of the overloaded system",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Gaps over n and load, the map, and what they say."""
    points = [Point(*s, values[key_of("gap", *s)]) for s in settings_of(effort)]
    points = [point for point in points if not failed(point.value)]
    points.sort(key=lambda p: (p.name, p.load, p.cores))
    figures = [over_cores(points), by_policy(points)]
    figures += [] if effort.quick else [heat(points)]
    return Findings(
        title="How far is WHAM from the optimum?",
        source="beyond the paper",
        statement=(
            "WHAM's cost tends to the lower bound V* on many cores. On few cores V* is out of reach for "
            "every policy, so the distance from V* does not tell how good a policy is. With Poisson arrivals "
            "and exponential sizes the best policy that is blind to sizes can be computed (a Markov decision "
            "process), and the distance from it can be measured. Where does WHAM lose, and how much?"
        ),
        figures=(*figures, decisions(values["map"])),
        tables=(table(points), simulation_table(effort, values, points)),
        verdicts=(
            sandwich(points),
            closed(points),
            small_on_the_paper(points),
            *(gap_falls(points, name) for name in ("two", "sizes")),
            best_rule(points),
            favours_short(values["map"]),
            sizes_matter(effort, values, points),
            agrees(effort, values, points),
        ),
        remarks=(
            (
                "The optimum is over policies that do not know sizes. WHAM knows them, and uses them when "
                "jobs outnumber cores; in the chain it orders by c/E[X] instead. Simulated WHAM is the real "
                "one, and may cost less than the optimum."
            ),
            (
                "WHAM gives short and long jobs of one speedup the same cores as long as each job has one. "
                "The optimum gives the short ones more: they leave sooner and free their cores. On very many "
                "cores the difference vanishes."
            ),
            (
                "A policy under which more than one arrival in ten thousand finds the chain full is "
                "unstable, or needs a longer chain; it has no entry. GREEDY with w = cμ starves the class of "
                "lower cμ at high load."
            ),
        ),
    )


@dataclass(frozen=True)
class Point:
    """One setting: the optimum and the policies' distances from it."""

    name: str
    cores: int
    load: float
    value: Any

    @property
    def place(self) -> str:
        """The setting in words."""
        return f"{WORKLOADS[self.name][0]}, n = {self.cores}, ρ = {self.load:g}"

    def gap(self, policy: str) -> float:
        """By which share a policy's cost exceeds the optimum's; NaN where it is not known."""
        kind = "whole" if policy == "wham-integer" else "real"
        found = self.value.get(kind, {}).get("policies", {}).get(policy)
        if found is None or found["lost"] > TRUNCATED:
            return nan
        return float(found["cost"] / self.value[kind]["optimum"] - 1.0)


def runs(effort: Effort, values: Values, points: list[Point]) -> Iterable[tuple[Point, str, Any]]:
    """Every simulated policy with its exact setting."""
    known = {(p.name, p.cores, p.load): p for p in points}
    for setting in simulated_settings(effort):
        if setting in known:
            for policy, result in Compared(values[key_of("simulated", *setting)]).results.items():
                yield known[setting], policy, result


def among(points: Iterable[Point], name: str, load: float | None = None) -> list[Point]:
    """The points of a workload, at one load or at all."""
    return [p for p in points if p.name == name and (load is None or p.load == load)]


def excess(value: Any) -> list[list[float]]:
    """By how many cores the optimum's choice for the first class exceeds WHAM's, row by row."""
    pairs = zip(value["optimum"], value["wham"], strict=True)
    return [[a - b for a, b in zip(*rows, strict=True)] for rows in pairs]


def over_cores(points: list[Point]) -> Figure:
    """WHAM's gap by number of cores."""
    panels = []
    for name in ("two", "sizes"):
        series = []
        for load, colour in DRAWN.items():
            chosen = among(points, name, load)
            if chosen:
                gap = tuple(_positive(p.gap("wham")) for p in chosen)
                x = tuple(float(p.cores) for p in chosen)
                series.append(Series(f"ρ = {load:g}", x, gap, style="both", colour=colour))
        title = WORKLOADS[name][0]
        panels.append(
            Panel(Axis("cores n", "log"), Axis("WHAM above the optimum", "log"), tuple(series), title=title)
        )
    return Figure(
        "optimality-gap",
        "WHAM's distance from the optimum",
        "By which share WHAM costs more than the best policy that is blind to sizes, over the number of "
        "cores. Points below one in a million are left out.",
        tuple(panels),
    )


def _positive(gap: float) -> float:
    return gap if gap > EXACT else nan


def by_policy(points: list[Point]) -> Figure:
    """Gaps of all policies."""
    panels = []
    for name, load in (("three", 0.55), ("sizes", 0.55)):
        chosen = among(points, name, load)
        x = tuple(float(p.cores) for p in chosen)
        gaps = {label(policy): tuple(_positive(p.gap(policy)) for p in chosen) for policy in SHOWN}
        series = [
            Series(policy, x, y, style="both", colour=colour)
            for (policy, colour), y in gaps.items()
            if any(not isnan(v) for v in y)
        ]
        title = f"{WORKLOADS[name][0]}, ρ = {load:g}"
        panels.append(
            Panel(Axis("cores n", "log"), Axis("cost above the optimum", "log"), tuple(series), title=title)
        )
    return Figure(
        "optimality-policies",
        "Policies and the optimum",
        "By which share each policy costs more than the optimum; WHAM on whole cores is compared with the "
        "optimum on whole cores.",
        tuple(panels),
    )


def heat(points: list[Point]) -> Figure:
    """WHAM's gap by cores and load."""
    panels = []
    for name in ("sizes", "three"):
        chosen = [p for p in among(points, name) if p.cores <= 16]
        cores, loads = sorted({p.cores for p in chosen}), sorted({p.load for p in chosen})
        known = {(p.cores, p.load): 100.0 * p.gap("wham") for p in chosen}
        z = tuple(tuple(known.get((n, load), nan) for n in cores) for load in loads)
        x = Axis("cores n", categories=tuple(map(str, cores)))
        y = Axis("system load ρ", categories=tuple(f"{load:g}" for load in loads))
        grid = Grid(tuple(map(float, range(len(cores)))), tuple(map(float, range(len(loads)))), z, "gap, %")
        panels.append(Panel(x, y, grid=grid, title=WORKLOADS[name][0]))
    return Figure(
        "optimality-heat",
        "Where WHAM loses",
        "WHAM's cost above the optimum, in percent, over cores and load.",
        tuple(panels),
    )


def decisions(value: Any) -> Figure:
    """Cores for the first class, state by state."""
    side = tuple(map(float, range(len(value["wham"]))))
    x, y = Axis("short jobs present"), Axis("long jobs present")
    return Figure(
        "optimality-map",
        "What the optimum does differently",
        f"Cores for the short jobs together, n = {value['cores']}, ρ = {value['load']:g}: the optimum's, and "
        "by how many they exceed WHAM's.",
        (
            Panel(x, y, grid=Grid(side, side, _rows(value["optimum"]), "cores"), title="optimum"),
            Panel(x, y, grid=Grid(side, side, _rows(excess(value)), "cores", 0.0), title="optimum − WHAM"),
        ),
    )


def _rows(table: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table))


def table(points: list[Point]) -> Table:
    """All exact costs."""
    columns: dict[str, tuple[Any, ...]] = {
        "workload": tuple(WORKLOADS[p.name][0] for p in points),
        "cores": tuple(p.cores for p in points),
        "load": tuple(p.load for p in points),
        "optimum": tuple(p.value["real"]["optimum"] for p in points),
        "lower bound": tuple(p.value["bound"] for p in points),
        "most jobs": tuple(p.value["limit"] for p in points),
        "lost": tuple(p.value["real"]["lost"] for p in points),
    }
    for policy in SHOWN:
        if any(not isnan(p.gap(policy)) for p in points):
            columns[f"{label(policy).name}, above the optimum"] = tuple(p.gap(policy) for p in points)
    return Table("optimality", "Exact costs: the optimum, and how far policies are above it", columns)


def simulation_table(effort: Effort, values: Values, points: list[Point]) -> Table:
    """Simulated beside exact costs."""
    rows = list(runs(effort, values, points))
    costs = [read_interval(result["cost"]) for _, _, result in rows]
    best = [p.value["real"]["optimum"] for p, _, _ in rows]
    columns: dict[str, tuple[Any, ...]] = {
        "workload": tuple(WORKLOADS[p.name][0] for p, _, _ in rows),
        "cores": tuple(p.cores for p, _, _ in rows),
        "load": tuple(p.load for p, _, _ in rows),
        "policy": tuple(label(policy).name for _, policy, _ in rows),
        **interval_columns("cost", costs),
        "size-blind optimum": tuple(best),
        "above the optimum": tuple(c.mean / b - 1.0 for c, b in zip(costs, best, strict=True)),
    }
    return Table("optimality-simulated", "Simulated costs of the policies themselves", columns)


def sandwich(points: list[Point]) -> Verdict:
    """V* below the optimum, the optimum below every policy."""
    below = [p.value["real"]["low"] / p.value["bound"] for p in points]
    above = [gap for p in points for policy in SHOWN if not isnan(gap := p.gap(policy))]
    return Verdict(
        "The optimum lies between the lower bound V* and the cost of every policy",
        bool(points) and min(below) >= 1.0 - EXACT and min(above) >= -EXACT,
        f"{len(points)} settings: optimum/V* from {min(below):.4g} to {max(below):.4g}, "
        f"{len(above)} policy costs at least {min(above):.2e} above the optimum",
    )


def closed(points: list[Point]) -> Verdict:
    """Whether the optima are what they claim to be."""
    kinds = [p.value[kind] for p in points for kind in ("real", "whole") if kind in p.value]
    width = max(k["high"] / k["low"] - 1.0 for k in kinds)
    lost = max(k["lost"] for k in kinds)
    return Verdict(
        f"Every optimum is known to eight digits, on a chain that loses at most {TRUNCATED:.2%} of arrivals",
        width <= 1e-8 and lost <= TRUNCATED,
        f"widest bracket {width:.1e}, most arrivals lost {lost:.1e}",
    )


def _worst(points: Iterable[Point]) -> Point:
    return max(points, key=lambda p: p.gap("wham"))


def small_on_the_paper(points: list[Point]) -> Verdict:
    """Whether WHAM's gap is small on the paper's classes."""
    worst = _worst(p for p in points if p.name != "sizes")
    return Verdict(
        f"On the paper's classes, with exponential sizes, WHAM is within {CLOSE:.0%} of the optimum",
        worst.gap("wham") <= CLOSE,
        f"largest gap {worst.gap('wham'):.3%} ({worst.place}); with short and long jobs "
        f"{(far := _worst(among(points, 'sizes'))).gap('wham'):.2%} ({far.place})",
    )


def gap_falls(points: list[Point], name: str) -> Verdict:
    """After its peak the gap must fall to the last n; where it still rises there is nothing to decide."""
    decided, texts = [], []
    for load in DRAWN:
        chosen = among(points, name, load)
        if len(chosen) < 3:
            continue
        gap = [p.gap("wham") for p in chosen]
        peak = gap.index(max(gap))
        fell = all(b <= a + EXACT for a, b in pairwise(gap[peak:]))
        highest, last = chosen[peak].cores, chosen[-1].cores
        if highest < last:
            decided.append(fell)
            texts.append(f"ρ = {load:g}: peak {gap[peak]:.3%} at n = {highest}, {gap[-1]:.3%} at n = {last}")
        else:
            texts.append(f"ρ = {load:g}: still rising at n = {last}, {gap[-1]:.3%}")
    statement = f"WHAM's gap to the optimum falls with n once it has peaked: {WORKLOADS[name][0]}"
    return Verdict(statement, all(decided) if decided else None, "; ".join(texts) or "too few points")


def best_rule(points: list[Point]) -> Verdict:
    """Whether WHAM is the best of the simple rules."""
    rivals = ("equi", "greedy", "greedy:weight=cmu")
    beaten = [(p.gap(r) - p.gap("wham"), p, r) for p in points for r in rivals if not isnan(p.gap(r))]
    lost = [one for one in beaten if one[0] < -EXACT]
    text = f"beaten in {len({id(p) for _, p, _ in lost})} of {len(points)} settings"
    if lost:
        by, where, rival = min(lost, key=lambda one: one[0])
        text += f", most by {label(rival).name} ({where.place}): {where.gap(rival):.2%} against "
        text += f"{where.gap('wham'):.2%} above the optimum, {-by:.2%} of it apart"
    return Verdict("No other class rule costs less than WHAM, at any n and load", not lost, text)


def favours_short(value: Any) -> Verdict:
    """What the optimum does where WHAM, while every job can have a core, does not look at sizes."""
    statement = (
        "With short and long jobs present the optimum never gives the short ones fewer cores than WHAM"
    )
    cores, more, both = value["cores"], excess(value), range(1, len(value["wham"]))
    few = [(a, b) for b in both for a in both if a + b <= cores]
    waits = sum(value["optimum"][b][a] > cores - 1e-6 for a, b in few)
    least, most = (end(more[b][a] for b in both for a in both) for end in (min, max))
    text = (
        f"between {least:.2f} and {most:.2f} cores more; in {waits} of the {len(few)} states with cores for "
    )
    return Verdict(statement, least >= -1e-6, text + "all, long jobs get none")


def sizes_matter(effort: Effort, values: Values, points: list[Point]) -> Verdict:
    """Simulated WHAM against the optimum that does not know sizes."""
    statement = "Knowing sizes in overload, the real WHAM can cost less than the best size-blind policy"
    shares = []
    for point, policy, result in runs(effort, values, points):
        if policy == "wham":
            cost = ev.widened(read_interval(result["cost"]), result, ev.SURE)
            best = point.value["real"]["low"]
            shares.append((cost.high / best - 1.0, cost.mean / best - 1.0, point))
    if not shares:
        return Verdict(statement, None, "WHAM was not simulated")
    high, mean, point = min(shares, key=lambda one: one[0])
    text = f"{point.place}: simulated WHAM {mean:+.2%} against the optimum, at most {high:+.2%} (99.9 %)"
    return Verdict(statement, True if high < 0.0 else None, text)


def agrees(effort: Effort, values: Values, points: list[Point]) -> Verdict:
    """EQUI needs neither sizes nor the order of arrival: its simulation and its chain are the same system."""
    return ev.agreement(
        "Simulated EQUI costs what the chain says",
        [
            ev.Case(
                point.place,
                read_interval(result["cost"]),
                result,
                point.value["real"]["policies"][policy]["cost"],
            )
            for point, policy, result in runs(effort, values, points)
            if policy == "equi"
        ],
    )
