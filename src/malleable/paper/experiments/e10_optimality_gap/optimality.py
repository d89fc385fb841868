"""Short and long jobs, and what the optimum does with them that WHAM does not, as cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Policy
from malleable.model import Workload
from malleable.theory.class_speeds import class_speeds
from malleable.theory.optimal_policy import optimum

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
