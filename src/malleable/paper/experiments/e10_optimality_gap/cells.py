"""What is computed for e10_optimality_gap, and on which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable import catalog
from malleable.contracts import Policy
from malleable.model import Workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.shared.exact_gaps import gaps
from malleable.paper.experiments.shared.workloads import exponential, key_of, short_and_long
from malleable.paper.simulation_cells import compared
from malleable.theory.class_speeds import class_speeds
from malleable.theory.optimal_policy import optimum

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "two": ("classes 1 and 2 of the paper", exponential("class-1", "class-2")),
    "three": ("the paper's three classes", exponential()),
    "sizes": ("short and long jobs", short_and_long()),
}
"""Names and documents; all sizes are exponential."""
DRAWN = {0.25: 0, 0.55: 1, 0.7: 2, 0.9: 3}
"""Loads that are drawn as curves over n, with their colours."""
FEW = (2, 4, 8, 16)
LOADS = (0.25, 0.4, 0.55, 0.7, 0.8, 0.9)
MANY = {0.25: (64, 256, 1024, 4096), 0.4: (64, 256), 0.55: (64, 256), 0.7: (64,), 0.8: (64,), 0.9: (64,)}
"""More cores; at low load few jobs are present, so the chain stays small."""
MAP = ("sizes", 8, 0.55, 10)
"""Workload, cores, load and most jobs of a class of the map of decisions."""
SIMULATED = (("sizes", 8, 0.55), ("sizes", 8, 0.9), ("two", 4, 0.9))
SEED = 10


def cells(effort: Effort) -> list[Cell]:
    """Exact costs by workload, n and load; one map of decisions; simulations of the real policies."""
    made = [_gap_cell(*setting, effort) for setting in settings_of(effort)]
    name, n, load, most = MAP
    made.append(Cell("map", choices, {**_setting(name, n, load), "most": most}, 0.5))
    jobs = effort.jobs // 8
    for name, n, load in simulated_settings(effort):
        policies = ["wham", "equi", *([] if effort.quick else ["greedy", *_discounted()])]
        run = {**_setting(name, n, load), "policies": policies, "jobs": jobs, "seed": SEED}
        made.append(Cell(key_of("simulated", name, n, load), compared, run, 2.0))
    return made


def settings_of(effort: Effort) -> list[tuple[str, int, float]]:
    """Workload, cores and load of every exact cell."""
    if effort.quick:
        small = [
            ("two", 8, 0.55),
            ("sizes", 2, 0.55),
            ("sizes", 8, 0.55),
            ("two", 4, 0.9),
            ("three", 4, 0.25),
        ]
        return [*small, *(("sizes", n, 0.25) for n in (8, 64, 256, 1024, 4096))]
    found = [("sizes", n, load) for load in LOADS for n in (*FEW, *MANY[load])]
    found += [("two", n, load) for load in DRAWN for n in (*FEW, *MANY[load]) if n <= 256 and load * n < 50]
    found += [("three", n, load) for load in (0.25, 0.55, 0.7) for n in (2, 4, 8, 12)]
    if effort.name == "full":
        found += [("sizes", 256, 0.7), ("sizes", 256, 0.8), ("sizes", 256, 0.9), ("two", 256, 0.55)]
        found += [("two", 64, 0.9), ("two", 256, 0.7), *(("three", n, 0.8) for n in (2, 4, 8, 12))]
    return found


def simulated_settings(effort: Effort) -> tuple[tuple[str, int, float], ...]:
    """Settings that are simulated as well."""
    return SIMULATED[-1:] if effort.quick else SIMULATED


def _discounted() -> list[str]:
    """The discounted policy, if this version has it."""
    return ["wham-discounted"] if "wham_discounted" in catalog.kinds("policies") else []


def _setting(name: str, n: int, load: float) -> dict[str, Any]:
    return {"workload": WORKLOADS[name][1], "cores": n, "load": load}


def _gap_cell(name: str, n: int, load: float, effort: Effort) -> Cell:
    few = n <= 16
    # Two classes that differ in size alone tie on whole cores, so that counts do not decide.
    whole = ["wham-integer"] if few and name != "sizes" and not effort.quick else []
    policies = ["wham", "equi", "greedy", *(["greedy:weight=cmu"] if few and name != "three" else [])]
    states = 7_000 if name == "three" and effort.name != "full" else 40_000
    arguments = {**_setting(name, n, load), "policies": policies, "whole": whole, "max_states": states}
    weight = 0.1 + 3.0 * (name == "three") * load + 1.5 * (load >= 0.7) + n / 4000
    return Cell(key_of("gap", name, n, load), gaps, arguments, weight)


def choices(workload: Mapping[str, Any], cores: int, load: float, *, most: int) -> dict[str, Any]:
    """Cores of the first of two classes, with up to `most` jobs of each: the optimum's and WHAM's."""
    made = Workload.from_dict(dict(workload)).at(cores, load)
    best = optimum(made, cores, widths="real")
    wham = class_speeds(Policy.of("wham"), made, cores)
    counts = np.array([[a, b] for b in range(most + 1) for a in range(most + 1)])
    optimal = best.cores[best.lattice.index(counts), 0]
    # WHAM's speeds tell its widths: s(k) = k^p, and the share of a core where jobs outnumber cores.
    speed, exponent = wham(counts.astype(float))[:, 0], made.speedups[0].parameters()["exponent"]
    widths = np.where(speed > 1.0, speed ** (1.0 / exponent), speed)
    shape = (most + 1, most + 1)
    return {
        "cores": cores,
        "load": load,
        "optimum": optimal.reshape(shape).tolist(),
        "wham": (counts[:, 0] * widths).reshape(shape).tolist(),
    }
