"""What is computed for e07_whittle, and on which settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e07_whittle.single_arm import (
    action_map,
    actions,
    allocations,
    indexable,
    values,
)
from malleable.paper.simulation_cells import compared

DISCOUNTS = (1.0, 0.1, 0.01, 0.001, 0.0001)
SIZES = (0.1, 0.5, 2.0)
"""Remaining sizes at which widths are worked out; mean sizes are 0.2, 0.56 and 0.33."""
RENTS = tuple(np.geomspace(0.03, 30.0, 91).tolist())
"""Prices over α."""
SIMULATED_CORES = 16
LOADS: dict[float, tuple[float, ...]] = {0.25: (1.0, 0.3, 0.1, 0.01), 0.8: (0.1, 0.03, 0.01)}
"""Loads that are simulated, and the discounts there; more discount at load 0.8 makes the policy unstable."""
HELD: dict[float, tuple[float, ...]] = {0.25: (1.0, 0.3)}
"""Those simulated with one action for life, too."""

CLASSES = ("class-1", "class-2", "class-3")
SPEEDUPS: dict[str, tuple[dict[str, Any], float]] = {
    "k^0.3 (class 1)": ({"kind": "power", "exponent": 0.3}, 1.0),
    "√k (class 2)": ({"kind": "power", "exponent": 0.5}, 2.0),
    "Amdahl, q = 0.2 (class 3)": ({"kind": "amdahl", "sequential": 0.2}, 1.0),
    "k^0.95": ({"kind": "power", "exponent": 0.95}, 1.0),
    "USL, falls beyond 31 cores": ({"kind": "usl", "contention": 0.05, "coherency": 0.001}, 1.0),
    "measured, not concave": (
        {"kind": "table", "cores": [1, 2, 4, 8, 16], "speedup": [1.0, 1.9, 2.5, 5.0, 4.0], "hull": True},
        1.0,
    ),
}
"""Speedups whose indexability is checked, with holding costs."""
CHECKED_DISCOUNTS = (0.001, 0.05, 1.0, 20.0)
CORES = 64
SEED = 7
STATES = {"quick": 8, "normal": 80, "full": 1000}
GRIDS = {"quick": (12, 60), "normal": (40, 240), "full": (80, 500)}
JOBS = {"quick": 2_000, "normal": 25_000, "full": 1_000_000}


def cells(effort: Effort) -> list[Cell]:
    """Widths by class, grids by speedup, allocations on random states, and simulations by load."""
    common = {"remaining": list(SIZES), "discounts": list(DISCOUNTS), "rents": list(RENTS)}
    sizes, prices = GRIDS[effort.name]
    jobs = JOBS[effort.name]
    grid = {"discounts": list(CHECKED_DISCOUNTS), "sizes": sizes, "prices": prices}
    asked = {"cores": CORES, "states": STATES[effort.name], "discounts": list(DISCOUNTS), "seed": SEED}
    made = [Cell(f"actions-{i}", actions, {"job_class": i, **common}, 0.2) for i in range(len(CLASSES))]
    made.append(Cell("map", action_map, {"job_class": 1, "discount": 1.0, "sizes": 72, "prices": 72}, 0.1))
    made += [
        Cell(f"indexable-{i}", indexable, {"speedup": s, "weight": c, **grid}, sizes * prices / 5e3)
        for i, (s, c) in enumerate(SPEEDUPS.values())
    ]
    made.append(Cell("allocations", allocations, asked, 0.1 * STATES[effort.name]))
    made.append(Cell("values", values, {"job_class": 1, "discount": 1.0, "sizes": 80}, 0.1))
    for load, discounts in LOADS.items():
        policies = ["wham", *(f"whittle:alpha={alpha}" for alpha in discounts)]
        policies += [f"whittle:alpha={alpha},arm=constant" for alpha in HELD.get(load, ())]
        run = {"cores": SIMULATED_CORES, "load": load, "seed": SEED, "jobs": jobs}
        weight = 0.6 + len(discounts) * jobs * (1.0 + 3.0 * load) / 1e5
        made.append(Cell(f"simulated-{load}", compared, {"policies": policies, **run}, weight))
    return made
