"""The optimal policy beside others on small systems, as cells: exact costs on one truncated chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Policy
from malleable.model import Workload
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import evaluate
from malleable.theory.optimal_policy import Optimum, optimum
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Mapping


def short_and_long(exponent: float = 0.8, ratio: float = 10.0) -> dict[str, Any]:
    """Two classes alike in all but size, each with half of the load."""
    return {
        "name": "short and long jobs",
        "classes": [
            {
                "name": name,
                "arrivals": {"kind": "poisson", "rate": 1.0 / mean},
                "size": {"kind": "exponential", "mean": mean},
                "speedup": {"kind": "power", "exponent": exponent},
                "holding_cost": 1.0,
            }
            for name, mean in (("short", 1.0 / ratio), ("long", 1.0))
        ],
    }


def gaps(
    workload: Mapping[str, Any],
    cores: int,
    load: float,
    *,
    policies: list[str],
    whole: list[str],
    max_states: int,
) -> dict[str, Any]:
    """Costs of the optimum and of policies, with any widths and (if some are named) on whole cores."""
    made = Workload.from_dict(dict(workload)).at(cores, load)
    best = optimum(made, cores, widths="real", max_states=max_states)
    value = {
        "cores": cores,
        "load": load,
        "limit": best.limit,
        "states": len(best.cores),
        "bound": bound(made, cores).bound_capped,
        "real": _beside(made, cores, best, policies),
    }
    if whole:
        integer = optimum(made, cores, best.limit, max_states=max_states)
        value["whole"] = _beside(made, cores, integer, whole)
    return value


def _beside(made: Workload, cores: int, best: Optimum, policies: list[str]) -> dict[str, Any]:
    """An optimum, and what policies cost on its chain; each with the share of arrivals that find it full."""
    found = {p: evaluate(made, cores, class_speeds(Policy.of(p), made, cores), best.limit) for p in policies}
    return {
        "optimum": best.cost,
        "low": best.low,
        "high": best.high,
        "lost": best.mass_at_limit,
        "policies": {p: {"cost": one.cost, "lost": one.mass_at_limit} for p, one in found.items()},
    }


def choices(workload: Mapping[str, Any], cores: int, load: float, *, most: int) -> dict[str, Any]:
    """Cores of the first of two classes, with up to `most` jobs of each: the optimum's and WHAM's."""
    made = Workload.from_dict(dict(workload)).at(cores, load)
    best = optimum(made, cores, widths="real")
    wham = class_speeds(Policy.of("wham"), made, cores)
    counts = np.array([[a, b] for b in range(most + 1) for a in range(most + 1)])
    optimal = best.cores[best.lattice.index(counts), 0]
    # WHAM's speeds tell its widths: s(k) = k^p, and the share of a core where jobs outnumber cores.
    speed, exponent = wham(counts.astype(float))[:, 0], made.speedups[0].parameters()["exponent"]
    widths = np.where(speed > 1.0, speed ** (1.0 / exponent), speed)
    shape = (most + 1, most + 1)
    return {
        "cores": cores,
        "load": load,
        "optimum": optimal.reshape(shape).tolist(),
        "wham": (counts[:, 0] * widths).reshape(shape).tolist(),
    }
