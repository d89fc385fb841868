"""Pools: slots of fixed width that belong to one class. How wide they are, and how busy.

A pool is a queue of its own. It may be nearly full on a machine that is not, and then it is the pool that
says how long queues get and how slowly they forget.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.enforcement import refusal
from malleable.engine.rule_interface import (
    COUNTS,
    NEGATIVE,
    NOT_A_NUMBER,
    OVER_ALLOCATED,
    POOLS,
    TOLERANCE,
    Program,
)
from malleable.errors import PolicyError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


def pool_widths(program: Program, cores: float, classes: int) -> FloatArray:
    """Cores of a slot of each class, checked: a pool's rule has only one answer."""
    slots, widths = np.asarray(program.slots), np.zeros(classes)
    if slots.shape != (classes,) or not all(n >= 0 and n == int(n) for n in program.slots):
        raise PolicyError(
            f"the policy has the slots {program.slots!r:.60} for {classes} classes",
            "give a whole number of slots for each class",
        )
    program.rule(np.zeros(classes), cores, program.table.copy(), widths)
    total = float(slots[slots > 0] @ widths[slots > 0])
    if not (total <= cores * (1.0 + TOLERANCE) and (widths >= 0.0).all()):
        wrong = NOT_A_NUMBER if np.isnan(widths).any() else NEGATIVE
        status = wrong if not (widths >= 0.0).all() else OVER_ALLOCATED
        shown = ", ".join(f"{n} of {k:g} cores" for n, k in zip(program.slots, widths, strict=True))
        raise refusal(status, cores, "in its pools", shown)
    return widths


def pool_loads(program: Program, workload: Workload, cores: float) -> tuple[float, ...]:
    """The load of each class's pool; empty where the policy has no pools."""
    if program.sees != COUNTS or program.discipline != POOLS:
        return ()
    widths = pool_widths(program, cores, len(workload.classes))
    speeds = np.array([float(s(k)) for s, k in zip(workload.speedups, widths, strict=True)])
    rows = zip(workload.loads, np.asarray(program.slots) * speeds, strict=True)
    return tuple(float(load / most) if most > 0.0 else inf for load, most in rows)
