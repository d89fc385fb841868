"""What is computed for e02_converge, and on which settings."""

from __future__ import annotations

from typing import Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.shared.fw_cam_pools import all_planned, best_planned
from malleable.paper.experiments.shared.known_jobs import known_cells
from malleable.paper.simulation_cells import compared, narrow_arguments
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

BETAS = {0.76: 5, 0.8: 1, 0.9: 7}
"""The β that are simulated, with their colours."""
CORES = tuple(2**i for i in range(3, 15))

LOAD = 0.25
SEED = 2
QUICK_CORES, QUICK_FIXED = (16, 64, 256, 512, 1024, 2048), (16, 64, 512)
"""Numbers of cores in a quick look, and those at which FW-CAM is simulated."""
BETWEEN = (10, 11, 13, 19, 23, 27, 38, 43, 45, 54, 76, 91, 108, 152, 181, 215, 304, 362, 431, 609, 724, 861)
"""More numbers of cores for exact costs, to show how rounding to whole slots moves them."""
FAR = (2**20, 2**30, 2**40, 2**50)
"""Numbers of cores at which only the widths are worked out."""
MOST_SLOTS = {"quick": 100, "normal": 100, "full": 200}
"""Slots of a class up to which M/PH/c is solved, by effort."""


def cells(effort: Effort) -> list[Cell]:
    """Simulations by policy and n; exact costs of FW-CAM by β; the bounds and WHAM's mean field."""
    cores = cores_of(effort)
    asked = sorted({*cores, *FAR, *(() if effort.quick else BETWEEN)})
    exact = {"load": LOAD, "most_slots": MOST_SLOTS[effort.name]}
    made = [Cell("theory", theory, {"cores": list(cores)}, 0.3)]
    made += [Cell(f"exact-{b}", all_planned, {"cores": asked, "beta": b, **exact}, 1.0) for b in BETAS]
    made += known_cells(cores, LOAD, effort, SEED)
    for n in cores:
        weight = 1.2 * effort.jobs * (1.0 + n / 8000) / 4e6
        run = {"cores": n, "load": LOAD, "seed": SEED, **narrow_arguments(effort, n)}
        made.append(Cell(f"wham-{n}", compared, {"policies": ["wham"], **run}, weight))
        fixed = run if effort.name == "full" else {**run, "precision": None}
        if n in QUICK_FIXED or not effort.quick:
            made += [
                Cell(f"fw-cam-{b}-{n}", compared, {"policies": [f"fw-cam:beta={b}"], **fixed}, weight)
                for b in BETAS
            ]
        if n >= 64 or not effort.quick:
            made.append(Cell(f"best-{n}", best_planned, {"cores": n, **exact}, 0.5))
    return made


def cores_of(effort: Effort) -> tuple[int, ...]:
    """The numbers of cores that WHAM is simulated on."""
    return QUICK_CORES if effort.quick else CORES


def theory(cores: list[int]) -> dict[str, Any]:
    """The bound, its tighter form on few cores, and the mean field's prediction for WHAM."""
    bounds = [bound(paper_workload(n, LOAD), n) for n in cores]
    point = mean_field(bounds[-1].workload, bounds[-1].cores, Policy.of("wham"), starts=0)
    return {
        "bound": bounds[-1].bound,
        "capped": [b.bound_capped for b in bounds],
        "wham_coefficient": point.refined.coefficient,
    }
