"""How often nominal 95 % intervals cover the exact cost: queues with closed forms, over load, length and law.

M/M/1 and M/G/1 first come first served (Pollaczek–Khinchine), M/G/1 processor sharing (insensitive), M/M/c
(Erlang C). Where a run's length or law earns it a note beforehand, all runs have it, and one is enough.

The constants of `statistics.run_length` and `statistics.intervals` were chosen on seeds below `FRESH`; the
grid uses others, so that it tests them.
"""

import sys
import warnings
from math import sqrt
from typing import NamedTuple

import numpy as np

from malleable.contracts import Distribution, Policy
from malleable.engine.run import Run
from malleable.model import JobClass, Workload
from malleable.results import Result, summarise
from malleable.simulation import program
from malleable.sources import stream
from malleable.theory.queues import mg1_waiting_time, mmc

LOADS = (0.5, 0.7, 0.9, 0.95, 0.99, 0.999)
LENGTHS = (1000, 10_000, 100_000)
FRESH = 100_000
"""The first seed that nothing was chosen on."""
SCV = 20.0
OFTEN = 0.5 * (1.0 + sqrt((SCV - 1.0) / (SCV + 1.0)))
LAWS = {
    "exponential": {"kind": "exponential", "rate": 1.0},
    "hyperexponential": {
        "kind": "hyperexponential",
        "probabilities": [OFTEN, 1.0 - OFTEN],
        "rates": [2.0 * OFTEN, 2.0 * (1.0 - OFTEN)],
    },
    "lognormal": {"kind": "lognormal", "mean": 1.0, "sigma": 2.0},
    "weibull": {"kind": "weibull", "shape": 0.4, "mean": 1.0},
    "pareto 2.2": {"kind": "pareto", "shape": 2.2, "mean": 1.0},
    "pareto 1.5": {"kind": "pareto", "shape": 1.5, "mean": 1.0},
}
"""Job sizes of mean 1; the squared coefficients of variation are 1, 20, 54, 9.9, 2.3 and infinite."""
NEVER = {("fcfs", "lognormal"), ("fcfs", "pareto 2.2"), ("fcfs", "pareto 1.5"), ("equi", "pareto 1.5")}
"""Whose runs always have a note."""
BEFOREHAND = ("relaxation times", "squares of sizes", "no finite variance")


class Coverage(NamedTuple):
    """How many runs had no note, and which share of these covers the exact cost."""

    policy: str
    cores: int
    law: str
    load: float
    jobs: int
    runs: int
    unnoted: int
    coverage: float
    half_width: float
    """The median, relative to the exact cost."""


def exact(policy: str, cores: int, size: Distribution, load: float) -> float:
    """Mean response time."""
    if policy == "equi":
        return 1.0 / (1.0 - load)
    if cores > 1:
        return mmc(load * cores, 1.0, cores).response_time
    return 1.0 + mg1_waiting_time(load, 1.0, size.moment(2))


def queue(law: str, cores: int, load: float) -> Workload:
    """One class; its speedup does not matter, since no job gets more than a core."""
    flat = {"kind": "power", "exponent": 0.5}
    with warnings.catch_warnings():  # of heavy tails, which are the point
        warnings.simplefilter("ignore")
        job = JobClass("jobs", {"kind": "poisson", "rate": 1.0}, LAWS[law], flat)
        return Workload(law, (job,)).at(cores, load)


def cover(policy: str, cores: int, law: str, load: float, jobs: int, runs: int = 200) -> Coverage:
    """Simulate one setting `runs` times, with the seeds from `FRESH` on."""
    workload = queue(law, cores, load)
    truth = exact(policy, cores, workload.classes[0].size, load)
    plain: list[Result] = []
    for seed in range(FRESH, FRESH + runs):
        found = _simulated(policy, cores, workload, jobs, seed)
        if any(words in note for note in found.notes for words in BEFOREHAND):
            break
        if not found.notes:
            plain.append(found)
    costs = [found.cost for found in plain]
    covered = np.mean([cost.low <= truth <= cost.high for cost in costs]) if costs else np.nan
    width = np.median([cost.half_width / truth for cost in costs]) if costs else np.nan
    return Coverage(policy, cores, law, load, jobs, runs, len(plain), float(covered), float(width))


def _simulated(policy: str, cores: int, workload: Workload, jobs: int, seed: int) -> Result:
    chosen = Policy.of(policy)
    run = Run(
        workload,
        cores,
        program(chosen, workload, cores),
        jobs=jobs,
        source=stream(workload, seed),
        name=policy,
    )
    run.extend(jobs)
    return summarise(
        [run.outcome().records],
        workload=workload,
        cores=cores,
        policy=policy,
        seed=seed,
        jobs=jobs,
        keep_records=False,
        whole_cores=chosen.whole_cores,
        blocking=chosen.blocking,
    )


def run(lengths: tuple[int, ...] = LENGTHS) -> list[dict]:
    """The grid; with a million jobs it takes much longer (`python -m benchmarks.bench_coverage 1e6`)."""
    queues = [(p, 1, law) for p in ("fcfs", "equi") for law in LAWS]
    queues += [("fcfs", cores, "exponential") for cores in (8, 64)]
    settings = [(*q, load, jobs) for q in queues for load in LOADS for jobs in lengths]
    return [cover(*setting)._asdict() for setting in settings]


if __name__ == "__main__":
    for row in run(tuple(int(float(text)) for text in sys.argv[1:]) or LENGTHS):
        print(*(f"{v:.4g}" if isinstance(v, float) else v for v in row.values()), sep="\t", flush=True)
