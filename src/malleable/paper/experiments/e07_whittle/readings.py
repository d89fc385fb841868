"""What figures and verdicts of e07_whittle both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.experiments.e07_whittle.cells import LOADS
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate


def gap(arm: Any, discount: int) -> tuple[float, int]:
    """The largest relative difference of widths from the limit, and at how many points the job waits."""
    widths, limit = np.array(arm["widths"][discount]), np.array(arm["limit"])
    served = widths > 0.0
    off = np.abs(widths / limit - 1.0)
    return float(off[served].max(initial=0.0)), int((~served).sum())


def by_mode(states: list[Any], crowded: bool, key: str) -> list[float]:
    """The largest value over the states of a mode, by discount."""
    mine = np.array([state[key] for state in states if state["crowded"] == crowded], dtype=float)
    return [float(v) for v in mine.max(axis=0)]


def differences_of(load: float, values: Values) -> tuple[Estimate, list[Estimate]]:
    """WHAM's cost, and the paired differences from it by discount."""
    found = values[f"simulated-{load}"]
    apart = [read_interval(found["differences"][f"whittle:alpha={alpha}"]) for alpha in LOADS[load]]
    return read_interval(found["results"]["wham"]["cost"]), apart
