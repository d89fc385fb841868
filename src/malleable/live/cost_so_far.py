"""What the jobs have cost so far, beside what they must have cost at least.

A job costs its weight for every unit of time that it is there, so the cost so far is the area under the sum
of the weights of the jobs present, and the cost per job is that area over the number of jobs that came.

The bound is for the work that was done, whatever the jobs that are to come. A unit of work of class i on k
cores costs c_i/s_i(k) and takes k/s_i(k) of core-time, and there was no more core-time than that of the n
cores while jobs were there. With W_i the work done and B the time with jobs, for every price l ≥ 0

    cost so far ≥ Σ_i W_i φ_i(l) − l·n·B,      φ_i(l) = min over whole k of (c_i + l·k)/s_i(k):

V* of `theory.relaxed` at the loads W_i/B. No division of the cores could have done this work for less, if
speedups are as they are believed to be. Work on jobs of different weights is kept apart, as weights matter.
The cost never falls, so what was a bound on it remains one: it is computed now and then only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.arrivals.poisson import Poisson
from malleable.errors import MalleableError
from malleable.live.estimates import work_done
from malleable.live.events import ClassChanged, Ended, Registered, WeightChanged
from malleable.live.job_table import CLASS, WEIGHT
from malleable.model import Workload
from malleable.theory.relaxed import whole_core_bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.actions import Action
    from malleable.live.events import Event
    from malleable.live.scheduler import Scheduler

MOST_KINDS = 32
"""Pairs of class and weight that are told apart; of further ones the next lower weight counts, if any."""
EVERY = 1.0
"""Seconds between two computations of the bound, at least; they take up to 1 % of the time."""
LEAST = 1e-9
"""Work per core-time that is as good as none."""

Kind = tuple[int, float]


@dataclass(frozen=True)
class Account:
    """Cost, work and core-time up to a moment."""

    now: float
    area: float
    """The cost so far: weight times time, of all jobs."""
    arrivals: int
    done: dict[Kind, float]
    """Work done of each class at each weight."""
    busy: float
    """Time with jobs present."""
    core_time: float
    """Core-time that there was meanwhile."""
    most: int
    """The most cores that there were."""
    workload: Workload

    def bound(self) -> float | None:
        """The least that the work done so far must have cost; None while there is none."""
        if self.busy <= 0.0 or not self.done:
            return None
        workload = _of_work(self.workload, self.done, self.busy)
        # Jobs that were never on more than one core used up to all of it, which rounding makes more than all.
        mean_cores = max(self.core_time / self.busy, workload.total_load) * (1.0 + LEAST)
        try:
            least = whole_core_bound(workload, self.most, mean_cores)
        except MalleableError:  # widths that do not fit on these cores, or numbers beyond range
            return None
        return least * workload.total_rate * self.busy


class CostSoFar:
    """Watches the events of a scheduler, and keeps account of cost, work and core-time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._now = scheduler.now
        self.arrivals = 0
        self.area = 0.0
        self._core_time = self._busy = 0.0
        self._least: float | None = None
        self._next_bound = 0.0
        self._weight = 0.0
        self._most = 1
        self._done: dict[Kind, float] = {}
        self._before: dict[str, float] = {}
        """Work that jobs had done before they were counted."""

    def watching(self, handle: Callable[[Event, float], list[Action]]) -> Callable[..., list[Action]]:
        """`handle`, with account kept of what it is told."""

        def watched(event: Event, now: float) -> list[Action]:
            leaving = self._work_of([event.job], now) if isinstance(event, Ended) else {}
            self._pass_time(now)
            actions = handle(event, now)
            if not self._scheduler.refused:
                self._note(event, leaving)
            return actions

        return watched

    def account(self, now: float) -> Account:
        """What is there to say now; it costs little, and is to be taken while no event happens."""
        self._pass_time(now)
        done = dict(self._done)
        for kind, work in self._work_of(list(self._scheduler.table.row_of), now).items():
            _add(done, kind, work)
        workload = self._scheduler.beliefs.workload
        return Account(now, self.area, self.arrivals, done, self._busy, self._core_time, self._most, workload)

    def document(self, account: Account) -> dict[str, Any]:
        """Cost per job so far, the lower bound on it, and the time average of the sum of weights present."""
        started = time.monotonic()
        if self._least is None or started >= self._next_bound:
            self._least = account.bound()
            ended = time.monotonic()
            self._next_bound = ended + max(EVERY, 100.0 * (ended - started))
        jobs = account.arrivals
        return {
            "so_far": account.area / jobs if jobs else None,
            "bound": None if self._least is None else self._least / jobs,
            "rate": account.area / account.now if account.now > 0.0 else None,
            "jobs": jobs,
        }

    def _pass_time(self, now: float) -> None:
        """Add what the time until now costs."""
        if now <= self._now:
            return
        if self._weight > 0.0:
            passed = now - self._now
            self.area += self._weight * passed
            self._busy += passed
            ledger = self._scheduler.ledger
            self._core_time += max(ledger.cores, ledger.granted) * passed
            self._most = max(self._most, ledger.cores)
        self._now = now

    def _note(self, event: Event, leaving: dict[Kind, float]) -> None:
        """Account for an event that was accepted."""
        if isinstance(event, Registered):
            self.arrivals += 1
            if event.work_done > 0.0:
                self._before[event.job] = event.work_done
        elif isinstance(event, Ended):
            self._before.pop(event.job, None)
            for kind, work in leaving.items():
                _add(self._done, kind, work)
        if isinstance(event, Registered | Ended | WeightChanged | ClassChanged):
            table = self._scheduler.table
            self._weight = float(table[WEIGHT][table.rows()].sum())

    def _work_of(self, jobs: list[str], now: float) -> dict[Kind, float]:
        """Work done of the jobs that are there, since they were counted, by class and weight."""
        table = self._scheduler.table
        known = [job for job in jobs if job in table]
        rows = np.array([table.row_of[job] for job in known], dtype=np.intp)
        done = work_done(table, rows, now).tolist()
        out: dict[Kind, float] = {}
        for job, row, work in zip(known, rows.tolist(), done, strict=True):
            kind = int(table[CLASS][row]), float(table[WEIGHT][row])
            _add(out, kind, max(work - self._before.get(job, 0.0), 0.0))
        return out


def _add(done: dict[Kind, float], kind: Kind, work: float) -> None:
    """Count work; to take a weight for a lower one, or to leave work out, only lowers the bound."""
    if work > 0.0 and kind not in done and len(done) >= MOST_KINDS:
        lower = [other for other in done if other[0] == kind[0] and other[1] < kind[1]]
        if not lower:
            return
        kind = max(lower)
    if work > 0.0:
        done[kind] = done.get(kind, 0.0) + work


def _of_work(workload: Workload, done: dict[Kind, float], busy: float) -> Workload:
    """The workload that brings so much work in so much time, one class per kind."""
    return Workload(
        workload.name,
        tuple(
            replace(
                workload.classes[i],
                name=f"{i} at {weight}",
                arrivals=Poisson(rate=max(work / busy, LEAST) / workload.classes[i].size.mean),
                holding_cost=weight,
            )
            for (i, weight), work in done.items()
        ),
    )
