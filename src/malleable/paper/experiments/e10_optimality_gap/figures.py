"""Figures and tables of e10_optimality_gap."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Table
from malleable.paper.experiments.e10_optimality_gap.cells import DRAWN, WORKLOADS
from malleable.paper.experiments.e10_optimality_gap.readings import (
    EXACT,
    POLICIES,
    Point,
    among,
    excess,
    runs,
)
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values


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
        gaps = {policy: tuple(_positive(p.gap(policy)) for p in chosen) for policy in POLICIES}
        series = [
            Series(POLICIES[policy][0], x, y, style="both", colour=POLICIES[policy][1])
            for policy, y in gaps.items()
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
    for policy, (title, _) in POLICIES.items():
        if any(not isnan(p.gap(policy)) for p in points):
            columns[f"{title}, above the optimum"] = tuple(p.gap(policy) for p in points)
    return Table("optimality", "Exact costs: the optimum, and how far policies are above it", columns)


def simulation_table(effort: Effort, values: Values, points: list[Point]) -> Table:
    """Simulated beside exact costs."""
    rows = list(runs(effort, values, points))
    costs = [read_interval(result["cost"]) for _, _, result in rows]
    best = [p.value["real"]["optimum"] for p, _, _ in rows]
    return Table(
        "optimality-simulated",
        "Simulated costs of the policies themselves",
        {
            "workload": tuple(WORKLOADS[p.name][0] for p, _, _ in rows),
            "cores": tuple(p.cores for p, _, _ in rows),
            "load": tuple(p.load for p, _, _ in rows),
            "policy": tuple(POLICIES[policy][0] for _, policy, _ in rows),
            "cost": tuple(c.mean for c in costs),
            "low": tuple(c.low for c in costs),
            "high": tuple(c.high for c in costs),
            "size-blind optimum": tuple(best),
            "above the optimum": tuple(c.mean / b - 1.0 for c, b in zip(costs, best, strict=True)),
        },
    )
