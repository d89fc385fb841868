"""Settings on which WHAM with a discounted premium is compared: named workloads, and random ones by seed.

The rule was chosen on the named workloads and on random ones of other seeds (10 000 to 10 049, 20 000 to
20 049, 30 000 to 30 023); the seeds used here were not looked at before it was fixed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from malleable.model import Workload
from malleable.paper.experiments.shared.random_classes import balanced_hyperexponential, random_speedup
from malleable.policies.wham_discounted import WhamDiscounted
from malleable.theory.optimal_policy import optimum

HELD_OUT = 40_000
"""First seed of the random workloads."""
SPEEDUPS = {
    "exponent": (0.15, 0.9),
    "sequential": (0.03, 0.5),
    "contention": (0.02, 0.3),
    "coherency": (1e-4, 0.02),
}
"""Parameters of the speedups of random workloads."""


class Setting(NamedTuple):
    """A workload document (or `paper`) on n cores at load ρ."""

    workload: Any
    cores: int
    load: float


def _class(name: str, size: dict[str, Any], speedup: dict[str, Any], cost: float, rate: float = 1.0) -> Any:
    arrivals = {"kind": "poisson", "rate": rate}
    return {"name": name, "arrivals": arrivals, "size": size, "speedup": speedup, "holding_cost": cost}


def _sizes(kind: str, mean: float, share: float = 0.9) -> dict[str, Any]:
    """A law of sizes."""
    if kind == "hyperexponential":
        return balanced_hyperexponential(mean, share)
    if kind == "lognormal":
        return {"kind": kind, "mean": mean, "sigma": 1.0}
    return {"kind": kind, "value" if kind == "deterministic" else "mean": mean}


def _four(name: str, kind: str, costs: tuple[float, ...]) -> dict[str, Any]:
    """Two power and two Amdahl classes of mean size about 1."""
    means = (1.0, 0.6, 1.5, 0.9)
    speedups = (
        {"kind": "power", "exponent": 0.4},
        {"kind": "power", "exponent": 0.8},
        {"kind": "amdahl", "sequential": 0.1},
        {"kind": "amdahl", "sequential": 0.3},
    )
    rows = zip("abcd", means, speedups, costs, strict=True)
    return {"name": name, "classes": [_class(c, _sizes(kind, mean), s, cost) for c, mean, s, cost in rows]}


WORKLOADS: dict[str, Any] = {
    "paper": "paper",
    "four": _four("four", "exponential", (0.4, 1.0, 1.5, 3.0)),
    "hyper": _four("hyper", "hyperexponential", (0.4, 1.0, 1.5, 3.0)),
    "equal": _four("equal", "exponential", (1.0, 1.0, 1.0, 1.0)),
    "two": {
        "name": "two",
        "classes": [
            _class("cheap", _sizes("exponential", 1.0), {"kind": "amdahl", "sequential": 0.1}, 0.4),
            _class("dear", _sizes("exponential", 1.0), {"kind": "power", "exponent": 0.5}, 3.0),
        ],
    },
}


def random_setting(seed: int) -> Setting:
    """One to four classes of any sort, on 3 to 64 cores, at a load from 0.3 to 0.95."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(int(rng.integers(1, 5))):
        mean = _between(rng, 0.3, 3.0)
        kind = str(rng.choice(["exponential", "hyperexponential", "deterministic", "lognormal"]))
        size = _sizes(kind, mean, float(rng.uniform(0.6, 0.95)))
        rate = float(rng.uniform(0.2, 2.0))
        rows.append(_class(f"c{i}", size, random_speedup(rng, **SPEEDUPS), _between(rng, 0.3, 3.0), rate))
    cores = round(_between(rng, 3.0, 64.0))
    return Setting({"name": f"random-{seed}", "classes": rows}, cores, float(rng.uniform(0.3, 0.95)))


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Evenly spread on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def best_blind(workload: Any, cores: int, load: float) -> dict[str, Any]:
    """The least cost of any policy that does not know sizes, by the Markov decision process."""
    found = optimum(Workload.from_dict(workload).at(cores, load), cores, widths="real")
    return {"cost": found.cost, "low": found.low, "warning": found.warning}


def discounts(workload: Any, cores: int, loads: list[float]) -> list[float]:
    """α by the rule while no job waits, at each load."""
    made = Workload.from_dict(workload)
    return [WhamDiscounted().outlook(made.at(cores, load), cores).discount for load in loads]
