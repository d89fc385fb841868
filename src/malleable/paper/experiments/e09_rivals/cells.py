"""What is computed for e09_rivals, and on which settings."""

from __future__ import annotations

from typing import Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.simulation_cells import compared
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

WHAM, PLANNED = "wham", "fw-cam:beta=0.8"
TUNED_CORES = 64
SWEEPS: dict[str, tuple[str, ...]] = {
    "knee": tuple(f"knee:alpha={alpha}" for alpha in (0.003, 0.004, 0.006, 0.008, 0.012, 0.016, 0.032)),
    "lpf": tuple(f"lpf:efficiency={e}" for e in (0.3, 0.35, 0.4, 0.45, 0.5, 0.7)),
    "sia": ("sia", "sia:fairness=-1.0"),
    "pollux": ("pollux", "pollux:fairness=-2.0"),
}
"""Settings of rivals that have any, and what it would help to change them."""

LOAD = 0.25
FIXED_POINTS = ("wham", "equi", "greedy", "greedy:weight=mu", "greedy:weight=c", "greedy:weight=cmu")
"""Policies that look at class counts alone, so that their limits are known."""
GROUPS: dict[str, tuple[str, ...]] = {
    "counts": ("equi", "greedy", PLANNED),
    "weights": ("greedy:weight=mu", "greedy:weight=c", "greedy:weight=cmu"),
    "jobs": ("knee", "hesrpt", "lpf"),
    "sizes": ("greedy:weight=c/x",),
    "hell": ("hell",),
    "pollux": ("pollux",),
    "sia": ("sia",),
}
"""Policies of about the same speed, simulated together with WHAM on the same jobs."""
SPEED = {
    "counts": 4e6, "weights": 3e5, "jobs": 2e5, "sizes": 4e4, "hell": 5e4, "pollux": 6e3, "sia": 3e4,
    "all": 1e5,
}  # fmt: skip
"""Jobs a second, roughly, on 64 cores."""
JOBS = {
    "quick": {"all": 2_000},
    "normal": {
        "counts": 400_000, "weights": 40_000, "jobs": 40_000, "sizes": 8_000, "hell": 6_000,
        "pollux": 4_000, "sia": 8_000,
    },
    "full": {
        "counts": 10_000_000, "weights": 1_000_000, "jobs": 1_000_000, "sizes": 200_000, "hell": 20_000,
        "pollux": 40_000, "sia": 100_000,
    },
}  # fmt: skip
"""Jobs of a simulation, at least 30 per core; HELL is unstable, so long runs tell nothing new."""
CORES = {"quick": (16, 64), "normal": (16, 32, 64, 128, 256), "full": (16, 32, 64, 128, 256, 512)}
MORE_CORES = {"quick": (), "normal": (1024, 4096), "full": (1024, 4096, 16384)}
"""Numbers of cores for policies that look at counts alone, which are fast."""
SEED = 9


def cells(effort: Effort) -> list[Cell]:
    """Simulations by n and speed, each with WHAM on the same jobs; sweeps; limits from formulas."""
    made = [Cell("limits", limits, {}, 0.3)]
    for group, policies in groups(effort).items():
        for n in cores_of(effort, group):
            jobs = max(JOBS[effort.name][group], 30 * n)
            slower = 1.0 if group == "counts" else max(1.0, n / 128.0)
            weight = len(policies) * (0.12 + jobs * slower / SPEED[group])
            run = {"cores": n, "load": LOAD, "seed": SEED, "jobs": jobs}
            made.append(Cell(f"{group}-{n}", compared, {"policies": [WHAM, *policies], **run}, weight))
    for policy, variants in SWEEPS.items() if not effort.quick else ():
        jobs = JOBS[effort.name]["jobs" if policy in GROUPS["jobs"] else policy]
        run = {"cores": TUNED_CORES, "load": LOAD, "seed": SEED, "jobs": max(jobs // 4, 2_000)}
        weight = len(variants) * 0.5
        made.append(Cell(f"sweep-{policy}", compared, {"policies": [WHAM, *variants], **run}, weight))
    return made


def groups(effort: Effort) -> dict[str, tuple[str, ...]]:
    """In a quick look all runs are short, so all policies share one."""
    return {"all": tuple(p for ps in GROUPS.values() for p in ps)} if effort.quick else GROUPS


def cores_of(effort: Effort, group: str) -> tuple[int, ...]:
    """The numbers of cores that a group is simulated on."""
    return (*CORES[effort.name], *(MORE_CORES[effort.name] if group == "counts" else ()))


def limits() -> dict[str, Any]:
    """The bound, and the mean-field limits of the policies that have one."""
    n = 1024
    workload = paper_workload(n, LOAD)
    costs = {p: mean_field(workload, n, Policy.of(p), starts=0).cost for p in FIXED_POINTS}
    # One job of class 2 at a time, on all cores: they keep up while load_2 ≤ s_2(n) = √n.
    alone = (n / float(workload.loads[1])) ** 2
    return {"bound": bound(workload, n).bound, "crowded": alone, **costs}
