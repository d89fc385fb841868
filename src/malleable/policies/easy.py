"""EASY backfilling (Lifka 1995): what most batch systems do with rigid jobs.

Jobs start in order of arrival while they fit. The first that does not fit gets a reservation: the earliest
time at which enough of the running jobs will have ended. Jobs behind it may start now if they fit and do not
put that off: they end before the reservation, or need no more than the cores that it leaves over. How long a
job runs is taken to be known, x/s(k). Running jobs keep their cores. A rigid job runs on its width, another
on its narrowest allowed width, so that jobs of any width all run on one core. In a replay every job has the
cores that its log says it asked for, and how long it runs is what its user estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.policies.base import DUST, HELD, ascending
from malleable.policies.base.batch_rule import BatchRule, asked_width, time_left

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


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
        if asked_width(jobs, j, table) > spare + DUST:
            waits = j
            break
        out[j] = asked_width(jobs, j, table)
        spare -= out[j]
    if waits >= 0 and spare >= 1.0 - DUST:
        backfill(jobs, waits, spare, table, out)


def backfill(jobs: FloatArray, waits: int, spare: float, table: FloatArray, out: FloatArray) -> None:
    """Start jobs behind the one that waits where they do not put off its start."""
    size = jobs.shape[0]
    ends = np.full(size, math.inf)
    for j in range(size):
        if out[j] > 0.0:
            ends[j] = time_left(jobs, j, out[j], table)
    start, extra = 0.0, spare - asked_width(jobs, waits, table)
    for j in ascending(ends):
        if extra >= -DUST or out[j] == 0.0:
            break
        start = ends[j]
        extra += out[j]
    for j in range(waits + 1, size):
        k = asked_width(jobs, j, table)
        if jobs[j, HELD] > 0.0 or k > spare + DUST:
            continue
        soon = time_left(jobs, j, k, table) <= start
        if soon or k <= extra + DUST:
            out[j] = k
            spare -= k
            extra -= 0.0 if soon else k


@dataclass(frozen=True)
class Easy(BatchRule):
    """EASY backfilling: first come first served, later jobs first where they delay no reservation."""

    needs = "the cores that each job asks for, work left"

    rule = staticmethod(easy)
