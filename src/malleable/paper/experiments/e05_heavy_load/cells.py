"""What is computed for e05_heavy_load, and on which settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.shared.widths import measured
from malleable.paper.simulation_cells import PAPERS

WIDTHS = (1.25, 2.0, 4.0)
"""k0: edges of the histogram's bins, so that shares beyond them are exact counts."""
CORES = 64
LOADS = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
QUICK_LOADS = (0.5, 0.8, 0.95)
GROWING = (16, 64, 256, 1024, 4096)
QUICK_GROWING = (16, 64, 256)
SEED = 5


def cells(effort: Effort) -> list[Cell]:
    """Shares of the work by policy, on 64 cores over the load and over n; the bounds."""
    points = points_of(effort)
    jobs = effort.jobs // 2
    windows = [[None, k, 1e12] for k in WIDTHS]
    made = [Cell("bounds", bounds, {"loads": [load for _, load in points]}, 0.1)]
    made += [
        Cell(
            f"{policy}-{n}-{load:.6f}",
            measured,
            {"policy": policy, "cores": n, "load": load, "jobs": jobs, "seed": SEED, "windows": windows},
            jobs * (1.0 + n / 3000) / 2e6,
        )
        for policy in PAPERS
        for n, load in points
    ]
    return made


def points_of(effort: Effort) -> list[tuple[int, float]]:
    """(n, ρ) of both regimes."""
    return [*over_load(effort), *(p for p in over_cores(effort) if p not in over_load(effort))]


def over_load(effort: Effort) -> list[tuple[int, float]]:
    """Settings on a fixed number of cores as the load grows."""
    return [(CORES, load) for load in (QUICK_LOADS if effort.quick else LOADS)]


def over_cores(effort: Effort) -> list[tuple[int, float]]:
    """Settings in which cores and load grow together."""
    return [(n, 1.0 - n**-0.5) for n in (QUICK_GROWING if effort.quick else GROWING)]


def bounds(loads: list[float]) -> list[dict[str, Any]]:
    """At each load and k0, the most work that any stable policy can do on more than k0 cores.

    The paper: it takes k0/max s_i(k0) of core-time per unit at least, the rest at least 1, and there is 1/ρ:
    q ≤ (1/ρ − 1)/(k0/max s_i(k0) − 1). Sharper: class i takes k0/s_i(k0), so fill up the best class first;
    none can have more than its share of the work.
    """
    found = []
    for load in loads:
        workload = paper_workload(CORES, load)
        parts = workload.loads / workload.total_load
        spare = 1.0 / load - 1.0
        for k in WIDTHS:
            extra = np.array([k / float(s(k)) - 1.0 for s in workload.speedups])
            left, sharp = spare, 0.0
            for i in np.argsort(extra):
                taken = min(parts[i], left / extra[i])
                left, sharp = left - taken * extra[i], sharp + float(taken)
            found.append({"load": load, "k0": k, "paper": min(1.0, spare / extra.min()), "sharp": sharp})
    return found
