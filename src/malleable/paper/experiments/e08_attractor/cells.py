"""What is computed for e08_attractor, and on which settings."""

from __future__ import annotations

from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e08_attractor.fluid_paths import (
    attraction,
    bracket,
    fluid_paths,
    random_attraction,
    system_paths,
)

TIME, SYSTEM_TIME = 8.0, 2.0
"""How long trajectories, and paths of the system, are followed."""

LOAD = 0.25
LAWS = {"exponential": 3, "phase type": 4}
"""Size laws, and their numbers of phases."""
LOADS = (0.05, 0.25, 0.5516, 0.8, 0.95)
"""Loads of the study; at 0.5516 a class is just narrowed to one core, where the equation has a kink."""
QUICK_LOADS = (0.25, 0.8)
BRACKETS = (0.25, 0.8)
"""Loads at which the trajectories that hold all others are shown."""
CONFIGURATIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "empty": ("phase type", (0.0, 0.0, 0.0, 0.0)),
    "crowded": ("phase type", (0.1, 0.3, 0.1, 0.1)),
    "crowded, exponential": ("exponential", (0.1, 0.3, 0.1)),
}
"""Starts of the system: jobs of each phase over the number of cores."""
QUICK_CONFIGURATIONS = ("crowded",)
CORES = {"quick": (256, 2048, 16384), "normal": (256, 2048, 16384), "full": (256, 1024, 4096, 16384, 65536)}
SHOWN = (64, 1024, 16384)
"""Numbers of cores whose paths are shown."""
SEED = 8
STARTS = {"quick": (4, 2), "normal": (20, 6), "full": (100, 40)}
"""Trajectories that are shown, and those of each study."""
RANDOM = {"quick": (1, 1, 2), "normal": (3, 2, 3), "full": (10, 5, 6)}
"""Cells of random workloads, workloads in each, and starts of each of those."""
RUNS = {"quick": 4, "normal": 8, "full": 20}


def cells(effort: Effort) -> list[Cell]:
    """Trajectories to show, studies by law and load, random workloads, and paths of the system."""
    shown, studied = STARTS[effort.name]
    batches, workloads, starts = RANDOM[effort.name]
    loads = QUICK_LOADS if effort.quick else LOADS
    common = {"load": LOAD, "count": shown, "time": TIME, "seed": SEED}
    made = [
        Cell(f"fluid-{i}", fluid_paths, {"law": law, **common}, 0.1 * shown) for i, law in enumerate(LAWS)
    ]
    made += [
        Cell(f"study-{i}-{load}", attraction, {"law": law, "load": load, "count": studied, "seed": SEED},
             0.1 * studied)
        for i, law in enumerate(LAWS) for load in loads
    ]  # fmt: skip
    made += [
        Cell(f"random-{b}", random_attraction, {"workloads": workloads, "count": starts, "seed": SEED + b},
             0.2 * workloads * starts)
        for b in range(batches)
    ]  # fmt: skip
    made += [Cell(f"bracket-{load}", bracket, {"law": "phase type", "load": load}, 0.3) for load in BRACKETS]
    for i, name in enumerate(configurations(effort)):
        law, start = CONFIGURATIONS[name]
        run = {"law": law, "load": LOAD, "start": list(start), "time": SYSTEM_TIME, "seed": SEED}
        pictures = () if effort.quick else SHOWN
        made += [
            Cell(f"system-{i}-{n}", system_paths,
                 {"cores": n, "runs": RUNS[effort.name] if n in CORES[effort.name] else 1, **run},
                 0.1 * RUNS[effort.name])
            for n in sorted({*CORES[effort.name], *pictures})
        ]  # fmt: skip
    return made


def configurations(effort: Effort) -> tuple[str, ...]:
    """Names of the starts that systems are simulated from."""
    return QUICK_CONFIGURATIONS if effort.quick else tuple(CONFIGURATIONS)
