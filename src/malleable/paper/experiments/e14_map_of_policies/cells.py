"""What is computed for e14_map_of_policies: random workloads by classes and cores."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.errors import MalleableError
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e14_map_of_policies.workloads import random_workload, traits
from malleable.paper.simulation_cells import ENGINE_VARIABLE, PAPERS, on_gpu
from malleable.simulation import sweep
from malleable.theory.meanfield import mean_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.simulation import Swept
    from malleable.statistics import Estimate

IMPROVED = "wham-improved"
CORES = (4, 8, 16, 32, 64, 128, 256)
CLASSES = (2, 3, 4)
MANY = 64
"""Beyond so many cores there are no workloads of four classes: states are too many for a table."""
IMPROVED_CORES = 64
"""Up to so many cores some workloads are given to the improved WHAM, too: its plan takes a second each."""
SIZES = {
    "quick": {"cores": (4, 16), "classes": (2, 3), "count": 3, "jobs": 20_000, "improved": 0},
    "normal": {"cores": (4, 16, 64), "classes": CLASSES, "count": 5, "jobs": 100_000, "improved": 0},
    "full": {"cores": CORES, "classes": CLASSES, "count": 53, "jobs": 1_000_000, "improved": 2},
    "full on a GPU": {"cores": CORES, "classes": CLASSES, "count": 527, "jobs": 1 << 22, "improved": 25},
}  # fmt: skip
"""Cores, classes, workloads of each pair of them, jobs per policy, workloads for the improved WHAM."""
SEED, IMPROVED_SEED = 1400, 140_000
MOST_LOOKED_AT = 1000
"""Among so many workloads those for the improved WHAM are looked for."""


def cells(effort: Effort) -> list[Cell]:
    """One cell with simulations, and one with predictions, for each number of classes and cores."""
    size: dict[str, Any] = SIZES["full on a GPU" if effort.name == "full" and on_gpu() else effort.name]
    made = []
    for n in size["cores"]:
        for m in size["classes"]:
            if m == max(CLASSES) and n > MANY:
                continue
            some = {"classes": m, "cores": n, "count": size["count"], "policies": list(PAPERS)}
            weight = 3 * size["count"] * size["jobs"] * (1.0 + m * n / 300) / 6e6
            made.append(Cell(f"simulated-{m}-{n}", simulated, {**some, "jobs": size["jobs"]}, weight))
            made.append(Cell(f"predicted-{m}-{n}", predicted, some, 0.05 * size["count"]))
            if size["improved"] and n <= IMPROVED_CORES:
                run = {"classes": m, "cores": n, "count": size["improved"], "jobs": size["jobs"]}
                made.append(Cell(f"improved-{m}-{n}", improved, run, 2.0 * size["improved"]))
    return made


def simulated(
    classes: int, cores: int, count: int, policies: Sequence[str], jobs: int
) -> list[dict[str, Any]]:
    """Costs of all policies on each workload, and their differences from the first; on the engine named."""
    workloads = [random_workload(classes, cores, number) for number in range(count)]
    found = sweep(
        [(one, float(cores)) for one in workloads], policies, jobs=jobs, seed=SEED, engine=_engine()
    )
    return [
        {"number": k, **traits(workload, cores), **_row(one)}
        for k, (workload, one) in enumerate(zip(workloads, found, strict=True))
    ]


def improved(classes: int, cores: int, count: int, jobs: int) -> list[dict[str, Any]]:
    """The improved WHAM beside WHAM on the first workloads with exponential sizes, for which it has a plan.

    Other sizes take a trial on single jobs, which costs some seconds each.
    """
    numbers = (k for k in range(MOST_LOOKED_AT) if _scv(classes, cores, k) == 1.0)
    chosen = {k: random_workload(classes, cores, k) for k in islice(numbers, count)}
    settings = [(one, float(cores)) for one in chosen.values()]
    found = sweep(settings, ["wham", IMPROVED], jobs=jobs, seed=IMPROVED_SEED, engine=_engine())
    rows = zip(chosen.items(), found, strict=True)
    return [{"number": k, **traits(workload, cores), **_row(one)} for (k, workload), one in rows]


def _engine() -> str:
    return os.environ.get(ENGINE_VARIABLE, "cpu")


def _scv(classes: int, cores: int, number: int) -> float:
    return float(traits(random_workload(classes, cores, number), cores)["scv"])


def _row(found: Swept) -> dict[str, Any]:
    return {
        "costs": {p: _pair(cost) for p, cost in zip(found.policies, found.costs, strict=True)},
        "differences": {p: _pair(d) for p, d in zip(found.policies, found.differences, strict=True)},
        "jobs": found.jobs,
        "device": found.device,
    }


def _pair(found: Estimate) -> list[float]:
    """Mean and half-width."""
    return [found.mean, found.half_width]


def predicted(classes: int, cores: int, count: int, policies: Sequence[str]) -> list[dict[str, Any]]:
    """The refined mean field of all policies on each workload, and whether it says that it applies."""
    rows = []
    for number in range(count):
        workload = random_workload(classes, cores, number)
        rows.append({policy: _predicted(workload, cores, policy) for policy in policies})
    return rows


def _predicted(workload: Any, cores: int, policy: str) -> dict[str, Any]:
    try:
        field = mean_field(workload, float(cores), Policy.of(policy), starts=0)
    except MalleableError as error:
        return {"limit": None, "refined": None, "applies": False, "reason": error.problem}
    refined = field.refined
    return {
        "limit": field.cost, "refined": refined.cost, "applies": refined.applies, "reason": refined.reason
    }  # fmt: skip
