"""Resizes per job as the machine grows at load 0.5: does every arrival move everyone?

The paper's workload; moves are free but for a pause so short that it changes no result and has every move
counted, or cost 1 % of a mean size.
"""

from dataclasses import replace

from malleable import paper_workload, simulate
from malleable.model import Workload

LOAD = 0.5
SIZES = (8, 16, 32, 64, 128, 256, 512)
TINY = 1e-12
SETTINGS = (
    ("wham", "free"),
    ("wham-integer", "free"),
    ("wham-steady", "free"),
    ("wham-integer", "1 %"),
    ("wham-steady", "1 %"),
)
JOBS = 20_000
SEED = 20_261_117


def paused(moves: str) -> Workload:
    """The paper's workload with a pause at every resize."""
    plain = paper_workload()
    pause = TINY if moves == "free" else 0.01 * plain.total_load / plain.total_rate
    return Workload("paper", tuple(replace(one, resize={"pause": pause}) for one in plain.classes))


def row(policy: str, moves: str, cores: int) -> dict:
    found = simulate(paused(moves), cores, policy, load=LOAD, jobs=JOBS, seed=SEED)
    each = {one.name: one.resizes for one in found.classes}
    return {"policy": policy, "moves": moves, "n": cores, **each, "cost": found.cost.mean}


def run() -> list[dict]:
    return [row(policy, moves, cores) for policy, moves in SETTINGS for cores in SIZES]
