"""Examples of every speedup family; a family without one fails its conformance tests."""

from __future__ import annotations

import numpy as np
import pytest

from malleable import catalog
from support import strategies as gen

KINDS = sorted(catalog.kinds("speedups"))

EXAMPLES = {
    "power": [{"exponent": 0.3}, {"exponent": 0.97}, {"exponent": 1e-3}],
    "amdahl": [{"sequential": 0.2}, {"sequential": 0.999}, {"sequential": 1e-4}],
    "usl": [
        {"contention": 0.05, "coherency": 0.001},
        {"contention": 0.2, "coherency": 0.0},
        {"contention": 0.0, "coherency": 0.01},
        {"contention": 0.7, "coherency": 0.9},
        {"contention": 0.1, "coherency": 1e-80},
    ],
    "rooftop": [{"cores": 4}, {"cores": 2.5}, {"cores": 1}],
    "linear_power": [{"cores": 4, "exponent": 0.5}, {"cores": 1, "exponent": 0.5}],
    "table": [
        {"cores": [1], "speedup": [1]},
        {"cores": [1, 2, 4, 8], "speedup": [1, 1.8, 3.0, 4.2]},
        {"cores": [1, 2, 4, 8], "speedup": [1, 1.0, 1.0, 1.0]},
        {"cores": [1, 2, 4, 8], "speedup": [1, 0.9, 0.8, 0.7], "hull": True},
        {"cores": [1, 2, 4, 8], "speedup": [1, 1.9, 1.5, 2.5], "hull": True},
        {"cores": [1, 2, 3], "speedup": [1, 2.5, 2.6]},
        {"cores": [1, 2, 4, 6], "speedup": [1, 1, 6, 6.5]},
        {"cores": [1, 2.5, 7], "speedup": [1, 2.5, 4]},
    ],
    "custom": [{"function": f, "limit": 512} for f in gen.FUNCTIONS.values()],
}


def made(kind, parameters):
    return catalog.find("speedups", kind).from_parameters(parameters)


def all_examples(*kinds):
    return [
        pytest.param(kind, keys, id=f"{kind}-{i}")
        for kind in (kinds or KINDS)
        for i, keys in enumerate(EXAMPLES.get(kind, [None]))
    ]


def fine_grid(speedup, extra=()):
    """Widths from 1 to the peak (or very far), close together, with the given ones among them."""
    far = min(float(speedup.peak), 1e6)
    grid = np.concatenate([np.geomspace(1.0, far, 1500), np.linspace(1.0, min(far, 40.0), 1000), extra])
    return np.unique(grid[(grid >= 1.0) & (grid <= far)])
