"""Figures and tables of e04_fwcam."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.e04_fwcam.cells import (
    BETAS,
    NEAR,
)
from malleable.paper.experiments.e04_fwcam.readings import (
    distances,
    plans,
)
from malleable.paper.experiments.shared.curves import high, low
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.paper.contracts import Values

    Runs = list[tuple[float, int, Any, Any]]
SHOWN = 0.8
"""The β whose classes are drawn."""


def figure(values: Values, runs: Runs) -> Figure:
    """Distances of the widths from their limit, and how few jobs wait."""
    names = values["relaxed"]["names"]
    cores, far = distances(SHOWN, values)
    widths = [Series(name, _floats(cores), tuple(far[:, i]), colour=i) for i, name in enumerate(names)]
    loads = [
        Series(
            f"β = {beta}",
            tuple(float(row["cores"]) for row in plans(beta, values)),
            tuple(row["effective_load"] for row in plans(beta, values)),
            colour=i,
        )
        for i, beta in enumerate(BETAS)
    ]
    return Figure(
        "fwcam",
        "FW-CAM in the limit",
        f"First: how far the width of each class is from its limit (β = {SHOWN}); classes with power-law "
        "speedups coincide. Second: the effective load tends to 1. Third: the mean time that a job waits "
        f"(β = {SHOWN}), exact as a line and simulated with 95 % intervals as points; it goes to "
        "zero although the cores fill up.",
        (
            Panel(Axis("cores n", "log"), Axis("|k/k* − 1|", "log"), tuple(widths)),
            Panel(Axis("cores n", "log"), Axis("effective load", low=0.0, high=1.0), tuple(loads)),
            Panel(
                Axis("cores n", "log", high=20000.0),
                Axis("mean wait", "log"),
                tuple(_waits(values, runs)),
            ),
        ),
    )


def _waits(values: Values, runs: Runs) -> Iterator[Series]:
    for i, name in enumerate(values["relaxed"]["names"]):
        near = [row for row in plans(SHOWN, values) if row["cores"] <= NEAR[-1]]
        exact = tuple(row["pools"][i]["waiting"] or nan for row in near)
        yield Series(f"{name}, exact", tuple(float(row["cores"]) for row in near), exact, colour=i)
        points = [
            (n, _waited(result["classes"][i], row["pools"][i]["service"]))
            for beta, n, row, result in runs
            if beta == SHOWN
        ]
        shown = [wait if wait.low > 0.0 else Estimate() for _, wait in points]
        yield Series.of(f"{name}, simulated", [float(n) for n, _ in points], shown, "points", i)


def _waited(found: Any, service: float) -> Estimate:
    """The mean wait: response time less the known service time."""
    time = read_interval(found["response_time"])
    return Estimate(time.mean - service, time.low - service, time.high - service)


def _floats(numbers: Any) -> tuple[float, ...]:
    return tuple(map(float, numbers))


def widths_table(values: Values) -> Table:
    """The planned widths."""
    rows = [row for beta in BETAS for row in plans(beta, values)]
    columns: dict[str, tuple[Any, ...]] = {
        "beta": tuple(row["beta"] for row in rows),
        "cores": tuple(row["cores"] for row in rows),
        "effective load": tuple(row["effective_load"] for row in rows),
    }
    for i, name in enumerate(values["relaxed"]["names"]):
        columns[f"width of {name}"] = tuple(row["pools"][i]["width"] for row in rows)
    limits = ", ".join(f"{k:.6g}" for k in values["relaxed"]["widths"])
    return Table(
        "fwcam-widths", f"Widths and effective loads; the widths tend to {limits}", columns, shown=False
    )


def queues_table(values: Values) -> Table:
    """Load and waiting of every pool."""
    rows = [
        (beta, row["cores"], pool)
        for beta in BETAS
        for row in plans(beta, values)
        if row["cores"] <= NEAR[-1]
        for pool in row["pools"]
    ]
    keys = ("name", "width", "slots", "utilisation", "service", "waiting", "waiting_probability")
    columns = {"beta": tuple(r[0] for r in rows), "cores": tuple(r[1] for r in rows)}
    columns |= {key.replace("_", " "): tuple(r[2][key] for r in rows) for key in keys}
    return Table("fwcam-queues", "Exact queues by class", columns, shown=False)


def simulated_table(rows: Runs) -> Table:
    """Simulated costs."""
    costs = [read_interval(result["cost"]) for *_, result in rows]
    columns = {
        "beta": tuple(beta for beta, *_ in rows),
        "cores": tuple(n for _, n, *_ in rows),
        "exact cost": tuple(row.get("cost") or nan for _, _, row, _ in rows),
        "simulated cost": tuple(cost.mean for cost in costs),
        "low": tuple(map(low, costs)),
        "high": tuple(map(high, costs)),
        "effective load": tuple(row["effective_load"] for _, _, row, _ in rows),
        "simulated effective load": tuple(result["effective_load"] for *_, result in rows),
        "jobs simulated": tuple(result["jobs"] for *_, result in rows),
    }
    return Table("fwcam-costs", "Exact and simulated costs (95 %)", columns)
