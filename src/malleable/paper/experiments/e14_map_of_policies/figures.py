"""Figures and tables of e14_map_of_policies."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.e14_map_of_policies.cells import POLICIES
from malleable.paper.experiments.e14_map_of_policies.readings import (
    LOAD_BINS,
    RIVALS,
    SPREAD_BINS,
    Row,
    between,
    quantile,
)
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.statistics.intervals import Estimate

WORST = 12
"""Worst cases that are named."""


def machine_map(rows: Sequence[Row]) -> Figure:
    """Where WHAM wins, by how much it leads, and what it loses, over cores and loads."""
    cores = sorted({row.cores for row in rows})
    x = Axis("cores n", categories=tuple(map(str, cores)))
    y = Axis("system load ρ", categories=tuple(f"{a:g}–{b:g}" for a, b in LOAD_BINS))
    parts = [[[r for r in between(rows, "load", b) if r.cores == n] for n in cores] for b in LOAD_BINS]
    return Figure(
        "map-machines",
        "Who wins, over cores and loads",
        "Random workloads by cores and load. First: on how many of them WHAM costs the least of WHAM, EQUI "
        "and GREEDY. Second: the median of what the better rival costs more than WHAM. Third: the most that "
        "WHAM costs more than the better rival.",
        _panels(x, y, parts),
    )


def workload_map(rows: Sequence[Row]) -> Figure:
    """The same over the spread of holding costs and the variability of sizes."""
    scvs = sorted({row.scv for row in rows})
    x = Axis("SCV of sizes", categories=tuple(f"{v:g}" for v in scvs))
    y = Axis("largest over least holding cost", categories=tuple(f"{a:g}–{b:g}" for a, b in SPREAD_BINS))
    parts = [[[r for r in between(rows, "spread", b) if r.scv == v] for v in scvs] for b in SPREAD_BINS]
    return Figure(
        "map-workloads",
        "Who wins, over holding costs and sizes",
        "The same workloads by the ratio of their holding costs and the squared coefficient of variation of "
        "their sizes: wins of WHAM, its median lead, and the most that it loses.",
        _panels(x, y, parts),
    )


def _panels(x: Axis, y: Axis, parts: list[list[list[Row]]]) -> tuple[Panel, ...]:
    shown: tuple[tuple[str, str, Callable[[list[Row]], float]], ...] = (
        ("WHAM is the best", "% of workloads", lambda mine: 100.0 * _share(mine, "wham")),
        ("median lead of WHAM", "%", lambda mine: 100.0 * quantile([row.lead for row in mine], 0.5)),
        ("most that WHAM loses", "%", lambda mine: round(100.0 * _largest_loss(mine), 2)),
    )
    made = []
    for title, unit, value in shown:
        z = tuple(tuple(value(mine) if mine else nan for mine in line) for line in parts)
        columns, lines = (tuple(map(float, range(n))) for n in (len(parts[0]), len(parts)))
        made.append(Panel(x, y, grid=Grid(columns, lines, z, unit), title=title))
    return tuple(made)


def _share(rows: Sequence[Row], policy: str) -> float:
    return sum(row.best == policy for row in rows) / len(rows) if rows else nan


def _largest_loss(rows: Sequence[Row]) -> float:
    """What WHAM costs more than the better rival at most, as a share of its cost."""
    return max(0.0, -min(row.lead for row in rows))


def leads(rows: Sequence[Row]) -> Figure:
    """How the rivals' costs over WHAM's are distributed."""
    series = []
    for rival in RIVALS:
        name, colour = POLICIES[rival]
        ordered = sorted(100.0 * row.shares[rival].mean for row in rows)
        steps = sorted({round(k * (len(ordered) - 1) / 400) for k in range(401)})
        at = tuple(ordered[k] for k in steps)
        part = tuple(100.0 * (k + 1) / len(ordered) for k in steps)
        series.append(Series(name, at, part, colour=colour))
    panel = Panel(
        Axis("cost over that of WHAM, %", low=-6.0, high=100.0), Axis("% of workloads"), tuple(series)
    )
    return Figure(
        "map-leads",
        "By how much",
        "The share of workloads on which a rival costs at most so much more than WHAM; to the left of 0 it "
        "costs less. The curves go on beyond 100 %.",
        (panel,),
    )


def improved_figure(found: Sequence[tuple[str, float, float, Estimate]]) -> Figure:
    """The improved WHAM over WHAM, by load, one series per number of cores."""
    series = []
    for i, n in enumerate(sorted({cores for _, cores, *_ in found})):
        mine = sorted((load, share, name) for name, cores, load, share in found if cores == n)
        x, y = [load for load, *_ in mine], [share for _, share, _ in mine]
        names = tuple(name for *_, name in mine)
        series.append(Series.of(f"{n:g} cores", x, y, "points", i, names))
    panel = Panel(Axis("system load ρ"), Axis("cost / cost of WHAM − 1"), tuple(series))
    return Figure(
        "map-improved",
        "The improved WHAM on the same jobs",
        "Workloads with exponential sizes, with intervals of 99.9 %. It weighs classes by a value function, "
        "and looks at no sizes; WHAM looks at them when jobs outnumber cores.",
        (panel,),
    )


def refined_figure(rows: Sequence[Row]) -> Figure:
    """Errors of the refined mean field over cores, where it applies."""
    cores = sorted({row.cores for row in rows})
    x = tuple(map(float, cores))
    errors = {
        (policy, n): [
            100.0 * abs(row.errors[policy][0]) for row in rows if row.cores == n and _fits(row, policy)
        ]
        for policy in POLICIES
        for n in cores
    }
    panels = []
    for title, share in (("median", 0.5), ("95 % of them are nearer", 0.95)):
        series = tuple(
            Series(
                name, x, tuple(quantile(errors[policy, n], share) for n in cores), style="both", colour=colour
            )
            for policy, (name, colour) in POLICIES.items()
        )
        panels.append(Panel(Axis("cores n", "log"), Axis("error, %", "log"), series, title=title))
    return Figure(
        "map-refined",
        "The refined mean field on the same workloads",
        "The distance of its cost from the simulated one, over the latter, on the workloads to which it says "
        "that it applies. Simulated costs have errors of some tenths of a percent themselves.",
        tuple(panels),
    )


def _fits(row: Row, policy: str) -> bool:
    return policy in row.errors and row.errors[policy][1]


def winners_table(rows: Sequence[Row]) -> Table:
    """How often each policy wins, and by how much the others lose."""
    groups: list[tuple[str, list[Row]]] = [("all", list(rows))]
    groups += [
        (f"{n} cores", [row for row in rows if row.cores == n]) for n in sorted({r.cores for r in rows})
    ]
    groups += [(f"load {a:g} to {b:g}", between(rows, "load", (a, b))) for a, b in LOAD_BINS]
    groups += [
        (f"{m} classes", [r for r in rows if r.classes == m]) for m in sorted({r.classes for r in rows})
    ]
    shown = [(name, mine) for name, mine in groups if mine]
    columns: dict[str, tuple[Any, ...]] = {
        "workloads": tuple(name for name, _ in shown),
        "number": tuple(len(mine) for _, mine in shown),
        **{f"{POLICIES[p][0]} best": tuple(_share(mine, p) for _, mine in shown) for p in POLICIES},
    }
    for rival in RIVALS:
        name = POLICIES[rival][0]
        for label, share in (("5 %", 0.05), ("median", 0.5), ("95 %", 0.95)):
            columns[f"{name} over WHAM, {label}"] = tuple(
                quantile([row.shares[rival].mean for row in mine], share) for _, mine in shown
            )
    columns["WHAM's largest loss"] = tuple(_largest_loss(mine) for _, mine in shown)
    return Table("map", "Who wins, and by how much", columns)


def worst_table(rows: Sequence[Row]) -> Table:
    """The workloads on which WHAM loses most."""
    worst = sorted(rows, key=lambda row: row.lead)[:WORST]
    columns: dict[str, tuple[Any, ...]] = {
        "workload": tuple(row.name for row in worst),
        "load": tuple(row.load for row in worst),
        "SCV": tuple(row.scv for row in worst),
        "holding costs": tuple(row.spread for row in worst),
        "speedups": tuple(row.speedups for row in worst),
        **{
            f"{POLICIES[rival][0]} over WHAM": tuple(row.shares[rival].mean for row in worst)
            for rival in RIVALS
        },
        "±": tuple(row.shares[min(RIVALS, key=lambda p: row.shares[p].mean)].half_width for row in worst),
    }
    return Table("map-worst", "Where WHAM loses most (classes-cores-number)", columns)


def refined_table(rows: Sequence[Row]) -> Table:
    """Errors of the refined mean field by policy and cores."""
    cores = sorted({row.cores for row in rows})
    pairs = [
        (p, n, [row for row in rows if row.cores == n and p in row.errors]) for p in POLICIES for n in cores
    ]
    fits = [[abs(row.errors[p][0]) for row in mine if row.errors[p][1]] for p, _, mine in pairs]
    rest = [[abs(row.errors[p][0]) for row in mine if not row.errors[p][1]] for p, _, mine in pairs]
    columns: dict[str, tuple[Any, ...]] = {
        "policy": tuple(POLICIES[p][0] for p, *_ in pairs),
        "cores": tuple(n for _, n, _ in pairs),
        "workloads": tuple(len(mine) for *_, mine in pairs),
        "applies to": tuple(map(len, fits)),
        "median error": tuple(quantile(v, 0.5) for v in fits),
        "95 %": tuple(quantile(v, 0.95) for v in fits),
        "largest": tuple(max(v, default=nan) for v in fits),
        "median where it does not": tuple(quantile(v, 0.5) for v in rest),
    }
    return Table("map-refined", "Errors of the refined mean field", columns)


def workloads_table(rows: Sequence[Row]) -> Table:
    """All workloads, for a closer look elsewhere."""
    columns: dict[str, tuple[Any, ...]] = {
        "workload": tuple(row.name for row in rows),
        "load": tuple(row.load for row in rows),
        "SCV": tuple(row.scv for row in rows),
        "holding costs": tuple(row.spread for row in rows),
        "speedups": tuple(row.speedups for row in rows),
        "cost of WHAM": tuple(row.cost for row in rows),
    }
    for rival in RIVALS:
        name = POLICIES[rival][0]
        columns[f"{name} over WHAM"] = tuple(row.shares[rival].mean for row in rows)
        columns[f"{name} ±"] = tuple(row.shares[rival].half_width for row in rows)
    return Table("map-workloads", "All workloads", columns, shown=False)
