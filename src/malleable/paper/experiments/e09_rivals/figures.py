"""Figures and tables of e09_rivals."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.e09_rivals.cells import (
    SWEEPS,
    TUNED_CORES,
    WHAM,
)
from malleable.paper.experiments.e09_rivals.readings import (
    FALLS,
    POLICIES,
    Rival,
)
from malleable.paper.experiments.shared.curves import high, low, stacked
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values


def figure(known: Any, wham: Rival, rivals: dict[str, Rival]) -> Figure:
    """Costs over the bound, and over WHAM."""
    lowest = known["bound"]
    shown = {WHAM: wham, **rivals}
    costs, margins = [], []
    for policy, rival in shown.items():
        name, colour = POLICIES[policy]
        x = tuple(map(float, rival.cores))
        costs.append(Series.of(name, x, rival.ratios(lowest), "both", colour))
        if policy != WHAM:
            above = [
                Estimate(*(v / lowest for v in (d.mean, d.low, d.high))) if ok and d.low > 0.0 else Estimate()
                for d, ok in zip(rival.differences, rival.stable, strict=True)
            ]
            margins.append(Series.of(name, x, above, "both", colour))
        if policy in known and policy != WHAM:
            ends = (float(wham.cores[0]), float(wham.cores[-1]))
            limit = known[policy] / lowest - 1.0
            margins.append(Series(f"{name}, limit", ends, (limit, limit), style="dotted", colour=colour))
    marks = tuple(
        (float(n), 1.0, f"{POLICIES[p][0]}: unstable")
        for p, rival in rivals.items()
        for n, ok in zip(rival.cores, rival.stable, strict=True)
        if not ok
    )
    return Figure(
        "rivals",
        "Rivals against the lower bound",
        "First: cost over V* at load 0.25 as the number of cores grows, with 95 % intervals; 1 is as good as "
        "any policy can be. Where a policy is unstable it has no cost. Second: what each costs more than "
        "WHAM on the same jobs, over V*; dotted lines are limits from mean-field equations. WHAM comes "
        "down to the bound, FW-CAM slowly so; the others level off above it.",
        (
            Panel(Axis("cores n", "log"), Axis("cost / V*", "log"), tuple(costs), marks=marks),
            Panel(Axis("cores n", "log"), Axis("(cost − cost of WHAM) / V*", "log"), tuple(margins)),
        ),
    )


def table(lowest: float, wham: Rival, rivals: dict[str, Rival]) -> Table:
    """All costs, and all paired differences."""
    parts = []
    for policy, rival in {WHAM: wham, **rivals}.items():
        ratios, count = rival.ratios(lowest), len(rival.cores)
        parts.append(
            {
                "policy": (POLICIES[policy][0],) * count,
                "cores": rival.cores,
                "cost": tuple(e.mean for e in rival.costs),
                "low": tuple(map(low, rival.costs)),
                "high": tuple(map(high, rival.costs)),
                "cost / V*": tuple(e.mean for e in ratios),
                "difference from WHAM": tuple(d.mean for d in rival.differences),
                "difference low": tuple(map(low, rival.differences)),
                "difference high": tuple(map(high, rival.differences)),
                "stable": rival.stable,
                "jobs simulated": tuple(None if r is None else r["jobs"] for r in rival.results),
            }
        )
    return Table("rivals", "Costs over n, all paired with WHAM (95 %)", stacked(parts))


def limits_table(known: Any, rivals: dict[str, Rival]) -> Table:
    """What the costs tend to."""
    lowest = known["bound"]
    powers = {p: rival.growth for p, rival in rivals.items()}
    # What falls as a power of n is no a + b/n + c/n², so that there is nothing to extrapolate.
    margins = {p: Estimate() if powers[p].high < FALLS else r.margin(lowest) for p, r in rivals.items()}
    columns = {
        "policy": tuple(POLICIES[p][0] for p in rivals),
        "mean-field limit / V*": tuple(known[p] / lowest if p in known else nan for p in rivals),
        "extrapolated (cost − WHAM) / V*": tuple(m.mean for m in margins.values()),
        "low": tuple(map(low, margins.values())),
        "high": tuple(map(high, margins.values())),
        "(cost − WHAM) as a power of n": tuple(e.mean for e in powers.values()),
        "power low": tuple(map(low, powers.values())),
        "power high": tuple(map(high, powers.values())),
    }
    return Table("rivals-limits", "Limits for many cores (99.9 %), and powers of n (95 %)", columns)


def _sweeps(values: Values) -> list[tuple[str, str, Any, Estimate, Estimate]]:
    """Rival, setting, result, cost, difference from WHAM."""
    return [
        (policy, variant, found["results"][variant], read_interval(found["results"][variant]["cost"]),
         read_interval(found["differences"][variant]))
        for policy, variants in SWEEPS.items()
        if (found := values.get(f"sweep-{policy}")) is not None
        for variant in variants
    ]  # fmt: skip


def sweep_table(values: Values, lowest: float) -> tuple[Table, ...]:
    """All settings of the rivals' parameters."""
    rows = _sweeps(values)
    if not rows:
        return ()
    columns = {
        "policy": tuple(POLICIES[policy][0] for policy, *_ in rows),
        "setting": tuple(variant for _, variant, *_ in rows),
        "cost": tuple(cost.mean for *_, cost, _ in rows),
        "low": tuple(low(cost) for *_, cost, _ in rows),
        "high": tuple(high(cost) for *_, cost, _ in rows),
        "cost / V*": tuple(cost.mean / lowest for *_, cost, _ in rows),
        "difference from WHAM": tuple(d.mean for *_, d in rows),
        "difference low": tuple(low(d) for *_, d in rows),
        "difference high": tuple(high(d) for *_, d in rows),
        "stable": tuple(result["stable"] for _, _, result, _, _ in rows),
    }
    return (Table("rivals-settings", f"Settings of the rivals on {TUNED_CORES} cores (95 %)", columns),)


def sweep_figure(values: Values, lowest: float) -> tuple[Figure, ...]:
    """Costs over the parameters of KNEE and LPF, if they were swept."""
    panels = []
    for policy, title in (("knee", "α of KNEE"), ("lpf", "efficiency of LPF")):
        rows = [row for row in _sweeps(values) if row[0] == policy]
        if not rows:
            return ()
        x = tuple(float(variant.partition("=")[2]) for _, variant, *_ in rows)
        ratios = [
            Estimate(*(v / lowest for v in (c.mean, c.low, c.high))) if r["stable"] else Estimate()
            for _, _, r, c, _ in rows
        ]
        ours = values[f"sweep-{policy}"]["results"][WHAM]["cost"]["mean"] / lowest
        series = (
            Series.of(POLICIES[policy][0], x, ratios, "both", POLICIES[policy][1]),
            Series("WHAM", (x[0], x[-1]), (ours, ours), style="dashed", colour=0),
        )
        panels.append(Panel(Axis(title, "log" if policy == "knee" else "linear"), Axis("cost / V*"), series))
    return (
        Figure(
            "rivals-settings",
            "Settings of KNEE and LPF",
            f"Cost over V* on {TUNED_CORES} cores for other values of the parameter, with 95 % intervals; no "
            "value does as well as WHAM.",
            tuple(panels),
        ),
    )
