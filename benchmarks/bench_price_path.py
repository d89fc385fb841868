"""Seconds for the bound of given jobs on one core, how far it is from ten times the effort, and from WHAM.

    python -m benchmarks price_path

Jobs of the paper's workload. `us` is microseconds per job and evaluation of the bound; `short` by how many
per cent the bound is below that of ten times the effort or more: four times as many prices, and a search that
ends 25 times later. It is left out (nan) for a million jobs unless BENCH_PRICE_PATH=all.
"""

import math
import os
import time

from malleable.contracts import Policy
from malleable.engine.replaying import replay_jobs
from malleable.model import paper_workload
from malleable.simulation.given import ready
from malleable.simulation.jobs_bound import drawn_jobs
from malleable.theory.price_path import bound_for_jobs, default_cell_jobs

SETTINGS = (
    (100_000, 16, 0.25),
    (100_000, 64, 0.25),
    (100_000, 256, 0.25),
    (100_000, 16, 0.7),
    (100_000, 64, 0.7),
    (1_000_000, 64, 0.7),
    (1_000_000, 256, 0.25),
)
GOALS = {100_000: 10.0, 1_000_000: 60.0}
"""Seconds."""
ALL = os.environ.get("BENCH_PRICE_PATH") == "all"


def timed(jobs, cores, **options):
    """The bound, and the processor time that it took on one core."""
    started = time.process_time()
    found = bound_for_jobs(jobs, cores, threads=1, **options)
    return found, time.process_time() - started


def measured(count: int, cores: int, load: float) -> dict:
    """One setting."""
    jobs = drawn_jobs(paper_workload(cores, load), count, 1)
    made = ready(Policy.of("wham"), jobs, cores)
    ends = replay_jobs(made.workload, cores, made.program, made.jobs).log.ends
    found, seconds = timed(jobs, cores)
    short, effort = math.nan, math.nan
    if count <= 100_000 or ALL:
        cells = default_cell_jobs(cores, count) / 4.0
        best, longer = timed(jobs, cores, cell_jobs=cells, precision=2e-5)
        short, effort = 100.0 * (1.0 - found.bound / best.bound), longer / seconds
    return {
        "jobs": count,
        "cores": cores,
        "load": load,
        "seconds": seconds,
        "goal": GOALS[count],
        "steps": found.steps,
        "us": 1e6 * seconds / found.steps / count,
        "wham above, %": 100.0 * (float(jobs.weight @ (ends - jobs.times)) / found.bound - 1.0),
        "short, %": short,
        "times the effort": effort,
    }


def run() -> list[dict]:
    """All settings."""
    bound_for_jobs(drawn_jobs(paper_workload(16, 0.25), 100, 1), 16, threads=1)  # compiles
    return [measured(*setting) for setting in SETTINGS]
