"""Figures and tables of e12_robustness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.e12_robustness.cells import (
    ARRIVAL_CORES,
    CORES,
    FACTORS,
    POLICIES,
    misled_key,
)
from malleable.paper.experiments.e12_robustness.readings import Small, cost_of, scvs, share_of
from malleable.paper.experiments.shared.curves import high, low
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.paper.contracts import Values
RIVALS = ("equi", "greedy")


def of_kind(kind: str, small: Iterable[Small]) -> list[Small]:
    """Those rows that are about one kind of trouble."""
    return [row for row in small if row[0] == kind]


def loads_figure(loads: Sequence[float], values: Values) -> Figure:
    """The gap to the bound, and the rivals over WHAM, over the load."""
    found = [values[f"load-{load}"] for load in loads]
    gaps, apart = [], []
    for policy, (name, colour) in POLICIES.items():
        above = []
        for one in found:
            lowest, cost = one["results"][policy]["bound"], cost_of(one, policy)
            gap = Estimate(*(v / lowest - 1.0 for v in (cost.mean, cost.low, cost.high)))
            above.append(gap if gap.low > 0.0 else Estimate())
        gaps.append(Series.of(name, loads, above, "both", colour))
        if policy in RIVALS:
            apart.append(Series.of(name, loads, [share_of(one, policy) for one in found], "both", colour))
    zero = Series("WHAM", (loads[0], loads[-1]), (0.0, 0.0), style="dashed", colour=0)
    return Figure(
        "robustness-loads",
        "From nearly idle to nearly full",
        f"First: the share by which the cost exceeds V* on {CORES} cores over the load. Second: what the "
        "rivals cost more than WHAM on the same jobs. 95 % intervals.",
        (
            Panel(Axis("load"), Axis("cost / V* − 1", "log"), tuple(gaps)),
            Panel(Axis("load"), Axis("cost / cost of WHAM − 1"), (*apart, zero)),
        ),
    )


def settings_figure(pairs: list[tuple[str, Any]]) -> Figure:
    """The rivals over WHAM for other arrivals and sizes."""
    names = tuple(name for name, _ in pairs)
    x = tuple(map(float, range(len(names))))
    series = tuple(
        Series.of(POLICIES[p][0], x, [share_of(found, p) for _, found in pairs], "points", POLICIES[p][1])
        for p in RIVALS
    )
    panel = Panel(Axis("", categories=names), Axis("cost / cost of WHAM − 1", low=0.0), series)
    return Figure(
        "robustness-settings",
        "Other arrivals, other sizes",
        "What the rivals cost more than WHAM on the same jobs at load 0.25, with 95 % intervals: arrivals "
        "from regular (SCV 0) to bursty (SCV 4), then heavy-tailed sizes.",
        (panel,),
    )


def small_figure(small: list[Small]) -> Figure:
    """WHAM in trouble over WHAM without, one panel per kind."""
    panels = []
    titles = {"wrong": "wrong speedups", "whole": "whole cores", "unknown": "unknown sizes"}
    for i, (kind, title) in enumerate(titles.items()):
        rows = of_kind(kind, small)
        x = tuple(map(float, range(len(rows))))
        series = (Series.of(title, x, [d for *_, d in rows], "points", i),)
        names = tuple(name for _, name, _, _ in rows)
        panels.append(Panel(Axis("", categories=names), Axis("cost / cost of WHAM − 1"), series, title=title))
    return Figure(
        "robustness-misled",
        "What WHAM loses when it is told wrong things",
        "Cost over that of undisturbed WHAM, less 1, on the same jobs, with 95 % intervals. First: "
        f"parameters of the speedups believed 20 % too large (↑) or too small (↓), on {CORES} cores at load "
        "0.25. Second: whole cores only. Third: no job sizes.",
        tuple(panels),
    )


def pairs_table(pairs: list[tuple[str, Any]]) -> Table:
    """All settings in which WHAM meets its rivals."""
    rows = [(name, found, policy) for name, found in pairs for policy in POLICIES]
    results = [found["results"][policy] for _, found, policy in rows]
    costs = [cost_of(found, policy) for _, found, policy in rows]
    apart = [share_of(found, policy) if policy in RIVALS else Estimate() for _, found, policy in rows]
    columns = {
        "setting": tuple(name for name, *_ in rows),
        "policy": tuple(POLICIES[policy][0] for *_, policy in rows),
        "cost": tuple(c.mean for c in costs),
        "low": tuple(map(low, costs)),
        "high": tuple(map(high, costs)),
        "V*": tuple(r["bound"] for r in results),
        "cost / V* − 1": tuple(r["cost"]["mean"] / r["bound"] - 1.0 for r in results),
        "over WHAM": tuple(d.mean for d in apart),
        "over WHAM low": tuple(map(low, apart)),
        "over WHAM high": tuple(map(high, apart)),
        "time with N > n": tuple(r["overload"] for r in results),
        "stable": tuple(r["stable"] for r in results),
        "jobs simulated": tuple(r["jobs"] for r in results),
    }
    return Table("robustness", "Settings, all paired with WHAM (95 %)", columns)


def arrivals_table(values: Values) -> Table:
    """Simulated and predicted costs over the variability of arrivals."""
    rows = [(scv, policy) for scv in scvs(values) for policy in POLICIES]
    costs = [cost_of(values[f"arrivals-{scv}"], policy) for scv, policy in rows]
    told = [values[f"predicted-{scv}"][policy] for scv, policy in rows]
    columns = {
        "SCV": tuple(scv for scv, _ in rows),
        "policy": tuple(POLICIES[policy][0] for _, policy in rows),
        "simulated": tuple(c.mean for c in costs),
        "low": tuple(map(low, costs)),
        "high": tuple(map(high, costs)),
        "refined mean field": tuple(p["cost"] for p in told),
        "limit": tuple(p["limit"] for p in told),
    }
    return Table(
        "robustness-arrivals", f"Arrivals on {ARRIVAL_CORES} cores, simulated and predicted", columns
    )


def small_table(small: list[Small]) -> Table:
    """All settings in which WHAM meets itself."""
    columns = {
        "trouble": tuple({"wrong": "wrong speedups", "whole": "whole cores", "unknown": "unknown sizes"}[k]
                         for k, *_ in small),
        "setting": tuple(name for _, name, *_ in small),
        "cost of WHAM": tuple(found["results"]["wham"]["cost"]["mean"] for *_, found, _ in small),
        "cost / cost of WHAM − 1": tuple(d.mean for *_, d in small),
        "low": tuple(low(d) for *_, d in small),
        "high": tuple(high(d) for *_, d in small),
    }  # fmt: skip
    return Table("robustness-misled", "WHAM against itself (95 %)", columns)


def misled_table(values: Values) -> Table:
    """Limits for all combinations of wrong parameters."""
    known = values["limits"]
    columns = {
        "factor on p₁": tuple(f[0] for f in FACTORS),
        "factor on p₂": tuple(f[1] for f in FACTORS),
        "factor on q₃": tuple(f[2] for f in FACTORS),
        "limit / V* − 1": tuple(known[misled_key(f)] / known["bound"] - 1.0 for f in FACTORS),
    }
    return Table("robustness-limits", "Wrong speedups in the limit of many cores", columns, shown=False)
