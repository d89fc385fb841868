"""What is computed for e16_finite_n_bound, and on which settings."""

from __future__ import annotations

from typing import Any

from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e15_few_cores.held_out import setting
from malleable.paper.experiments.shared.known_jobs import STREAM, known_jobs
from malleable.paper.experiments.shared.workloads import key_of
from malleable.paper.simulation_cells import compared

BY_COUNTS = ("wham", "equi", "greedy")
"""Policies that are simulated for as long as it takes."""
FITTED, POOLS = "wham-fitted", "fw-cam-repaired"
"""One that sees every job, and is slower; one that may have no plan."""
LOAD, CORES_OF_LOADS = 0.25, 16
CORES = {"quick": (16, 64), "normal": (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)}
LOADS = {"quick": (0.7,), "normal": (0.05, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9)}
SEEDS = {"quick": 1, "normal": 12, "full": 60}
"""Random workloads."""
FIRST_SEED = 160_000
"""Of the random workloads; those of e15_few_cores have other seeds."""
SEED = 16
FITTED_JOBS = 400_000


def cells(effort: Effort) -> list[Cell]:
    """The bound and the policies' costs by setting: over n, over the load, and on random workloads."""
    made = []
    for key, where in settings_of(effort).items():
        stream = STREAM[effort.name]
        known = {**where, "jobs": stream, "seed": SEED}
        made.append(Cell(f"known-{key}", known_jobs, known, 4e-5 * stream))
        run = {**where, "seed": SEED}
        length = {"jobs": effort.jobs, "precision": effort.precision, "most_jobs": effort.most_jobs}
        made.append(Cell(f"counts-{key}", compared, {"policies": list(BY_COUNTS), **run, **length}, 1.5))
        made.append(Cell(f"pools-{key}", compared, {"policies": [POOLS], **run, "jobs": effort.jobs}, 0.5))
        if int(where["cores"]) <= 256:
            jobs = min(effort.jobs // 4, FITTED_JOBS)
            made.append(Cell(f"fitted-{key}", compared, {"policies": [FITTED], **run, "jobs": jobs}, 4.0))
    return made


def settings_of(effort: Effort) -> dict[str, dict[str, Any]]:
    """Where policies are compared with the bound, by the name of the setting."""
    return {
        **{key_of("paper", "paper", n, LOAD): {"cores": n, "load": LOAD} for n in cores_of(effort)},
        **{
            key_of("paper", "paper", CORES_OF_LOADS, load): {"cores": CORES_OF_LOADS, "load": load}
            for load in loads_of(effort)
        },
        **{f"random-{seed}": random_setting(seed) for seed in seeds_of(effort)},
    }


def random_setting(seed: int) -> dict[str, Any]:
    """Two to six classes of any sort on 3 to 64 cores at a load from 0.3 to 0.95."""
    found = setting(seed)
    return {"workload": found.workload, "cores": found.cores, "load": found.load}


def cores_of(effort: Effort) -> tuple[int, ...]:
    """Numbers of cores for the paper's workload."""
    return CORES.get(effort.name, CORES["normal"])


def loads_of(effort: Effort) -> tuple[float, ...]:
    """Loads for the paper's workload."""
    return LOADS.get(effort.name, LOADS["normal"])


def seeds_of(effort: Effort) -> range:
    """Seeds of the random workloads."""
    return range(FIRST_SEED, FIRST_SEED + SEEDS[effort.name])
