"""Pools: slots of fixed width that belong to one class. How wide they are, and how busy.

A pool is a queue of its own. It may be nearly full on a machine that is not, and then it is the pool that
says how long queues get and how slowly they forget.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import POOLS, ClassProgram

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.rule_interface import JobProgram
    from malleable.model import Workload


def pool_widths(program: ClassProgram, cores: float, classes: int) -> FloatArray:
    """Cores of a slot of each class: a pool's rule has only one answer."""
    widths = np.zeros(classes)
    program.rule(np.zeros(classes), cores, program.table.copy(), widths)
    return widths


def pool_loads(program: ClassProgram | JobProgram, workload: Workload, cores: float) -> tuple[float, ...]:
    """The load of each class's pool; empty where the policy has no pools."""
    if not isinstance(program, ClassProgram) or program.discipline != POOLS:
        return ()
    widths = pool_widths(program, cores, len(workload.classes))
    speeds = np.array([float(s(k)) for s, k in zip(workload.speedups, widths, strict=True)])
    rows = zip(workload.loads, np.asarray(program.slots) * speeds, strict=True)
    return tuple(float(load / most) if most > 0.0 else inf for load, most in rows)
