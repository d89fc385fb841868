"""Figures and tables of e07_whittle."""

from __future__ import annotations

from math import log2, nan
from typing import Any

import numpy as np

from malleable.paper.contracts import Table
from malleable.paper.experiments.e07_whittle.cells import DISCOUNTS, LOADS, RENTS, SIMULATED_CORES, SIZES
from malleable.paper.experiments.e07_whittle.readings import by_mode, gap
from malleable.paper.experiments.shared.curves import high, low
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series
from malleable.statistics.intervals import Estimate

SHOWN_SIZE = 2


def arms_figure(arms: list[Any]) -> Figure:
    """What a job rents over the price, class by class."""
    panels = []
    for arm in arms:
        series = [
            Series(f"α = {alpha:g}", RENTS, tuple(arm["widths"][d][SHOWN_SIZE]), colour=d)
            for d, alpha in enumerate(DISCOUNTS[:3])
        ]
        series.append(
            Series("α → 0: argmin (c + l·k)/s(k)", RENTS, tuple(arm["limit"]), style="dashed", colour=6)
        )
        x, y = Axis("price l over α", "log"), Axis("cores k", low=0.0, high=12.0)
        panels.append(Panel(x, y, tuple(series), title=arm["name"]))
    return Figure(
        "whittle-arms",
        "What a single job should rent",
        f"Optimal number of cores of a job of remaining size {SIZES[SHOWN_SIZE]} over the price, for the "
        "paper's three classes. With little discount the curve follows the limit, and the price above which "
        "the job waits (k = 0) moves away to the right, as 1/α.",
        tuple(panels),
    )


def map_figure(found: Any) -> Figure:
    """What it rents over price and size."""
    z = tuple(tuple(log2(1.0 + k) for k in row) for row in found["cores"])
    grid = Grid(tuple(found["prices"]), tuple(found["sizes"]), z, "log₂(1 + cores)")
    border = Series(
        "c/x, the border as α → 0", tuple(2.0 / x for x in found["sizes"]), tuple(found["sizes"]), colour=1
    )
    panel = Panel(
        Axis("price l", "log", low=found["prices"][0], high=found["prices"][-1]),
        Axis("remaining size x", "log", low=found["sizes"][0], high=found["sizes"][-1]),
        (border,),
        grid,
        f"{found['name']}, α = 1",
    )
    return Figure(
        "whittle-map",
        "Who waits, and who is served on how many cores",
        "Optimal actions over price and remaining size at a large discount, α = 1. The darkest region, where "
        "jobs wait, grows from left to right: indexability. Short jobs step from waiting to one core at the "
        "price c/x; long ones jump to many cores, at a price below it.",
        (panel,),
    )


def policy_figure(states: list[Any], differences: dict[float, tuple[Estimate, list[Estimate]]]) -> Figure:
    """How far the discounted policy is from WHAM."""
    few = by_mode(states, crowded=False, key="largest")
    moved = [v if v > 1e-9 else nan for v in by_mode(states, crowded=True, key="moved")]
    left = (
        Series("fewer jobs than cores: cores of a job", DISCOUNTS, tuple(few), style="both", colour=0),
        Series("more jobs than cores: share of cores moved", DISCOUNTS, tuple(moved), style="both", colour=1),
    )
    right = tuple(
        Series.of(
            f"load {load}",
            LOADS[load],
            [Estimate(*(v / wham.mean for v in (d.mean, d.low, d.high))) for d in apart],
            "both",
            2 + i,
        )
        for i, (load, (wham, apart)) in enumerate(differences.items())
    )
    return Figure(
        "whittle-policy",
        "The discounted Whittle policy tends to WHAM",
        "First: largest difference between the two policies' allocations over random states; zero where a "
        "curve ends. Second: cost of the discounted policy over WHAM's, less 1, from paired simulations on "
        f"{SIMULATED_CORES} cores with 95 % intervals.",
        (
            Panel(Axis("discount α", "log"), Axis("largest difference", "log"), left, title="allocations"),
            Panel(Axis("discount α", "log"), Axis("cost / cost of WHAM − 1"), right, title="costs"),
        ),
    )


