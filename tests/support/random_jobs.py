"""Random workloads and lists of jobs for the engine's tests, from a seed: all sorts of mixtures, and ties."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from malleable.model import ConditionWarning, Workload
from malleable.sources import Chunk

SPEEDUPS = ("power", "amdahl", "usl", "table", "rooftop", "linear_power")
SIZES = ("exponential", "hyperexponential", "deterministic")


class Instance(NamedTuple):
    """Jobs on their way to some cores."""

    workload: Workload
    cores: int
    jobs: Chunk


def speedup(rng, kind):
    """A speedup with ordinary parameters."""
    if kind == "power":
        return {"kind": kind, "exponent": rng.uniform(0.1, 0.95)}
    if kind == "amdahl":
        return {"kind": kind, "sequential": rng.uniform(0.02, 0.6)}
    if kind == "usl":
        return {"kind": kind, "contention": rng.uniform(0.02, 0.4), "coherency": rng.uniform(1e-4, 0.05)}
    if kind == "rooftop":
        return {"kind": kind, "cores": rng.uniform(1.0, 12.0)}
    if kind == "linear_power":
        return {"kind": kind, "cores": rng.uniform(1.0, 6.0), "exponent": rng.uniform(0.2, 0.9)}
    widths = np.unique(np.concatenate([[1.0], rng.integers(2, 70, rng.integers(1, 6)).astype(float)]))
    # Gains from below proportional to slightly more than that, so some tables are not concave.
    speeds = np.cumprod([1.0, *(np.diff(np.log(widths)) * rng.uniform(0.1, 1.1, len(widths) - 1) + 1.0)])
    return {"kind": "table", "cores": widths.tolist(), "speedup": speeds.tolist(), "hull": True}


def size(rng, kind):
    """A law of sizes with a mean between 0.3 and 3."""
    mean = float(np.exp(rng.uniform(np.log(0.3), np.log(3.0))))
    if kind == "deterministic":
        return {"kind": kind, "value": mean}
    if kind == "hyperexponential":
        p = rng.uniform(0.1, 0.9)
        return {
            "kind": kind,
            "probabilities": [p, 1.0 - p],
            "rates": [2.0 * p / mean, 2.0 * (1.0 - p) / mean],
        }
    return {"kind": kind, "mean": mean}


def workload(rng, *, kinds=SPEEDUPS, classes=None, sizes=SIZES):
    """One to four classes."""
    count = int(rng.integers(1, 5)) if classes is None else classes
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": rng.uniform(0.2, 2.0)},
            "size": size(rng, rng.choice(sizes)),
            "speedup": speedup(rng, rng.choice(kinds)),
            "holding_cost": float(np.exp(rng.uniform(np.log(0.3), np.log(3.0)))),
        }
        for i in range(count)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload.from_dict({"name": "random", "classes": rows})


def arrivals(rng, described, count, *, ties=True):
    """Jobs of the workload, drawn by hand; with `ties` one in six comes at the time of its predecessor."""
    gaps = rng.exponential(1.0 / described.total_rate, count)
    if ties:
        gaps[rng.random(count) < 1.0 / 6.0] = 0.0
    classes = rng.choice(len(described.classes), count, p=described.rates / described.total_rate)
    sizes = np.array([described.classes[i].size.sample(rng, 1)[0] for i in classes])
    return Chunk(np.cumsum(gaps), classes.astype(np.int64), sizes.reshape(count))


def instance(seed, count=60, *, least_cores=1, most_cores=64, load=None, cores=None, **options):
    """A workload at a load from 0.1 to 1.2 on 1 to 64 cores, and its first jobs."""
    rng = np.random.default_rng(seed)
    described = workload(rng, **options)
    n = round(np.exp(rng.uniform(np.log(least_cores), np.log(most_cores)))) if cores is None else cores
    rho = rng.uniform(0.1, 1.2) if load is None else load
    return Instance(described.at(n, rho), n, arrivals(rng, described.at(n, rho), count))
