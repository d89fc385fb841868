"""Parts of random workloads, as documents: laws of sizes and speedups with ordinary parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

Range = tuple[float, float]


class Setting(NamedTuple):
    """A workload document (or `paper`) on n cores at load ρ."""

    workload: Any
    cores: int
    load: float


def between(rng: Generator, low: float, high: float) -> float:
    """Evenly spread on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def balanced_hyperexponential(mean: float, share: float) -> dict[str, Any]:
    """Two phases that bring the same work; a job is in the first with probability `share`."""
    rates = [2.0 * share / mean, 2.0 * (1.0 - share) / mean]
    return {"kind": "hyperexponential", "probabilities": [share, 1.0 - share], "rates": rates}


def random_speedup(
    rng: Generator, *, exponent: Range, sequential: Range, contention: Range, coherency: Range
) -> dict[str, Any]:
    """A power law, Amdahl's law or the universal scalability law, with parameters out of these ranges."""
    ranges = {
        "power": {"exponent": exponent},
        "amdahl": {"sequential": sequential},
        "usl": {"contention": contention, "coherency": coherency},
    }
    kind = str(rng.choice(list(ranges)))
    return {"kind": kind, **{name: float(rng.uniform(*ends)) for name, ends in ranges[kind].items()}}
