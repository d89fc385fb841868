"""Figures and tables of e10b_discounted."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Table, failed
from malleable.paper.experiments.e10b_discounted.cells import (
    MAP_CORES,
    RULE,
    exact_settings,
    fixed_policies,
    grid_of,
    key_of,
    map_loads,
    whittles_of,
)
from malleable.paper.experiments.e10b_discounted.readings import named_gain
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.paper.contracts import Values
    from malleable.paper.experiments.shared.paired_gains import Gain


def alpha_figure(effort: Effort, values: Values) -> Figure:
    """Gains by α, of Whittle's policy and of the rule."""
    y = Axis("cost relative to WHAM, %", low=-8.0, high=8.0)
    panels = []
    for kind, policies in (("whittle", whittles_of(effort)), (RULE, fixed_policies(effort))):
        alphas = [float(policy.partition("=")[2]) for policy in policies]
        series = []
        for colour, (load, rate) in enumerate(zip(map_loads(effort), values["rates"], strict=True)):
            found = [
                named_gain("map", "four", MAP_CORES, load, policy, values).percent for policy in policies
            ]
            series.append(Series.of(f"ρ = {load:g}", alphas, found, "both", colour))
            if kind == RULE:
                mean = named_gain("map", "four", MAP_CORES, load, RULE, values).percent.mean
                series.append(
                    Series(f"the rule, ρ = {load:g}", (rate,), (mean,), style="points", colour=colour)
                )
        title = "whittle" if kind == "whittle" else f"{RULE} at a fixed α"
        panels.append(Panel(Axis("α", "log"), y, tuple(series), title=title))
    return Figure(
        "discounted-alpha",
        f"Gain over the discount, four classes, n = {MAP_CORES}",
        "Cost relative to WHAM's on the same jobs; below 0 is cheaper (95 %). First: Whittle's policy, which "
        "expects cores to be free after the discount. Second: only the premium over the long-run price is "
        "discounted, at a fixed α. Single points are the rule, drawn at its α while no job waits; in a queue "
        "it is lower. What lies above the frame is cut off.",
        tuple(panels),
    )


def grid_figure(effort: Effort, named: dict[tuple[str, int, float], Gain]) -> Figure:
    """Gains by cores and load."""
    cores, loads = grid_of(effort)
    z = tuple(tuple(named["four", n, load].percent.mean for n in cores) for load in loads)
    grid = Grid(tuple(map(float, cores)), loads, z, "cost relative to WHAM, %", middle=0.0)
    return Figure(
        "discounted-grid",
        "Gain of the rule, four classes",
        "Cost of wham-discounted relative to WHAM's on the same jobs, over n and ρ.",
        (Panel(Axis("cores n", "log"), Axis("load ρ"), grid=grid),),
    )


def optimum_table(effort: Effort, gains: Sequence[Gain], values: Values) -> Table:
    """Costs beside the exact optimum of policies that do not know sizes."""
    columns: dict[str, list[Any]] = {
        "setting": [one.name for one in gains],
        "best blind to sizes (exact)": [],
    }
    for n, load in exact_settings(effort):
        best = values[key_of("optimum", "two", n, load)]
        columns["best blind to sizes (exact)"].append(nan if failed(best) else best["cost"])
    for policy in ("wham", RULE):
        costs = []
        for n, load in exact_settings(effort):
            value = values[key_of("at", "two", n, load)]
            costs.append(nan if failed(value) else value["results"][policy]["cost"]["mean"])
        columns[policy] = costs
        best = columns["best blind to sizes (exact)"]
        columns[f"{policy} above it"] = [c / b - 1.0 for c, b in zip(costs, best, strict=True)]
    return Table(
        "discounted-optimum",
        "Beside the best policy that does not know sizes (simulated)",
        {key: tuple(column) for key, column in columns.items()},
    )
