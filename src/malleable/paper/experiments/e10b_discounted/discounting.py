"""Settings on which WHAM with a discounted premium is compared: named workloads, and random ones by seed.

The rule was chosen on the named workloads and on random ones of other seeds (10 000 to 10 049, 20 000 to
20 049, 30 000 to 30 023); the seeds used here were not looked at before it was fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.model import Workload
from malleable.paper.experiments.shared.workloads import (
    ORDINARY,
    Setting,
    between,
    four_classes,
    job_class,
    random_speedup,
    sizes_of,
)
from malleable.policies.wham_discounted import WhamDiscounted
from malleable.theory.optimal_policy import optimum

HELD_OUT = 40_000
"""First seed of the random workloads."""


WORKLOADS: dict[str, Any] = {
    "paper": "paper",
    "four": four_classes("four", "exponential", (0.4, 1.0, 1.5, 3.0)),
    "hyper": four_classes("hyper", "hyperexponential", (0.4, 1.0, 1.5, 3.0)),
    "equal": four_classes("equal", "exponential", (1.0, 1.0, 1.0, 1.0)),
    "two": {
        "name": "two",
        "classes": [
            job_class("cheap", sizes_of("exponential", 1.0), {"kind": "amdahl", "sequential": 0.1}, 0.4),
            job_class("dear", sizes_of("exponential", 1.0), {"kind": "power", "exponent": 0.5}, 3.0),
        ],
    },
}


def random_setting(seed: int) -> Setting:
    """One to four classes of any sort, on 3 to 64 cores, at a load from 0.3 to 0.95."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(int(rng.integers(1, 5))):
        mean = between(rng, 0.3, 3.0)
        kind = str(rng.choice(["exponential", "hyperexponential", "deterministic", "lognormal"]))
        size = sizes_of(kind, mean, float(rng.uniform(0.6, 0.95)))
        rate = float(rng.uniform(0.2, 2.0))
        rows.append(job_class(f"c{i}", size, random_speedup(rng, ORDINARY), between(rng, 0.3, 3.0), rate))
    cores = round(between(rng, 3.0, 64.0))
    return Setting({"name": f"random-{seed}", "classes": rows}, cores, float(rng.uniform(0.3, 0.95)))


def best_blind(workload: Any, cores: int, load: float) -> dict[str, Any]:
    """The least cost of any policy that does not know sizes, by the Markov decision process."""
    found = optimum(Workload.from_dict(workload).at(cores, load), cores, widths="real")
    return {"cost": found.cost, "low": found.low, "warning": found.warning}


def discounts(workload: Any, cores: int, loads: list[float]) -> list[float]:
    """α by the rule while no job waits, at each load."""
    made = Workload.from_dict(workload)
    return [WhamDiscounted().outlook(made.at(cores, load), cores).discount for load in loads]
