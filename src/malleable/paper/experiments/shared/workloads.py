"""Workloads, and parts of workloads, that several experiments have in common, as documents."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.model import load_workload

if TYPE_CHECKING:
    from numpy.random import Generator

Ranges = Mapping[str, Mapping[str, tuple[float, float]]]
"""Ranges of the parameters of each family of speedups."""
WIDE: Ranges = {
    "power": {"exponent": (0.1, 0.95)},
    "amdahl": {"sequential": (0.02, 0.6)},
    "usl": {"contention": (0.02, 0.4), "coherency": (1e-4, 0.02)},
}
ORDINARY: Ranges = {
    "power": {"exponent": (0.15, 0.9)},
    "amdahl": {"sequential": (0.03, 0.5)},
    "usl": {"contention": (0.02, 0.3), "coherency": (1e-4, 0.02)},
}


class Setting(NamedTuple):
    """A workload document (or `paper`) on n cores at load ρ."""

    workload: Any
    cores: int
    load: float


def key_of(what: str, workload: str, cores: int, load: float) -> str:
    """Name of a cell on a workload that has a name."""
    return f"{what}-{workload}-{cores}-{load:g}"


def exponential(*names: str) -> dict[str, Any]:
    """Classes of the paper's workload (all, or those named) with exponential sizes of the same means."""
    paper = load_workload("paper")
    rows = [c.to_dict() for c in paper.classes if not names or c.name in names]
    for row in rows:
        mean = paper.classes[paper.index(row["name"])].size.mean
        row["size"] = {"kind": "exponential", "mean": mean}
    return {"name": "paper, exponential sizes", "classes": rows}


def job_class(
    name: str, size: dict[str, Any], speedup: dict[str, Any], cost: float, rate: float = 1.0
) -> dict[str, Any]:
    """A class with Poisson arrivals."""
    arrivals = {"kind": "poisson", "rate": rate}
    return {"name": name, "arrivals": arrivals, "size": size, "speedup": speedup, "holding_cost": cost}


def sizes_of(kind: str, mean: float, share: float = 0.9, sigma: float = 1.0) -> dict[str, Any]:
    """A law of sizes by its kind and mean."""
    if kind == "hyperexponential":
        return balanced_hyperexponential(mean, share)
    if kind == "lognormal":
        return {"kind": kind, "mean": mean, "sigma": sigma}
    return {"kind": kind, "value" if kind == "deterministic" else "mean": mean}


def four_classes(name: str, kind: str, costs: tuple[float, ...]) -> dict[str, Any]:
    """Two power and two Amdahl classes of mean size about 1."""
    means = (1.0, 0.6, 1.5, 0.9)
    speedups = (
        {"kind": "power", "exponent": 0.4},
        {"kind": "power", "exponent": 0.8},
        {"kind": "amdahl", "sequential": 0.1},
        {"kind": "amdahl", "sequential": 0.3},
    )
    rows = zip("abcd", means, speedups, costs, strict=True)
    return {
        "name": name,
        "classes": [job_class(c, sizes_of(kind, mean), s, cost) for c, mean, s, cost in rows],
    }


def short_and_long(exponent: float = 0.8, ratio: float = 10.0) -> dict[str, Any]:
    """Two classes alike in all but size, each with half of the load."""
    speedup = {"kind": "power", "exponent": exponent}
    rows = (("short", 1.0 / ratio), ("long", 1.0))
    classes = [
        job_class(name, sizes_of("exponential", mean), speedup, 1.0, 1.0 / mean) for name, mean in rows
    ]
    return {"name": "short and long jobs", "classes": classes}


def between(rng: Generator, low: float, high: float) -> float:
    """Evenly spread on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def balanced_hyperexponential(mean: float, share: float) -> dict[str, Any]:
    """Two phases that bring the same work; a job is in the first with probability `share`."""
    rates = [2.0 * share / mean, 2.0 * (1.0 - share) / mean]
    return {"kind": "hyperexponential", "probabilities": [share, 1.0 - share], "rates": rates}


def law_of(mean: float, scv: float) -> dict[str, Any]:
    """A law of that mean and variability: constant, Erlang, exponential or balanced hyperexponential."""
    if scv == 0.0:
        return {"kind": "deterministic", "value": mean}
    if scv < 1.0:
        return {"kind": "erlang", "stages": round(1.0 / scv), "mean": mean}
    if scv == 1.0:
        return {"kind": "exponential", "mean": mean}
    return balanced_hyperexponential(mean, 0.5 * (1.0 + sqrt((scv - 1.0) / (scv + 1.0))))


def random_speedup(rng: Generator, ranges: Ranges) -> dict[str, Any]:
    """A power law, Amdahl's law or the universal scalability law, with parameters out of these ranges."""
    kind = str(rng.choice(list(ranges)))
    return {"kind": kind, **{name: float(rng.uniform(*ends)) for name, ends in ranges[kind].items()}}
