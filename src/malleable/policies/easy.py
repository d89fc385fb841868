"""EASY backfilling (Lifka 1995): what most batch systems do with rigid jobs.

Jobs start in order of arrival while they fit. The first that does not fit gets a reservation: the earliest
time at which enough of the running jobs will have ended. Jobs behind it may start now if they fit and do not
put that off: they end before the reservation, or need no more than the cores that it leaves over. How long a
job runs is taken to be known, x/s(k). Running jobs keep their cores. A rigid job runs on its width, another
on its narrowest allowed width, so that jobs of any width all run on one core.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import CLASS, DUST, HELD, REMAINING, JobRule, ascending, encode, speed, table_of
from malleable.policies.fcfs import requested_widths

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


def easy(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Start in order of arrival, then backfill behind the first that does not fit."""
    size, spare = jobs.shape[0], math.floor(cores + DUST) * 1.0
    for j in range(size):
        out[j] = jobs[j, HELD] if jobs[j, HELD] <= spare + DUST else 0.0
        spare -= out[j]
    waits = -1
    for j in range(size):
        if jobs[j, HELD] > 0.0:
            continue
        if width_of(jobs, j, table) > spare + DUST:
            waits = j
            break
        out[j] = width_of(jobs, j, table)
        spare -= out[j]
    if waits >= 0 and spare >= 1.0 - DUST:
        backfill(jobs, waits, spare, table, out)


def width_of(jobs: FloatArray, j: int, table: FloatArray) -> float:
    """The width that job j runs on."""
    return float(table[int(table[1]) + int(jobs[j, CLASS])])


def time_left(jobs: FloatArray, j: int, k: float, table: FloatArray) -> float:
    """How long job j still runs on k cores."""
    return float(jobs[j, REMAINING]) / speed(table, int(jobs[j, CLASS]), k)


def backfill(jobs: FloatArray, waits: int, spare: float, table: FloatArray, out: FloatArray) -> None:
    """Start jobs behind the one that waits where they do not put off its start."""
    size = jobs.shape[0]
    ends = np.full(size, math.inf)
    for j in range(size):
        if out[j] > 0.0:
            ends[j] = time_left(jobs, j, out[j], table)
    start, extra = 0.0, spare - width_of(jobs, waits, table)
    for j in ascending(ends):
        if extra >= -DUST or out[j] == 0.0:
            break
        start = ends[j]
        extra += out[j]
    for j in range(waits + 1, size):
        k = width_of(jobs, j, table)
        if jobs[j, HELD] > 0.0 or k > spare + DUST:
            continue
        soon = time_left(jobs, j, k, table) <= start
        if soon or k <= extra + DUST:
            out[j] = k
            spare -= k
            extra -= 0.0 if soon else k


@dataclass(frozen=True)
class Easy(JobRule):
    """EASY backfilling: first come first served, later jobs first where they delay no reservation."""

    whole_cores: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True
    rule = staticmethod(easy)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        return table_of(encode(workload.speedups), requested_widths(workload, cores))
