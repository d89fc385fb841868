"""Events per second of the simulator: every policy, over cores, and over load (paper workload, one core).

Each run is warmed up until the number of jobs present has settled, then timed over some stretches of a tenth
of a second of processor time. The fastest counts: other people use the machine too.
"""

import time

from malleable import catalog
from malleable.contracts import Policy
from malleable.engine.rule_interface import COUNTS, POOLS
from malleable.engine.run import Run
from malleable.errors import MalleableError
from malleable.model import paper_workload
from malleable.simulation import program
from malleable.sources import stream

CORES = (8, 64, 1024, 32_768, 1_000_000)
LOADS = (0.25, 0.5, 0.75, 0.9, 0.99)
SHOWN = ("wham", "equi", "greedy", "fw-cam")
SECONDS, STRETCHES = 0.1, 8
LENGTH = 1 << 24


def shape(made) -> str:
    if made.sees != COUNTS:
        return "job rule"
    return "pools" if made.discipline == POOLS else "class rule"


def measured(policy: str, cores: int, load: float) -> dict:
    row = {"policy": policy, "shape": "", "cores": cores, "load": load, "jobs present": "", "events/s": ""}
    workload = paper_workload(cores, load)
    try:
        made = program(Policy.of(policy), workload, cores)
        # Ten times the jobs present is several relaxation times; slow rules get a small share of it.
        settling = int(min(10.0 * cores + 2000.0, 4_000_000))
        # A run has 512 records of the length first asked for; short ones would time Python, not the kernel.
        run = Run(workload, cores, made, jobs=LENGTH, source=stream(workload, 0), name=policy)
        row["shape"] = shape(made)
        run.extend(min(settling, 2000))
        if run.seconds < 1.0:
            run.extend(settling)
        step = stretch(run)
        row["events/s"] = max(rate(run, step) for _ in range(STRETCHES))
    except MalleableError as error:
        return {**row, "events/s": f"none: {error.problem:.40}"}
    row["jobs present"] = float(run.snapshot().present)
    return row


def stretch(run: Run) -> int:
    """Jobs that take about a tenth of a second."""
    step = 250
    while True:
        started = time.process_time()
        run.extend(run.jobs + step)
        if time.process_time() - started > SECONDS / 2:
            return step
        step *= 2


def rate(run: Run, jobs: int) -> float:
    before, started = run.outcome().events, time.process_time()
    run.extend(run.jobs + jobs)
    seconds = time.process_time() - started
    return (run.outcome().events - before) / seconds


def run() -> list[dict]:
    policies = [catalog.display("policies", kind) for kind in sorted(catalog.kinds("policies"))]
    rows = [measured(policy, 64, 0.25) for policy in policies]
    rows += [measured(policy, cores, 0.25) for policy in SHOWN for cores in CORES if cores != 64]
    rows += [measured(policy, 64, load) for policy in (*SHOWN, "hesrpt") for load in LOADS[1:]]
    return rows
