"""Figures and tables of e13_tails."""

from __future__ import annotations

from math import nan
from typing import Any

from malleable.paper.contracts import Table, failed
from malleable.paper.experiments.e13_tails.cells import (
    CORES,
    POLICIES,
)
from malleable.paper.experiments.e13_tails.readings import (
    CLASSES,
    LEVELS,
    is_stable,
)
from malleable.paper.experiments.shared.curves import high, low
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate


def _status(found: Any) -> str:
    return "infeasible" if failed(found) else "stable" if found["result"]["stable"] else "unstable"


def _entry(found: Any, key: str, job_class: str, level: int) -> Estimate:
    """One percentile; none where the policy has no plan or no steady state."""
    return read_interval(found[key][job_class][level]) if is_stable(found) else Estimate()


def figure(key: str, load: float, found: dict[str, Any]) -> Figure:
    """Percentiles per class under all stable policies."""
    steady = {p: v for p, v in found.items() if is_stable(v)}
    names = tuple(POLICIES[p] for p in steady)
    others = ", ".join(POLICIES[p] for p in found if p not in steady)
    x = tuple(map(float, range(len(names))))
    word = "response time" if key == "response" else "slowdown"
    panels = tuple(
        Panel(
            Axis("", categories=names),
            Axis(word, "log"),
            tuple(
                Series.of(level, x, [_entry(v, key, c, i) for v in steady.values()], "points", (2, 4, 1)[i])
                for i, level in enumerate(LEVELS)
            ),
            title=c,
        )
        for c in CLASSES
    )
    return Figure(
        f"tails-{key}-{round(100 * load)}",
        f"Tails of the {word} at load {load}",
        f"Median, 95th and 99th percentile of the {word} of each class on {CORES} cores, by policy, with "
        "95 % intervals. Lower is better; points far apart mean that jobs of a class fare unequally."
        + (f" Without a plan or a steady state: {others}." if others else ""),
        panels,
    )


def costs_table(found: dict[float, dict[str, Any]]) -> Table:
    """Costs, and whether there are any."""
    rows = [(load, p, v) for load, values in found.items() for p, v in values.items()]
    costs = [Estimate() if failed(v) else read_interval(v["result"]["cost"]) for *_, v in rows]
    apart = [
        read_interval(v["difference"]) if not failed(v) and "difference" in v else Estimate()
        for *_, v in rows
    ]
    columns = {
        "load": tuple(load for load, *_ in rows),
        "policy": tuple(POLICIES[p] for _, p, _ in rows),
        "status": tuple(_status(v) for *_, v in rows),
        "cost": tuple(c.mean for c in costs),
        "low": tuple(map(low, costs)),
        "high": tuple(map(high, costs)),
        "difference from WHAM": tuple(d.mean for d in apart),
        "difference low": tuple(map(low, apart)),
        "difference high": tuple(map(high, apart)),
        "jobs simulated": tuple(None if failed(v) else v["result"]["jobs"] for *_, v in rows),
    }
    return Table("tails-costs", f"Mean costs on {CORES} cores, paired with WHAM (95 %)", columns)


def tails_table(found: dict[float, dict[str, Any]]) -> Table:
    """All percentiles per class."""
    rows = [(load, p, c, v) for load, values in found.items() for p, v in values.items() for c in CLASSES]
    columns: dict[str, tuple[Any, ...]] = {
        "load": tuple(load for load, *_ in rows),
        "policy": tuple(POLICIES[p] for _, p, *_ in rows),
        "class": tuple(c for *_, c, _ in rows),
        "mean response": tuple(_mean(v, c) for *_, c, v in rows),
    }
    for key, word in (("response", "response"), ("slowdown", "slowdown")):
        for i, level in enumerate(LEVELS):
            entries = [_entry(v, key, c, i) for *_, c, v in rows]
            columns[f"{word}, {level}"] = tuple(e.mean for e in entries)
            columns[f"{word}, {level} low"] = tuple(map(low, entries))
            columns[f"{word}, {level} high"] = tuple(map(high, entries))
    return Table("tails", f"Percentiles on {CORES} cores (95 %)", columns)


def _mean(found: Any, job_class: str) -> float:
    if not is_stable(found):
        return nan
    mine = next(c for c in found["result"]["classes"] if c["name"] == job_class)
    return float(mine["response_time"]["mean"])
