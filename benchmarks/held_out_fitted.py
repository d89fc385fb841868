"""`wham-fitted` against `wham-discounted` on random workloads that nothing was chosen on.

Two to six classes, n from 3 to 64, load from .3 to .95; sizes exponential, hyperexponential or lognormal;
power, Amdahl and USL speedups. Each workload is fitted as users have it fitted; then both policies are
simulated on the same fresh jobs. `python -m benchmarks.held_out_fitted FILE --count 200` appends a line per
workload to FILE, skips those that it has, and prints what they say together. `--wrong` fits to what is not
true: a load 20 % too low or too high, or exponential sizes of the same means.
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
from scipy import stats

from malleable.distributions.exponential import Exponential
from malleable.engine.kernels.class_kernel import AREA
from malleable.engine.machines import machine
from malleable.engine.rule_interface import JobProgram
from malleable.model import Workload
from malleable.paper.experiments.shared.workloads import balanced_hyperexponential, between, random_speedup
from malleable.policies.improved.size_value import fitted_rule
from malleable.policies.wham_discounted import WhamDiscounted
from malleable.policies.wham_fitted import WhamFitted
from malleable.sources import stream

FRESH = 7_000_000
"""The first seed; none of those that follow was used in design."""
SPEEDUPS = {
    "power": {"exponent": (0.2, 0.9)},
    "amdahl": {"sequential": (0.02, 0.5)},
    "usl": {"contention": (0.01, 0.3), "coherency": (0.0, 0.01)},
}
BATCHES = 32
TOLERATED = 0.0005
"""A loss below this share of the cost is of no account."""


class Row(NamedTuple):
    """What came of one workload."""

    seed: int
    wrong: str
    classes: int
    cores: int
    load: float
    laws: str
    jobs: int
    difference: float
    error: float
    fitted: int
    seconds: float
    """Of the processor, for the fit with its trial."""


def sizes(rng: np.random.Generator) -> dict[str, Any]:
    """A law of sizes."""
    mean, kind = between(rng, 0.2, 5.0), str(rng.choice(["exponential", "hyperexponential", "lognormal"]))
    if kind == "hyperexponential":
        return balanced_hyperexponential(mean, float(rng.uniform(0.6, 0.95)))
    return {"kind": kind, "mean": mean} | ({"sigma": 1.0} if kind == "lognormal" else {})


def setting(seed: int) -> tuple[Workload, int, float]:
    """A random workload, number of cores and load."""
    rng = np.random.default_rng(FRESH + seed)
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": float(rng.uniform(0.2, 2.0))},
            "size": sizes(rng),
            "speedup": random_speedup(rng, SPEEDUPS),
            "holding_cost": between(rng, 0.3, 3.0),
        }
        for i in range(int(rng.integers(2, 7)))
    ]
    cores, load = round(between(rng, 3.0, 64.0)), float(rng.uniform(0.3, 0.95))
    return Workload.from_dict({"name": f"held-out-{seed}", "classes": rows}).at(cores, load), cores, load


def program(workload: Workload, cores: int, load: float, wrong: str) -> tuple[JobProgram, bool]:
    """The policy as fitted, perhaps to what is not true, and whether it did not step back."""
    policy = WhamFitted()
    if wrong in {"low", "high"}:
        policy = WhamFitted(load=min(load * (0.8 if wrong == "low" else 1.2), 0.97))
    fitted_to = workload
    if wrong == "law":
        classes = tuple(replace(c, size=Exponential(1.0 / c.size.mean)) for c in workload.classes)
        fitted_to = replace(workload, classes=classes)
    found = policy.improvement(fitted_to, cores)
    base = WhamDiscounted().program(workload, cores)
    if found.numbers is None:
        return base, False
    return JobProgram(fitted_rule, np.concatenate([base.table, found.numbers])), True


def compared(seed: int, wrong: str, jobs: int) -> Row:
    """The relative difference of the costs on one workload."""
    workload, cores, load = setting(seed)
    began = process_time()
    rule, fitted = program(workload, cores, load, wrong)
    seconds = process_time() - began
    difference = error = 0.0
    if fitted:
        machines = (
            machine(workload, cores, rule),
            machine(workload, cores, WhamDiscounted().program(workload, cores)),
        )
        source = stream(workload, FRESH + seed, jobs // BATCHES)
        costs = np.empty((BATCHES, 2))
        for batch in range(BATCHES):
            chunk = source.take()
            for column, one in enumerate(machines):
                one.feed(chunk, 0, chunk.size)
                costs[batch, column] = one.collect()[0][AREA] @ workload.holding_costs
        total, paired = costs[:, 1].sum(), costs[:, 0] - costs[:, 1]
        difference, error = paired.sum() / total, paired.std(ddof=1) * np.sqrt(BATCHES) / total
    laws = "".join(c.size.kind[0] for c in workload.classes)
    return Row(
        seed, wrong, len(workload.classes), cores, round(load, 4), laws, jobs,
        float(difference), float(error), int(fitted), round(seconds, 2),
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
    """Mean, worst and how many are worse by more than chance, adjusted for their number."""
    fitted = [row for row in rows if row.fitted]
    mean = np.mean([row.difference for row in rows])
    error = np.sqrt(np.sum([row.error**2 for row in rows])) / len(rows)
    print(f"{len(rows)} workloads, {len(fitted)} fitted: mean {mean:+.3%} ± {1.96 * error:.3%}")
    far = stats.t.ppf(1.0 - 0.05 / len(rows), BATCHES - 1)
    worse = [row for row in fitted if row.difference - far * row.error > TOLERATED]
    print(f"{len(worse)} worse than +{TOLERATED:.2%} with 95 % confidence for all together")
    for row in sorted(fitted, key=lambda row: -row.difference)[:5]:
        print(f"  {row.difference:+.3%} ± {1.96 * row.error:.3%} (adjusted ± {far * row.error:.3%}) {row}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=64_000)
    parser.add_argument("--wrong", choices=["no", "low", "high", "law"], default="no")
    chosen = parser.parse_args()
    rows = [row for row in read(chosen.file) if row.wrong == chosen.wrong]
    done = {row.seed for row in rows}
    for seed in range(chosen.first, chosen.first + chosen.count):
        if seed not in done:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(compared(seed, chosen.wrong, chosen.jobs))
            with chosen.file.open("a", newline="") as lines:
                csv.writer(lines).writerow(rows[-1])
    say(rows)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
