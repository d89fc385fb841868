"""Random workloads, each known by its classes, cores and number, so that it can be made again."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from malleable.model import Workload
from malleable.paper.experiments.shared.workloads import WIDE, law_of, random_speedup

SEED = 14
SCVS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Squared coefficients of variation of sizes, one for all classes of a workload."""
LOADS = (0.1, 0.9)
SPREAD = 30.0
"""The largest ratio of two holding costs."""


def random_workload(classes: int, cores: int, number: int) -> Workload:
    """Workload `number` of those with so many classes on so many cores, at a load of its own."""
    rng = np.random.default_rng([SEED, classes, cores, number])
    scv, spread = float(rng.choice(SCVS)), float(SPREAD ** rng.uniform())
    ranks = rng.permutation(np.concatenate([[0.0, 1.0], rng.uniform(size=classes - 2)]))
    rows = [
        {
            "name": f"class-{i + 1}",
            "arrivals": {"kind": "poisson", "rate": float(rng.uniform(0.2, 2.0))},
            "size": law_of(float(np.exp(rng.uniform(-1.5, 1.5))), scv),
            "speedup": random_speedup(rng, WIDE),
            "holding_cost": float(spread**rank),
        }
        for i, rank in enumerate(ranks)
    ]
    made = Workload.from_dict({"name": f"{classes}-{cores}-{number}", "classes": rows})
    return made.at(float(cores), float(rng.uniform(*LOADS)))


def traits(workload: Workload, cores: int) -> dict[str, Any]:
    """What a workload is like, in a few numbers and words."""
    costs = workload.holding_costs
    return {
        "load": workload.load(cores),
        "scv": round(workload.classes[0].size.scv, 6),
        "spread": float(costs.max() / costs.min()),
        "log_spread": log(costs.max() / costs.min()),
        "speedups": " ".join(type(one).__name__.lower() for one in workload.speedups),
    }
