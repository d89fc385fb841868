"""What the optimum does with short and long jobs that WHAM does not, as cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Policy
from malleable.model import Workload
from malleable.theory.class_speeds import class_speeds
from malleable.theory.optimal_policy import optimum

if TYPE_CHECKING:
    from collections.abc import Mapping


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
