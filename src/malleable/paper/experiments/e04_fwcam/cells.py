"""What is computed for e04_fwcam, and on which settings."""

from __future__ import annotations

from typing import Any

from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.shared.fw_cam_pools import all_planned
from malleable.paper.simulation_cells import compared
from malleable.theory.relaxed import bound

BETAS = (0.76, 0.8, 0.9)
NEAR = tuple(2**i for i in range(4, 13))

LOAD = 0.25
SEED = 4
SIMULATED = tuple((beta, n) for beta in BETAS for n in (16, 64, 256, 1024, 4096, 16384))
QUICK_SIMULATED = ((0.8, 64), (0.8, 256), (0.9, 64))
"""β and n of the simulations; in a quick look, those whose queues a short run can judge."""
FAR = tuple(2**i for i in range(13, 51))
"""Where only widths and effective loads are worked out."""
MOST_SLOTS = {"quick": 100, "normal": 100, "full": 200}
"""Slots of a class up to which M/PH/c is solved, by effort."""


def cells(effort: Effort) -> list[Cell]:
    """Plans and exact queues by β; simulations by β and n."""
    exact = {"load": LOAD, "most_slots": MOST_SLOTS[effort.name]}
    far = FAR[7::10] if effort.quick else FAR
    made = [Cell("relaxed", relaxed_widths, {}, 0.1)]
    made += [
        Cell(f"plans-{b}", all_planned, {"cores": [*NEAR, *far], "beta": b, **exact}, 2.0) for b in BETAS
    ]
    run = {"load": LOAD, "seed": SEED, "jobs": effort.jobs, "most_jobs": effort.most_jobs}
    run["precision"] = (1.0 if effort.name == "full" else 5.0) * effort.precision
    made += [
        Cell(
            f"fw-cam-{b}-{n}",
            compared,
            {"policies": [f"fw-cam:beta={b}"], "cores": n, **run},
            effort.jobs * (1.0 + n / 8000) / 4e6,
        )
        for b, n in simulated_settings(effort)
    ]
    return made


def simulated_settings(effort: Effort) -> tuple[tuple[float, int], ...]:
    """Pairs (β, n) that are simulated."""
    return QUICK_SIMULATED if effort.quick else SIMULATED


def relaxed_widths() -> dict[str, Any]:
    """The widths k_i* of the relaxed problem, and V*."""
    found = bound(paper_workload(64, LOAD), 64)
    return {
        "names": [c.name for c in found.classes],
        "widths": found.widths.tolist(),
        "loads": (found.workload.loads / 64).tolist(),
        "bound": found.bound,
    }
