"""How long `auto` takes to choose, and how long a decision about 16 jobs takes under what it may choose.

The choice: processor seconds for workloads of `held_out_auto`, by number of classes. A decision: the mean
over 60 in a row, each after an arrival or a departure, the best of 200 such rows.
"""

from time import process_time

import numpy as np

from benchmarks.auto_rows import workload
from benchmarks.bench_decisions import DECISIONS, best
from benchmarks.held_out_auto import setting
from malleable.contracts import Policy
from malleable.engine.compiling import JOB_RULE, compiled
from malleable.model.jobs import Jobs
from malleable.policies.auto import Auto
from malleable.policies.base import job_rows

SEEDS = (11, 3, 4, 9, 24, 0)
"""Workloads of 2, 2, 3, 5, 5 and 6 classes."""
NAMES = (
    "wham-discounted", "clearing", "clearing:order=best", "clearing:factor=3,order=best", "smartfill",
    "wham-fitted:trial=false",
)  # fmt: skip
CASES = (("desk", 16, 0.7), ("mix", 12, 0.7), ("paper", 16, 0.7))
SIZE = 16


def seconds_of_decision(name: str, case: tuple[str, int, float]) -> float:
    """Of 16 jobs, give or take one that came or left."""
    made, cores = workload(*case), float(case[1])
    program = Policy.of(name).program(made, cores)
    rng = np.random.default_rng(3)
    classes, sizes = rng.integers(0, len(made.classes), SIZE + 1), rng.exponential(1.0, SIZE + 1)
    jobs = Jobs.of(made, classes, sizes, age=np.arange(SIZE + 1.0, 0.0, -1.0))
    rows, rule, out = job_rows(jobs, jobs.class_index), compiled(program.rule, JOB_RULE), np.empty(SIZE + 1)
    table, present = program.table.copy(), rng.integers(SIZE - 1, SIZE + 2, DECISIONS).tolist()

    def once() -> None:
        for k in present:
            rule(rows[:k], cores, table, out[:k])

    return best(once, 200)


def run() -> list[dict]:
    """Both tables."""
    rows = []
    for seed in SEEDS:
        made, cores, load = setting(seed)
        for known in ("known", "unknown"):
            start = process_time()
            name = Auto(sizes=known).choice(made, cores).name
            what = f"choice, {len(made.classes)} classes on {cores} cores at load {load:.2f}, sizes {known}"
            rows.append({"what": what, "seconds": round(process_time() - start, 2), "chosen": name})
    for case in CASES:
        for name in NAMES:
            micro = 1e6 * seconds_of_decision(name, case)
            rows.append(
                {"what": f"{name}, 16 jobs of {case[0]} on {case[1]} cores", "microseconds": round(micro, 2)}
            )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
