"""KNEE (Lin, Paolieri, Chou, Golubchik 2018): every job up to the point where one more core saves too little.

knee_j = min{k ≥ 1 : x/s(k) − x/s(k+1) < α}, in whole cores. Jobs get their knees in ascending order, ties to
the earlier arrival; the first one that does not fit gets what remains. Cores beyond all knees idle. α, a
time, must be tuned (sweep it). Its default is 2 % of the workload's mean job size, which on the paper's
workload at load 0.25 is close to the best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import (
    ANY,
    CLASS,
    DUST,
    REMAINING,
    JobRule,
    Need,
    Positive,
    Program,
    ascending,
    encode,
    speed,
    table_of,
)

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

DEFAULT = 0.02
"""α in mean job sizes."""


def knee(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Knees in ascending order while cores last."""
    size = jobs.shape[0]
    out[:] = 0.0
    own = int(table[1])
    knees = np.empty(size)
    for j in range(size):
        i = int(jobs[j, CLASS])
        concave = table[own + 1 + i] == 1.0
        knees[j] = knee_of(table, i, jobs[j, REMAINING], table[own], concave)
    spare = float(math.floor(cores + DUST))
    for j in ascending(knees):
        if spare < 1.0:
            break
        out[j] = min(knees[j], spare)
        spare -= out[j]


def knee_of(table: FloatArray, i: int, remaining: float, alpha: float, concave: bool) -> float:
    """The smallest k whose next core saves less than α; found by bisection where the savings fall with k."""
    high = 1.0
    while saving(table, i, remaining, high) >= alpha:
        high = 2.0 * high if concave else high + 1.0
    if not concave:
        return high
    low = float(math.floor(0.5 * high))
    while high - low > 1.0:
        middle = float(math.floor(0.5 * (low + high)))
        if saving(table, i, remaining, middle) >= alpha:
            low = middle
        else:
            high = middle
    return high


def saving(table: FloatArray, i: int, remaining: float, k: float) -> float:
    """Run time that core k + 1 saves."""
    return remaining / speed(table, i, k) - remaining / speed(table, i, k + 1.0)


@dataclass(frozen=True)
class Knee(JobRule):
    """KNEE: smallest knees first, a knee being where a further core saves less than `alpha`."""

    needs = "speedups, work left; rates and mean sizes where no alpha is given"

    whole_cores: ClassVar[bool] = True
    alpha: Positive | None = None

    rule = staticmethod(knee)

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:  # noqa: ARG002 - for any n
        arriving = need.arrivals(workload)
        mean = arriving.total_load / arriving.total_rate
        alpha = self.alpha if self.alpha is not None else DEFAULT * mean
        concave = [float(speedup.concave) for speedup in workload.speedups]
        return Program(knee, table_of(encode(workload.speedups), [alpha, *concave]))
