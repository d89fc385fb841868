"""Costs beside the optimum as figures and a table: over cores, over load, by policy, and state by state."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments._optimality import exponential, short_and_long
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Iterable

WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "two": ("classes 1 and 2 of the paper", exponential("class-1", "class-2")),
    "three": ("the paper's three classes", exponential()),
    "sizes": ("short and long jobs", short_and_long()),
}
"""Names and documents; all sizes are exponential."""
POLICIES = {
    "wham": ("WHAM", 0),
    "equi": ("EQUI", 2),
    "greedy": ("GREEDY", 3),
    "greedy:weight=cmu": ("GREEDY, w = cμ", 4),
    "wham-integer": ("WHAM on whole cores", 1),
    "wham-discounted": ("discounted WHAM", 5),
}
"""Names and colours."""
DRAWN = {0.25: 0, 0.55: 1, 0.7: 2, 0.9: 3}
"""Loads that are drawn as curves over n, with their colours."""
TRUNCATED = 1e-4
"""Share of arrivals that find the chain full above which a policy has no cost worth printing."""
EXACT = 1e-6
"""Relative error of the exact costs: what the truncation may leave."""


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


def among(points: Iterable[Point], name: str, load: float | None = None) -> list[Point]:
    return [p for p in points if p.name == name and (load is None or p.load == load)]


def over_cores(points: list[Point]) -> Figure:
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


def excess(value: Any) -> list[list[float]]:
    """By how many cores the optimum's choice for the first class exceeds WHAM's, row by row."""
    pairs = zip(value["optimum"], value["wham"], strict=True)
    return [[a - b for a, b in zip(*rows, strict=True)] for rows in pairs]


def _rows(table: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table))


def table(points: list[Point]) -> Table:
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
