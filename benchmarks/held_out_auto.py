"""`auto` against all other policies on random workloads that nothing was chosen on.

Two to six classes on 2 to 64 cores at loads from .3 to .95; Amdahl's law with sequential parts from .01,
power laws down to k^.3, USL, rooftops and tables; weights over two decades; sizes with squared coefficients
of variation from .5 to 20. `auto` chooses as users have it choose; then all policies get the same fresh jobs,
and those that are far behind after a quarter of these leave. `python -m benchmarks.held_out_auto FILE --count
300` appends a line per workload to FILE, skips those that it has, and prints what they say together. `--sizes
unknown` hides the sizes. `--wrong low`, `high` and `law` tell `auto` a load 20 % too low or too high, or
exponential sizes of the same means.
"""

import argparse
import csv
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from malleable.contracts import Policy
from malleable.distributions.exponential import Exponential
from malleable.model import Workload
from malleable.paper.experiments.shared.workloads import balanced_hyperexponential, between, random_speedup
from malleable.policies.auto import Auto
from malleable.policies.base.asking import simulated
from malleable.policies.base.paired_trial import PairedRun, Trial, relative
from malleable.sources import stream

FRESH = 26_000_000
"""The first seed; none of those that follow was used in design."""
SMOOTH = {
    "power": {"exponent": (0.3, 0.95)},
    "amdahl": {"sequential": (0.01, 0.5)},
    "usl": {"contention": (0.01, 0.3), "coherency": (0.0, 0.01)},
}
OTHERS = {
    "known": ("wham", "wham-discounted", "smartfill", "clearing", "hesrpt", "greedy", "equi", "srpt", "hell"),
    "unknown": ("wham", "wham-discounted", "wham-improved", "smartfill", "clearing", "greedy", "equi"),
}
"""WHAM is the yardstick, and comes first."""
FITTED, EVERY = "wham-fitted:trial=false", 4
"""Takes longest to prepare, and so is among the others with known sizes on every fourth workload."""
BATCHES, EARLY = 32, 8
"""Batches of a run, and those after which policies leave that are far behind."""
FAR, FAR_ERRORS = 0.05, 5.0
"""The share of the cost, and the standard errors, by which these are behind `auto`."""
WITHIN = 0.01


class Row(NamedTuple):
    """What came of one workload; differences are shares of WHAM's cost."""

    seed: int
    sizes: str
    wrong: str
    classes: int
    cores: int
    load: float
    jobs: int
    chosen: str
    seconds: float
    """Of the processor, for the choice."""
    difference: float
    error: float
    best: str
    """The best policy of all on these jobs."""
    behind: float
    behind_error: float
    """What `auto` costs more than that."""


def sizes(rng: np.random.Generator) -> dict[str, Any]:
    """A law of sizes."""
    mean, scv = between(rng, 0.2, 5.0), between(rng, 0.5, 20.0)
    if scv < 1.0:
        return {"kind": "gamma", "mean": mean, "shape": 1.0 / scv}
    kind = str(rng.choice(["exponential", "hyperexponential", "lognormal", "lognormal"]))
    if kind == "hyperexponential":
        share = 0.5 * (1.0 + np.sqrt((scv - 1.0) / (scv + 1.0)))
        return balanced_hyperexponential(mean, float(share))
    if kind == "lognormal":
        return {"kind": kind, "mean": mean, "sigma": float(np.sqrt(np.log1p(scv)))}
    return {"kind": kind, "mean": mean}


def speedup(rng: np.random.Generator, cores: int) -> dict[str, Any]:
    """A speedup; one in five is a rooftop or a table."""
    if rng.random() < 0.8:
        return random_speedup(rng, SMOOTH)
    if rng.random() < 0.5:
        return {"kind": "rooftop", "cores": float(rng.integers(1, cores + 1))}
    widths = np.unique(np.rint(np.geomspace(1.0, cores, 6)))
    speeds = widths ** float(rng.uniform(0.3, 0.95))
    return {"kind": "table", "cores": widths.tolist(), "speedup": speeds.tolist()}


def setting(seed: int) -> tuple[Workload, int, float]:
    """A random workload, number of cores and load."""
    rng = np.random.default_rng(FRESH + seed)
    cores, load = round(between(rng, 2.0, 64.0)), float(rng.uniform(0.3, 0.95))
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": float(rng.uniform(0.2, 2.0))},
            "size": sizes(rng),
            "speedup": speedup(rng, cores),
            "holding_cost": between(rng, 0.1, 10.0),
        }
        for i in range(int(rng.integers(2, 7)))
    ]
    return Workload.from_dict({"name": f"held-out-{seed}", "classes": rows}).at(cores, load), cores, load


