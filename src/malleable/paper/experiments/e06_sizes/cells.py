"""What is computed for e06_sizes, and on which settings."""

from __future__ import annotations

from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e06_sizes.size_aware import alone
from malleable.paper.experiments.shared.widths import measured, predicted
from malleable.paper.simulation_cells import compared
from malleable.theory.relaxed import bound

LOAD = 0.25
SEED = 6
NEAR = (0.1, 0.25)
"""ε: how near to k_i* counts as on k_i* cores."""
CORES, QUICK_CORES = (16, 64, 256, 1024, 4096, 16384), (16, 64, 256)
MIXED, QUICK_MIXED = (8, 16, 32, 64, 128, 256, 512, 1024), (16, 64, 128)
ALONE, QUICK_ALONE = (8, 16, 32, 64, 128, 256, 512, 1024, 2048), (8, 128, 256, 512)
PLAIN, QUICK_PLAIN = (8, 16, 32, 64, 128, 256), (8, 64)
"""Numbers of cores for WHAM's widths; A-heSRPT on the paper's classes; on one class, levelled and plain."""
DRAWN = {16: 5, 256: 1, 1024: 7, 16384: 0}
"""Numbers of cores whose distributions of widths are drawn, with their colours."""


def cells(effort: Effort) -> list[Cell]:
    """Widths under WHAM by n; rules by size against WHAM, with the paper's classes and with one."""
    best = bound(paper_workload(64, LOAD), 64).widths.tolist()
    windows = [[i, (1.0 - near) * k, (1.0 + near) * k] for near in NEAR for i, k in enumerate(best)]
    cores, mixed, level, plain = grids(effort)
    jobs = effort.jobs // 2
    run = {"load": LOAD, "seed": SEED}
    wide = {**run, "windows": windows}
    made = [Cell("predicted", predicted, {"cores": list(cores), "load": LOAD, "near": list(NEAR)}, 0.1)]
    for n in cores:
        asked = {"policy": "wham", "cores": n, "jobs": max(jobs, 30 * n), "distribution": n in DRAWN}
        made.append(Cell(f"widths-{n}", measured, {**asked, **wide}, jobs * (1.0 + n / 4000) / 3e6))
    few = _jobs(effort, 256, 128)
    asked = {"policy": "hesrpt", "cores": 256, "jobs": few, "distribution": True}
    made.append(Cell("widths-by-size", measured, {**asked, **wide}, few / 2e5))
    for n in mixed:
        few = _jobs(effort, n, 128)
        asked = {"policies": ["wham", "hesrpt"], "cores": n, "jobs": few}
        made.append(Cell(f"mixed-{n}", compared, {**asked, **run}, few * (1.0 + n / 16) / 1e6))
    for policy, grid, whole in (("levelled", level, 512), ("hesrpt", plain, 128)):
        for n in grid:
            few = _jobs(effort, n, whole)
            asked = {"policy": policy, "cores": n, "jobs": few}
            made.append(Cell(f"{policy}-{n}", alone, {**asked, **run}, few * (1.0 + n / whole) / 3e5))
    return made


def grids(effort: Effort) -> tuple[tuple[int, ...], ...]:
    """Numbers of cores for each kind of cell."""
    return (
        (QUICK_CORES, QUICK_MIXED, QUICK_ALONE, QUICK_PLAIN) if effort.quick else (CORES, MIXED, ALONE, PLAIN)
    )


def _jobs(effort: Effort, n: int, whole: int) -> int:
    """Rules by size look at every job at every event: beyond `whole` cores runs get shorter."""
    base = 20_000 if effort.quick else effort.jobs // 4
    return max(30 * n, int(base * min(1.0, whole / n)))
