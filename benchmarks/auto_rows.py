"""`auto` and the policies that it contains on three workloads, in per cent of WHAM's cost on the same jobs.

`desk` is what people have on one machine: three classes of near-linear speedups, sizes of means 1, 3 and 8,
weights 5, 2 and 1. `mix` has two power laws and two Amdahl classes; `paper` is the paper's. The last column
is the lower bound for these very jobs (`theory.price_path`), which knows all of them beforehand: no scheduler
attains it. `python -m benchmarks.auto_rows FILE` appends a line per row to FILE and skips those that it has.
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path
from time import process_time

import numpy as np

from malleable.contracts import Policy
from malleable.model import Workload, paper_workload
from malleable.model.job_list import JobList
from malleable.paper.experiments.shared.workloads import four_classes, job_class, sizes_of
from malleable.policies.auto import Auto
from malleable.policies.base.asking import simulated
from malleable.policies.base.paired_trial import PairedRun, relative
from malleable.sources import stream
from malleable.theory.price_path import bound_for_jobs

NAMES = (
    "wham", "wham-discounted", "wham-fitted", "wham-improved", "smartfill", "clearing", "clearing:order=best",
    "hell",
)  # fmt: skip
BLIND = ("wham", "equi", "wham-discounted", "wham-improved", "smartfill", "clearing")
ROWS = (
    *(("desk", n, load) for n in (2, 4, 16, 64) for load in (0.3, 0.7)),
    *(("mix", n, load) for n in (2, 8) for load in (0.3, 0.7)),
    *(("paper", n, load) for n in (4, 16) for load in (0.3, 0.7)),
)
BLIND_ROWS = tuple(("desk", 2, load) for load in (0.5, 0.7, 0.9))
SEED, BATCHES, BOUND_JOBS, BOUND_SECONDS = 5, 24, 12_000, 40.0


def desk() -> Workload:
    """Three classes with Amdahl's law: short and dear to long and cheap."""
    rows = (("a", 1.0, 1.0, 1.0, 5.0), ("b", 0.4, 3.0, 1.0, 2.0), ("c", 0.15, 8.0, 1.2, 1.0))
    amdahl = {"kind": "amdahl", "sequential": 0.05}
    classes = [
        job_class(name, sizes_of("lognormal", mean, sigma=sigma), amdahl, cost, rate)
        for name, rate, mean, sigma, cost in rows
    ]
    return Workload.from_dict({"name": "desk", "classes": classes})


def workload(name: str, cores: int, load: float) -> Workload:
    """One of the three at a load."""
    if name == "paper":
        return paper_workload(cores=cores, load=load)
    mix = four_classes("mix", "exponential", (0.4, 1.0, 1.5, 3.0))
    return (desk() if name == "desk" else Workload.from_dict(mix)).at(cores, load)


def row(name: str, cores: int, load: float, jobs: int, *, known: bool) -> dict[str, str]:
    """What each policy costs beside WHAM."""
    made = workload(name, cores, load)
    began = process_time()
    chosen = Auto(sizes="known" if known else "unknown").choice(made, cores).name
    seconds = process_time() - began
    policies = {one: Policy.of(one) for one in (NAMES if known else BLIND)} | {"auto": Policy.of(chosen)}
    programs = [simulated(one, made, cores, plain=known) for one in policies.values()]
    batch = jobs // BATCHES
    run = PairedRun(made, cores, programs, stream(made, SEED, batch), sizes_known=known)
    run.extend(batch, BATCHES)
    line = {"workload": name, "n": str(cores), "load": str(load), "sizes": "known" if known else "unknown"}
    for one, costs in zip(policies, run.costs, strict=True):
        found = relative(costs, run.costs[0])
        line[one] = f"{100.0 * found.difference:+.1f} ± {200.0 * found.error:.1f}"
    line |= {"chosen": chosen, "seconds": f"{seconds:.1f}"}
    if known:
        line["bound"] = f"{100.0 * bound_below_wham(made, cores):+.1f}"
    return line


def bound_below_wham(made: Workload, cores: int) -> float:
    """The bound for some jobs, relative to what WHAM costs on these."""
    chunk = stream(made, SEED, BOUND_JOBS).take()
    given = JobList(made, chunk.times, chunk.classes, chunk.sizes)
    wham = simulated(Policy.of("wham"), made, cores, plain=True)
    run = PairedRun(made, cores, [wham], stream(made, SEED, BOUND_JOBS), sizes_known=True)
    run.extend(BOUND_JOBS, 1)
    found = bound_for_jobs(given, cores, seconds=BOUND_SECONDS, threads=1)
    return float(found.bound / np.sum(run.costs) - 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=48_000)
    chosen = parser.parse_args()
    done = set()
    if chosen.file.exists():
        with chosen.file.open(newline="") as lines:
            done = {tuple(line[:4]) for line in csv.reader(lines)}
    for known, rows in ((True, ROWS), (False, BLIND_ROWS)):
        for name, cores, load in rows:
            if (name, str(cores), str(load), "known" if known else "unknown") in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                line = row(name, cores, load, chosen.jobs, known=known)
            with chosen.file.open("a", newline="") as lines:
                csv.writer(lines).writerow(line.values())
            print(line, flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
