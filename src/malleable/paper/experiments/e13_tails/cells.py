"""What is computed for e13_tails, and on which settings."""

from __future__ import annotations

from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e13_tails.tails import tails

CORES = 64
LOADS = (0.25, 0.8)
WHAM = "wham"
VARIANTS = (WHAM, "wham-integer", "wham-discounted")
ALL = (
    *VARIANTS,
    "fw-cam",
    "equi",
    "greedy",
    "greedy:weight=cmu",
    "greedy:weight=c/x",
    "greedy-star",
    "hell",
    "knee",
    "hesrpt",
    "pollux",
    "sia",
    "lpf",
    "srpt",
    "srpt-all",
    "fcfs",
    "inelastic-first",
    "elastic-first",
)
SPELT = {("fw-cam", 0.25): "fw-cam:beta=0.8", ("fw-cam", 0.8): "fw-cam-repaired:beta=0.6"}
"""Settings in which a policy needs options."""
FAST = (WHAM, "fw-cam", "equi", "greedy", "fcfs")
SLOW = ("pollux", "sia")
CROWDED = {
    ("hell", 0.25),
    ("hell", 0.8),
    ("knee", 0.8),
    ("lpf", 0.8),
    ("sia", 0.8),
    ("greedy:weight=c/x", 0.8),
    ("srpt-all", 0.25),
    ("srpt-all", 0.8),
    ("inelastic-first", 0.8),
    ("elastic-first", 0.8),
}
"""Settings in which jobs pile up, so that every event takes longer and longer."""
QUICK = (WHAM, "equi", "greedy", "hesrpt", "srpt")
BATCHES = {"quick": 5, "normal": 10, "full": 30}
JOBS = {
    "quick": (2_000, 400, 400, 400),
    "normal": (60_000, 5_000, 800, 200),
    "full": (1_000_000, 60_000, 6_000, 600),
}
"""Jobs of a batch for fast policies, for others, for slow ones, and where jobs pile up."""
SEED = 13


def cells(effort: Effort) -> list[Cell]:
    """One cell per policy and load, with WHAM on the same jobs."""
    made = []
    for load in LOADS:
        for policy in policies_of(effort):
            jobs, batches = _jobs(effort, policy, load), BATCHES[effort.name]
            named = SPELT.get((policy, load), policy)
            asked = {"policy": named, "cores": CORES, "load": load, "seed": SEED}
            speed = 3e6 if policy in FAST else 6e3 if jobs < JOBS[effort.name][1] else 1e5
            run = {"jobs": jobs, "batches": batches, **asked}
            made.append(Cell(key_of(policy, load), tails, run, 0.3 + jobs * batches / speed))
    return made


def policies_of(effort: Effort) -> tuple[str, ...]:
    """The policies whose tails are looked at."""
    return QUICK if effort.quick else ALL


def _jobs(effort: Effort, policy: str, load: float) -> int:
    fast, others, slow, crowded = JOBS[effort.name]
    if (policy, load) in CROWDED:
        return crowded
    return fast if policy in FAST else slow if policy in SLOW else others


def key_of(policy: str, load: float) -> str:
    """Name of a cell."""
    plain = "".join(c if c.isalnum() or c in "-." else "-" for c in policy)
    return f"{plain}-{load}"
