"""Resizes per job as the machine grows at load 0.5: does every arrival move everyone?

The paper's workload, with a pause so short (1e-12) that it changes no result but has every move counted.
"""

from dataclasses import replace

from malleable import paper_workload, simulate
from malleable.model import Workload

LOAD = 0.5
SIZES = (8, 16, 32, 64, 128, 256, 512)
POLICIES = ("wham", "wham-integer", "wham-steady")
TINY = 1e-12
JOBS = 20_000
SEED = 20_261_117


def paused(pause: float) -> Workload:
    """The paper's workload with a pause at every resize."""
    plain = paper_workload()
    return Workload("paper", tuple(replace(one, resize={"pause": pause}) for one in plain.classes))


def row(policy: str, cores: int, moves: str, pause: float) -> dict:
    found = simulate(paused(pause), cores, policy, load=LOAD, jobs=JOBS, seed=SEED)
    each = {one.name: one.resizes for one in found.classes}
    return {"moves": moves, "policy": policy, "n": cores, **each, "cost": found.cost.mean}


def run() -> list[dict]:
    """WHAM and its variants where moves are as good as free, then the one that reckons with their cost."""
    mean = paper_workload().total_load / paper_workload().total_rate
    free = [row(policy, n, "free", TINY) for policy in POLICIES for n in SIZES]
    return free + [row("wham-steady", n, "1 % of a mean size", 0.01 * mean) for n in SIZES]
