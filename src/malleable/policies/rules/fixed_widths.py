"""Fixed widths: slots that are as wide for every job of a class, on class counts and on single jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS
from malleable.engine.speedup_table import encode
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup


def fixed_table(speedups: Sequence[Speedup], widths: FloatArray, cores: float) -> FloatArray:
    """The table of `fixed_rule`."""
    return np.concatenate([encode(speedups, widest=max(cores, 2.0)), widths])


def fixed_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:  # noqa: ARG001
    """The widths that stand in the table, whoever is there."""
    own = int(table[1])
    for i in range(len(counts)):
        out[i] = table[own + i]


def fixed_width(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Widths by arrival; table: shared or not, then width and slots of each class."""
    out[:] = 0.0
    shared, classes = table[0] == 1.0, (table.shape[0] - 1) // 2
    slots = table[1 + classes :].copy()
    spare = cores
    for j in range(jobs.shape[0]):
        i = int(jobs[j, CLASS])
        width = table[1 + i]
        if shared and width > spare + DUST:
            break
        # Slots that fit the whole machine may not fit what is left of it.
        if slots[i] >= 1.0 and width <= spare + DUST:
            slots[i] -= 1.0
            out[j] = width
            spare -= width


def pools_table(widths: FloatArray, slots: FloatArray, *, shared: bool = False) -> FloatArray:
    """The table of the rule."""
    return np.concatenate([[float(shared)], widths, slots])
