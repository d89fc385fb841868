"""What it costs that users' rules are checked: the same rules, compiled with and without checks.

Without checks they are what they would be inside the package. Fastest of some stretches, in turn, in one run.
"""

from benchmarks.bench_engine import LENGTH, STRETCHES, rate, stretch
from malleable.catalog.user_files import OWN
from malleable.contracts import Policy
from malleable.engine.rule_interface import REMAINING, WEIGHT, ClassProgram
from malleable.engine.run import Run
from malleable.model import paper_workload
from malleable.policies.equi import Equi
from malleable.simulation import program
from malleable.sources import stream

CORES, LOAD = 64, 0.25


def equal(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = cores / len(out)


def by_weight(jobs, cores, table, out):
    total = jobs[:, WEIGHT].sum()
    for j in range(len(out)):
        out[j] = cores * jobs[j, WEIGHT] / total


def by_rank(jobs, cores, table, out):
    for j in range(len(out)):
        before = 0
        for i in range(len(out)):
            if jobs[i, REMAINING] < jobs[j, REMAINING]:
                before += 1
        out[j] = 2.0 * cores * (len(out) - before) / (len(out) * (len(out) + 1))


def equal_by_class(counts, cores, table, out):
    for i in range(len(out)):
        out[i] = cores / counts.sum()


for share in (equal, by_weight, by_rank):
    share.sharing = True  # with many jobs, some get a part of a core


def trusted(rule):
    """A copy of the rule that says it is ours."""
    copy = type(rule)(rule.__code__, rule.__globals__, rule.__name__)
    copy.__dict__.update(rule.__dict__)
    copy.__module__ = f"{OWN}.policies.{rule.__name__}"
    return copy


def fastest(made) -> list[float]:
    workload = paper_workload(CORES, LOAD)
    runs = [Run(workload, CORES, one, jobs=LENGTH, source=stream(workload, 0), name="user") for one in made]
    steps = [stretch(run) for run in runs]
    found = [[rate(run, step) for run, step in zip(runs, steps, strict=True)] for _ in range(2 * STRETCHES)]
    return [max(rates) for rates in zip(*found, strict=True)]


def run() -> list[dict]:
    workload = paper_workload(CORES, LOAD)
    rows = []
    for rule in (equal, by_weight, by_rank, equal_by_class):
        if rule is equal_by_class:
            like = program(Equi(), workload, CORES)
            made = [ClassProgram(one, like.table, like.discipline) for one in (rule, trusted(rule))]
        else:
            made = [program(Policy.of(one), workload, CORES) for one in (rule, trusted(rule))]
        checked, plain = fastest(made)
        rows.append({"rule": rule.__name__, "checked": checked, "unchecked": plain, "ratio": checked / plain})
    return rows