def told(workload: Workload, cores: int, load: float, wrong: str) -> Workload:
    """What `auto` is told of the workload."""
    if wrong in {"low", "high"}:
        return workload.at(cores, min(load * (0.8 if wrong == "low" else 1.2), 0.97))
    if wrong == "law":
        classes = tuple(replace(c, size=Exponential(1.0 / c.size.mean)) for c in workload.classes)
        return replace(workload, classes=classes)
    return workload


def compared(seed: int, known: str, wrong: str, jobs: int) -> Row:
    """All policies on one workload."""
    workload, cores, load = setting(seed)
    described = told(workload, cores, load, wrong)
    began = process_time()
    found = Auto(sizes=known).choice(described, cores)
    seconds = process_time() - began
    others = (*OTHERS[known], FITTED) if known == "known" and seed % EVERY == 0 else OTHERS[known]
    names, policies = [*others, "auto"], [*map(Policy.of, others), Policy.of(found.name)]
    programs = [simulated(one, workload, cores, plain=known == "known") for one in policies[:-1]]
    programs.append(simulated(policies[-1], described, cores, plain=known == "known"))
    batch, auto = jobs // BATCHES, len(names) - 1
    run = PairedRun(
        workload, cores, programs, stream(workload, FRESH + seed, batch), sizes_known=known == "known"
    )
    run.extend(batch, EARLY)
    racing = list(range(len(names)))
    for number in range(1, auto):
        by = relative(run.costs_of(number), run.costs_of(auto))
        if by.difference > max(FAR, FAR_ERRORS * by.error):
            run.leave(number)
            racing.remove(number)
    run.extend(batch, BATCHES)
    costs = {number: run.costs_of(number).reshape(BATCHES // 2, 2).sum(axis=1) for number in racing}
    best = min(racing, key=lambda number: (costs[number].sum(), number != auto))
    base = costs[0].sum()
    gain, behind = relative(costs[auto], costs[0]), relative(costs[auto], costs[best])
    scale = costs[best].sum() / base
    return Row(
        seed, known, wrong, len(workload.classes), cores, round(load, 4), jobs, found.name,
        round(seconds, 2), *gain, names[best], behind.difference * scale, behind.error * scale,
    )  # fmt: skip


def read(path: Path) -> list[Row]:
    """The lines that there are."""
    if not path.exists():
        return []
    with path.open(newline="") as lines:
        return [
            Row(*(kind(value) for kind, value in zip(Row.__annotations__.values(), line, strict=True)))
            for line in csv.reader(lines)
        ]


def say(rows: list[Row]) -> None:
    """The mean by number of cores, how far from the best of all, and the worst."""
    for low, high in ((2, 64), (2, 4), (5, 16), (17, 64)):
        some = [row for row in rows if low <= row.cores <= high]
        if some:
            mean = np.mean([row.difference for row in some])
            behind = np.mean([row.behind for row in some])
            print(f"n {low} to {high}: {len(some)} workloads, mean {mean:+.2%}, behind the best {behind:.2%}")
    far = [row for row in rows if row.behind > WITHIN]
    sure = [row for row in far if row.behind - 2.0 * row.behind_error > WITHIN]
    print(f"{len(far)} farther than {WITHIN:.0%} from the best, {len(sure)} of them by two standard errors")
    above = [row for row in rows if row.difference > 2.0 * row.error and row.difference > 0.0]
    print(f"{len(above)} above WHAM by two standard errors")
    print(
        f"choice: mean {np.mean([r.seconds for r in rows]):.1f} s, most {max(r.seconds for r in rows):.1f} s"
    )
    for row in sorted(rows, key=lambda row: -row.behind)[:8]:
        trial = Trial(row.difference, row.error)
        print(
            f"  {row.seed} n={row.cores} load {row.load:.2f}: {row.chosen} {trial.difference:+.2%}"
            f" ± {trial.error:.2%}, {row.best} better by {row.behind:.2%} ± {row.behind_error:.2%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=32_000)
    parser.add_argument("--sizes", choices=["known", "unknown"], default="known")
    parser.add_argument("--wrong", choices=["no", "low", "high", "law"], default="no")
    chosen = parser.parse_args()
    rows = [row for row in read(chosen.file) if (row.sizes, row.wrong) == (chosen.sizes, chosen.wrong)]
    done = {row.seed for row in rows}
    for seed in range(chosen.first, chosen.first + chosen.count):
        if seed not in done:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(compared(seed, chosen.sizes, chosen.wrong, chosen.jobs))
            with chosen.file.open("a", newline="") as lines:
                csv.writer(lines).writerow(rows[-1])
    say(rows)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
