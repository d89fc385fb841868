"""What is computed for e14_map_of_policies: random workloads by classes and cores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.errors import MalleableError
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e14_map_of_policies.workloads import random_workload, traits
from malleable.paper.simulation_cells import ENGINE_VARIABLE, on_gpu
from malleable.simulation.sweep import Swept, sweep
from malleable.theory.meanfield import mean_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.statistics import Estimate

POLICIES = {"wham": ("WHAM", 0), "equi": ("EQUI", 2), "greedy": ("GREEDY", 3)}
"""Names and colours."""
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
SEED = 1400


def cells(effort: Effort) -> list[Cell]:
    """One cell with simulations, and one with predictions, for each number of classes and cores."""
    size: dict[str, Any] = SIZES["full on a GPU" if effort.name == "full" and on_gpu() else effort.name]
    made = []
    for n in size["cores"]:
        for m in size["classes"]:
            if m == max(CLASSES) and n > MANY:
                continue
            some = {"classes": m, "cores": n, "count": size["count"], "policies": list(POLICIES)}
            improved = size["improved"] if n <= IMPROVED_CORES else 0
            run = {**some, "jobs": size["jobs"], "improved": improved}
            weight = 0.3 + 3 * size["count"] * size["jobs"] * (1.0 + n / 100) / 6e6 + improved
            made.append(Cell(f"simulated-{m}-{n}", simulated, run, weight))
            made.append(Cell(f"predicted-{m}-{n}", predicted, some, 0.02 * size["count"]))
    return made


def simulated(
    classes: int, cores: int, count: int, policies: Sequence[str], jobs: int, improved: int
) -> list[dict[str, Any]]:
    """Costs of all policies on each workload, and their differences from the first; on the engine named."""
    engine = os.environ.get(ENGINE_VARIABLE, "cpu")
    workloads = [random_workload(classes, cores, number) for number in range(count)]
    chosen = [k for k, one in enumerate(workloads) if traits(one, cores)["scv"] == 1.0][:improved]
    rows: list[dict[str, Any]] = []
    settings = [(one, float(cores)) for one in workloads]
    for number, found in enumerate(sweep(settings, policies, jobs=jobs, seed=SEED, engine=engine)):
        rows.append({"number": number, **traits(workloads[number], cores), **_row(found)})
    for k in chosen:
        # The same jobs again, as the seed says, and a paired difference from the first policy.
        (found,) = sweep([settings[k]], [policies[0], IMPROVED], jobs=jobs, seed=SEED + k, engine=engine)
        rows[k]["costs"][IMPROVED] = _pair(found.costs[1])
        rows[k]["differences"][IMPROVED] = _pair(found.differences[1])
    return rows


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
