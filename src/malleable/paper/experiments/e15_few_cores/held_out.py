"""Comparisons as cells: the improved policies against what they improve, on named and on held-out workloads.

The policies are named here and not in the arguments of cells: what `paper.precompile` would prepare for them
on the paper's workload is not what these workloads need.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.contracts import Policy
from malleable.model import ConditionWarning
from malleable.paper.experiments.e15_few_cores.systems import WORKLOADS
from malleable.paper.experiments.shared.workloads import (
    ORDINARY,
    Setting,
    between,
    job_class,
    random_speedup,
    sizes_of,
)
from malleable.paper.simulation_cells import compared, described

if TYPE_CHECKING:
    from numpy.random import Generator

HELD_OUT = 150_000
"""First seed of the held-out workloads; no run before this experiment has used it or any above it."""
LAWS = ("exponential", "hyperexponential", "lognormal")


class Pair(NamedTuple):
    """A policy, what it improves, and whether both know sizes."""

    base: str
    policy: str
    sizes: str


PAIRS = {
    "blind": Pair("wham", "wham-improved", "unknown"),
    "sized": Pair("wham-discounted", "wham-fitted", "known"),
    "at ease": Pair("wham", "wham-improved", "known"),
    "trusting": Pair("wham-discounted", "wham-fitted:headroom=1", "known"),
}


def setting(seed: int) -> Setting:
    """Two to six classes of any sort, with one law of sizes, on 3 to 64 cores at a load from 0.3 to 0.95."""
    rng, kind = np.random.default_rng(seed), LAWS[seed % len(LAWS)]
    rows = [_random_class(rng, kind, f"c{i}") for i in range(int(rng.integers(2, 7)))]
    cores = round(between(rng, 3.0, 64.0))
    return Setting({"name": f"random-{seed}", "classes": rows}, cores, float(rng.uniform(0.3, 0.95)))


def _random_class(rng: Generator, kind: str, name: str) -> dict[str, Any]:
    rate, mean = float(rng.uniform(0.2, 2.0)), between(rng, 0.2, 5.0)
    share = float(rng.uniform(0.6, 0.95)) if kind == "hyperexponential" else 0.9
    sigma = float(rng.uniform(0.5, 1.5)) if kind == "lognormal" else 1.0
    speedup = random_speedup(rng, ORDINARY)
    return job_class(name, sizes_of(kind, mean, share, sigma), speedup, between(rng, 0.2, 5.0), rate)


def on_held_out(pair: str, seed: int, jobs: int) -> dict[str, Any]:
    """A pair on a random workload; only a note where the policy steps back to what it is compared with."""
    where = setting(seed)
    note = _note(PAIRS[pair], where)
    return {"note": note} if note else _compared(PAIRS[pair], where, jobs, seed)


def on_named(pair: str, name: str, cores: int, load: float, jobs: int, seed: int) -> dict[str, Any]:
    """A pair on a workload that has a name."""
    return _compared(PAIRS[pair], Setting(WORKLOADS[name][1], cores, load), jobs, seed)


def _note(pair: Pair, where: Setting) -> str:
    """Why the policy steps back; empty if it does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        made = described(where.workload, where.cores, where.load)
        return " ".join(Policy.of(pair.policy).notes(made, where.cores))


def _compared(pair: Pair, where: Setting, jobs: int, seed: int) -> dict[str, Any]:
    found = compared(
        [pair.base, pair.policy],
        where.cores,
        where.load,
        workload=where.workload,
        jobs=jobs,
        seed=seed,
        sizes=pair.sizes,
    )
    return {**found, "note": _note(pair, where)}
