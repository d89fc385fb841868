"""Figures and tables of e05_heavy_load."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Table
from malleable.paper.experiments.e05_heavy_load.cells import (
    CORES,
    POLICIES,
    WIDTHS,
    over_cores,
    over_load,
    points_of,
)
from malleable.paper.experiments.e05_heavy_load.readings import (
    SHOWN,
    limits_of,
    shares_of,
)
from malleable.paper.experiments.shared.curves import high, low
from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate


def figure(effort: Effort, values: Values) -> Figure:
    """Shares of jobs on more than k₀ cores, and the bounds on them."""
    limits, over = limits_of(values), over_load(effort)
    x = [1.0 - load for _, load in over]
    panels = [
        Panel(Axis("1 − ρ", "log"), Axis(f"share of work beyond k0, n = {CORES}", "log"),
              tuple(s for i, k in enumerate(WIDTHS) for s in (
                  Series.of(f"WHAM, k0 = {k:g}", x,
                            _positive([shares_of("wham", *p, values)[i] for p in over]), "both", i),
                  _bound(f"bound, k0 = {k:g}", x, [limits[load, k]["paper"] for _, load in over], i))))
    ]  # fmt: skip
    for title, points in (("1 − ρ", over), ("1 − ρ = 1/√n", over_cores(effort))):
        x = [1.0 - load for _, load in points]
        shown = [
            Series.of(
                name, x, _positive([shares_of(policy, *p, values)[SHOWN] for p in points]), "both", colour
            )
            for policy, (name, colour) in POLICIES.items()
        ]
        shown += [
            _bound(f"{kind} bound", x, [limits[load, WIDTHS[SHOWN]][key] for _, load in points], 6 + i)
            for i, (kind, key) in enumerate((("paper's", "paper"), ("sharper", "sharp")))
        ]
        y = Axis(f"share of work beyond {WIDTHS[SHOWN]:g} cores", "log")
        panels.append(Panel(Axis(title, "log"), y, tuple(shown)))
    return Figure(
        "heavy-load",
        "Parallel work near full load",
        "Share of the work that is done on more than k0 cores, over the share 1 − ρ of the cores that is to "
        "spare; full load is on the left. First: WHAM on 64 cores for several k0, with the bound of the "
        "paper's proof. Second: all policies on 64 cores. Third: all policies with n growing and "
        "ρ = 1 − 1/√n. Intervals are 95 %.",
        tuple(panels),
    )


def _positive(shares: list[Estimate]) -> list[Estimate]:
    """A logarithmic axis has no place for zero."""
    return [share if share.low > 0.0 else type(share)() for share in shares]


def _bound(name: str, x: list[float], y: list[float], colour: int) -> Series:
    return Series(name, tuple(x), tuple(v if v < 1.0 else nan for v in y), style="dashed", colour=colour)


def table(effort: Effort, values: Values) -> Table:
    """All shares beside their bounds."""
    limits = limits_of(values)
    rows = [
        (POLICIES[policy][0], n, load, k, share.mean, low(share), high(share),
         limits[load, k]["paper"], limits[load, k]["sharp"], values[f"{policy}-{n}-{load:.6f}"]["jobs"])
        for policy in POLICIES
        for n, load in points_of(effort)
        for k, share in zip(WIDTHS, shares_of(policy, n, load, values), strict=True)
    ]  # fmt: skip
    names = (
        "policy",
        "cores",
        "load",
        "k0",
        "share of work",
        "low",
        "high",
        "paper's bound",
        "sharper bound",
    )
    columns = dict(zip((*names, "jobs simulated"), zip(*rows, strict=True), strict=True))
    return Table("heavy-load", "Work done on more than k0 cores (95 %)", columns, shown=False)
