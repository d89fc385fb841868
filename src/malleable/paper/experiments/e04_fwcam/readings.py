"""What figures and verdicts of e04_fwcam both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Effort, failed
from malleable.paper.experiments.e04_fwcam.cells import (
    BETAS,
    simulated_settings,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.paper.contracts import Values

    Runs = list[tuple[float, int, Any, Any]]


def plans(beta: float, values: Values) -> list[dict[str, Any]]:
    """The plans with this β that are stable."""
    return [row for row in values[f"plans-{beta}"] if row["status"] == "stable"]


def distances(beta: float, values: Values) -> tuple[list[int], np.ndarray[Any, Any]]:
    """Cores, and how far each width is from its limit, relative to it (plans, classes)."""
    rows, limits = plans(beta, values), np.array(values["relaxed"]["widths"])
    widths = np.array([[pool["width"] for pool in row["pools"]] for row in rows])
    return [row["cores"] for row in rows], np.abs(widths / limits - 1.0)


def comparisons(effort: Effort, values: Values) -> Iterator[tuple[float, int, Any, Any]]:
    """β, n, the plan and the simulation, where there is one."""
    rows = {(beta, row["cores"]): row for beta in BETAS for row in plans(beta, values)}
    for beta, n in simulated_settings(effort):
        value = values[f"fw-cam-{beta}-{n}"]
        if not failed(value) and (beta, n) in rows:
            yield beta, n, rows[beta, n], value["results"][f"fw-cam:beta={beta}"]


def cases_of(runs: Runs) -> Iterator[ev.Case]:
    """Planned and simulated costs, pair by pair."""
    for beta, n, row, result in runs:
        if row.get("cost") is not None:
            name = f"β = {beta} on {n} cores"
            yield ev.Case(name, read_interval(result["cost"]), result, row["cost"])


def class_cases(runs: Runs) -> Iterator[ev.Case]:
    """Planned and simulated waiting per class, pair by pair."""
    for beta, n, row, result in runs:
        for pool, found in zip(row["pools"], result["classes"], strict=True):
            if pool["waiting"] is not None:
                name = f"{pool['name']}, β = {beta} on {n} cores"
                exact = pool["service"] + pool["waiting"]
                yield ev.Case(name, read_interval(found["response_time"]), result, exact)
