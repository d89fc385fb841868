"""How long one decision of a compiled rule takes in a simulation, where the price hardly moves between two.

The mean over many decisions, each after an arrival or a departure: a price search starts from the last price.
"""

import time

import numpy as np

from benchmarks.bench_allocate import fifty_classes
from malleable.contracts import Need, Policy
from malleable.engine.compiling import CLASS_RULE, JOB_RULE, compiled
from malleable.model import Workload
from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows

CASES = (
    ("wham", False),
    ("wham", True),
    ("wham-integer", True),
    ("greedy:weight=cmu", False),
    ("greedy:weight=cmu", True),
    ("whittle", False),
    ("wham-discounted", False),
)
"""Policies, and whether on whole cores."""
CORES, JOBS, DECISIONS, REPEATS = 48.0, 30, 60, 80


def workload(kinds: tuple[int, ...]) -> Workload:
    """Classes of some of the four families of `fifty_classes`: power, Amdahl, USL, tables."""
    return Workload("some", tuple(fifty_classes().classes[i] for i in kinds)).at(CORES, 0.7)


def best(once, repeats: int = REPEATS) -> float:
    once()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        once()
        times.append(time.perf_counter() - start)
    return min(times) / DECISIONS


def job_rule_seconds(rule, table, population: Workload, size: int) -> float:
    rng = np.random.default_rng(3)
    classes, sizes = rng.integers(0, len(population.classes), size), rng.exponential(1.0, size)
    jobs = Jobs.of(population, classes, sizes, age=rng.permutation(size).astype(float))
    rows, fast, out = job_rows(jobs, jobs.class_index), compiled(rule, JOB_RULE), np.empty(size)
    present = rng.integers(size - 4, size + 1, DECISIONS).tolist()

    def once() -> None:
        for k in present:
            fast(rows[:k], CORES, table, out[:k])

    return best(once)


def class_rule_seconds(rule, table, population: Workload) -> float:
    rng = np.random.default_rng(4)
    m = len(population.classes)
    fast, out = compiled(rule, CLASS_RULE), np.empty(m)
    counts = [rng.multinomial(JOBS + k % 3, np.full(m, 1.0 / m)).astype(float) for k in range(DECISIONS)]

    def once() -> None:
        for row in counts:
            fast(row, CORES, table, out)

    return best(once)


def run() -> list[dict]:
    rows = []
    for mixture, kinds in (("power, Amdahl", (0, 1)), ("four families", (0, 1, 2, 3))):
        population = workload(kinds)
        for name, integer in CASES:
            chosen = Policy.of(name)
            made = chosen.program(population, CORES, Need(True, integer))
            for size in (JOBS, 3 * JOBS):
                seconds = job_rule_seconds(made.rule, made.table.copy(), population, size)
                what = {"rule": made.rule.__name__, "classes": mixture, "jobs": size}
                rows.append({**what, "microseconds": 1e6 * seconds})
    for kinds in ((0, 1), (0, 1, 2), (2, 6, 10)):
        population = workload(kinds)
        for name in ("wham", "greedy"):
            made = Policy.of(name).program(population, CORES)
            seconds = class_rule_seconds(made.rule, made.table.copy(), population)
            what = {"rule": made.rule.__name__, "classes": f"{len(kinds)} smooth", "jobs": JOBS}
            rows.append({**what, "microseconds": 1e6 * seconds})
    return rows