def widths_table(arms: list[Any]) -> Table:
    """All widths."""
    columns: dict[str, tuple[Any, ...]] = {"l/α": RENTS}
    for arm in arms:
        for d, alpha in enumerate(DISCOUNTS):
            for position, x in enumerate(SIZES):
                columns[f"{arm['name']}, α = {alpha:g}, x = {x:g}"] = tuple(arm["widths"][d][position])
        columns[f"{arm['name']}, limit"] = tuple(arm["limit"])
    return Table("whittle-widths", "Optimal widths over the price", columns, shown=False)


def limits_table(arms: list[Any]) -> Table:
    """Distances from the limit by class and discount."""
    rows = [(arm, d) for arm in arms for d in range(len(DISCOUNTS))]
    columns = {
        "class": tuple(arm["name"] for arm, _ in rows),
        "α": tuple(DISCOUNTS[d] for _, d in rows),
        "largest relative difference of widths": tuple(gap(arm, d)[0] for arm, d in rows),
        "points where the job waits": tuple(gap(arm, d)[1] for arm, d in rows),
        "largest relative distance of the index from c/x": tuple(
            float(np.abs(np.array(arm["indices"][d]) - 1.0).max()) for arm, d in rows
        ),
    }
    return Table("whittle-limits", "How far a single job is from the limit", columns)


def index_table(grids: dict[str, Any]) -> Table:
    """What the grids found, by speedup."""
    keys = {
        "steps of the price": "steps",
        "actions that fall": "falling",
        "waits that last": "passive",
        "largest relative rise": "worst_rise",
        "least width of free cores over the peak": "free_share",
        "loss against a grid of widths": "worst_loss",
    }
    columns: dict[str, tuple[Any, ...]] = {"speedup": tuple(grids)}
    columns |= {title: tuple(g[key] for g in grids.values()) for title, key in keys.items()}
    return Table("whittle-indexability", "Indexability on a grid of sizes, prices and discounts", columns)


def states_table(states: list[Any]) -> Table:
    """Differences of allocations by discount."""
    columns: dict[str, tuple[Any, ...]] = {"α": DISCOUNTS}
    for name, crowded in (("N < n", False), ("N ≥ n", True)):
        for title, key in (("largest difference", "largest"), ("share of cores moved", "moved")):
            columns[f"{name}, {title}"] = tuple(by_mode(states, crowded, key))
        columns[f"{name}, states that differ"] = tuple(
            sum(s["changed"][d] > 0 for s in states if s["crowded"] == crowded) for d in range(len(DISCOUNTS))
        )
    return Table("whittle-allocations", f"Allocations on {len(states)} random states", columns)


def differences_table(differences: dict[float, tuple[Estimate, list[Estimate]]]) -> Table:
    """Differences of costs by load and discount."""
    rows = [(load, alpha, wham, d) for load, (wham, ds) in differences.items()
            for alpha, d in zip(LOADS[load], ds, strict=True)]  # fmt: skip
    columns = {
        "load": tuple(load for load, *_ in rows),
        "α": tuple(alpha for _, alpha, *_ in rows),
        "cost of WHAM": tuple(wham.mean for *_, wham, _ in rows),
        "WHAM low": tuple(low(wham) for *_, wham, _ in rows),
        "WHAM high": tuple(high(wham) for *_, wham, _ in rows),
        "difference": tuple(d.mean for *_, d in rows),
        "difference low": tuple(low(d) for *_, d in rows),
        "difference high": tuple(high(d) for *_, d in rows),
    }
    return Table("whittle-costs", f"Costs on {SIMULATED_CORES} cores, paired with WHAM (95 %)", columns)
