"""What is computed for e01_speedups, and on which settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.contracts import Speedup
from malleable.paper.contracts import Cell, Effort

EXAMPLES: dict[str, dict[str, Any]] = {
    "k^0.3 (class 1)": {"kind": "power", "exponent": 0.3},
    "√k (class 2)": {"kind": "power", "exponent": 0.5},
    "Amdahl, q = 0.2 (class 3)": {"kind": "amdahl", "sequential": 0.2},
    "Amdahl, q = 0.02": {"kind": "amdahl", "sequential": 0.02},
    "linear": {"kind": "rooftop", "cores": 64.0},
}
"""The three of the paper's workload, one that scales well, and the diagonal."""
WIDEST = 64


def cells(effort: Effort) -> list[Cell]:  # noqa: ARG001 - nothing to choose
    """One cell a function: its speed at widths from 1 on."""
    return [Cell(f"example-{i}", curve, {"speedup": e}) for i, e in enumerate(EXAMPLES.values())]


def curve(speedup: dict[str, Any]) -> dict[str, Any]:
    """Widths and speeds."""
    k = np.unique(np.concatenate([np.linspace(1.0, 4.0, 31), np.geomspace(4.0, WIDEST, 61)]))
    return {"k": k.tolist(), "s": np.asarray(Speedup.of(speedup)(k)).tolist()}
