"""No job falls far behind its weighted equal share of the machine, whatever the policy does.

Beside each job j runs a virtual one that always has its weighted equal share n·w_j/W of the cores, W being
the weights of all jobs present. It has done the work F_j, the job itself R_j. Kept is, at every moment,

    R_j ≥ F_j/κ − 3 quanta,

a quantum being what the job does in that time on the largest share that it ever had, or on one core.

A job whose R_j is a quantum below F_j/κ becomes *urgent*: it gets ⌈share⌉ cores for a quantum before the
policy divides the rest. Urgent jobs go in the order in which they would break the promise. Why that can be
kept, for κ ≥ 2 − 1/n: what is promised needs, at its own pace, at most n/κ cores in all and at most 1/κ of
each core that a job may use, so n cores of speed 1/κ could do it; and earliest deadline first on n cores of
speed 1 meets all deadlines that can be met on n cores of speed 1/(2 − 1/n) (Phillips, Stein, Torng and Wein
1997). The shares of all jobs change by the same factor when one comes or goes, so their order stays.

That every job *ends* by κ times its end under equal sharing of the same jobs cannot be promised, see
docs/explanation/live.md. Jobs that wait for memory, or are on hold, have no share meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import ParameterError
from malleable.live.core.job_table import (
    CLASS,
    FAIR,
    FAIR_RATE,
    GOAL,
    SERVED,
    SPEED,
    TARGET,
    WAITS_SINCE,
    WEIGHT,
    JobTable,
)

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray
    from malleable.model import Workload

SPACING = 0.1
"""Quanta between two looks, at least."""


@dataclass(frozen=True)
class Guarantee:
    """κ, for how long an urgent job is served, and the longest that a job waits, in units of the clock."""

    kappa: float = 2.0
    quantum: float = 0.5
    longest_pause: float = 60.0

    def __post_init__(self) -> None:
        if not self.kappa >= 2.0:
            raise ParameterError(
                f"guarantee must be at least 2, got {self.kappa:g}", "2 is the strictest that can be kept"
            )
        for name in ("quantum", "longest_pause"):
            value = getattr(self, name)
            if not value > 0.0:
                raise ParameterError(
                    f"{name.replace('_', '-')} must be positive, got {value:g}",
                    "give seconds, for example 60",
                )


class Urgent(NamedTuple):
    """Cores that jobs must have, 0 for those that are not urgent, and when each would break the promise."""

    cores: FloatArray
    deadlines: FloatArray


class FairShares:
    """Keeps account of what each job has done and would have done with its share, in the job table."""

    def __init__(self, guarantee: Guarantee) -> None:
        self.guarantee = guarantee
        self._now = 0.0

    def pass_time(self, table: JobTable, now: float) -> None:
        """All jobs, and the virtual ones beside them, have worked until now."""
        passed, self._now = now - self._now, now
        if passed > 0.0:
            there = len(table.ids)
            table[FAIR][:there] += passed * table[FAIR_RATE][:there]
            table[SERVED][:there] += passed * table[SPEED][:there]

    def divide(self, table: JobTable, rows: IntArray, cores: int, workload: Workload) -> None:
        """From now on the jobs in these rows have a share; no other job has one."""
        table[FAIR_RATE][: len(table.ids)] = 0.0
        if len(rows) == 0 or cores < 1:
            return
        share = self.shares(table, rows, cores)
        table[FAIR_RATE][rows] = share
        index = table[CLASS][rows].astype(np.intp)
        for i in np.unique(index[share > 1.0]).tolist():
            mine = rows[(index == i) & (share > 1.0)]
            table[FAIR_RATE][mine] = workload.speedups[i](share[(index == i) & (share > 1.0)])

    def shares(self, table: JobTable, rows: IntArray, cores: int) -> FloatArray:
        """The weighted equal share of each job, in cores."""
        weights = table[WEIGHT][rows]
        return np.asarray(cores * (weights / weights.max()) / (weights / weights.max()).sum())

    def urgent(self, table: JobTable, rows: IntArray, cores: int) -> Urgent | None:
        """Who has to be served now; None if nobody has."""
        quantum, rate = self._quanta(table, rows), table[FAIR_RATE][rows]
        behind = table[FAIR][rows] / self.guarantee.kappa - table[SERVED][rows]
        waits = (table[TARGET][rows] == 0.0) & (
            self._now >= table[WAITS_SINCE][rows] + self.guarantee.longest_pause
        )
        served = table[GOAL][rows] <= table[SERVED][rows]
        new = served & ((behind >= quantum) | waits)
        table[GOAL][rows[new]] = table[SERVED][rows[new]] + quantum[new]
        urgent = (table[GOAL][rows] > table[SERVED][rows]) & (rate > 0.0)
        if not urgent.any():
            return None
        share = self.shares(table, rows, cores)
        deadlines = (3.0 * quantum - behind) / np.where(rate > 0.0, rate, 1.0)
        return Urgent(np.where(urgent, np.maximum(np.ceil(share), 1.0), 0.0), deadlines)

    def look_at(self, table: JobTable, rows: IntArray, now: float) -> float:
        """When someone becomes urgent, or has been served, if nothing else happens."""
        quantum, rate = self._quanta(table, rows), table[FAIR_RATE][rows] / self.guarantee.kappa
        speed, missing = table[SPEED][rows], table[GOAL][rows] - table[SERVED][rows]
        behind = table[FAIR][rows] / self.guarantee.kappa - table[SERVED][rows]
        falls = (missing <= 0.0) & (rate > speed)
        waits = (table[TARGET][rows] == 0.0) & (missing <= 0.0) & (rate > 0.0)
        times = [
            (quantum - behind)[falls] / (rate - speed)[falls],
            (missing / np.where(speed > 0.0, speed, 1.0))[(missing > 0.0) & (speed > 0.0)],
            (table[WAITS_SINCE][rows] + self.guarantee.longest_pause - now)[waits],
        ]
        soonest = min((float(each.min()) for each in times if len(each)), default=inf)
        return now + max(soonest, SPACING * self.guarantee.quantum)

    def ratio(self, table: JobTable, rows: IntArray, now: float) -> FloatArray:
        """Work done over what an equal share would have done, of each job by now; NaN before it had one."""
        passed = max(now - self._now, 0.0)
        fair = table[FAIR][rows] + passed * table[FAIR_RATE][rows]
        served = table[SERVED][rows] + passed * table[SPEED][rows]
        return np.where(fair > 0.0, served / np.where(fair > 0.0, fair, 1.0), np.nan)

    def _quanta(self, table: JobTable, rows: IntArray) -> FloatArray:
        """Work of a quantum of each job: on its share of the cores, or on one core if that is less."""
        return np.asarray(self.guarantee.quantum * np.maximum(table[FAIR_RATE][rows], 1.0))
