"""What the jobs have cost so far, beside what they must have cost at least.

A job costs its weight for every unit of time that it is there, so the cost so far is the area under the sum
of the weights of the jobs present, and the cost per job is that area over the number of jobs that came.

The bound is for the work that was done, whatever is still to come. Let jobs of class i have spent the time
H_i(k) on k cores each, and so have done the work W_i = Σ_k H_i(k)·s_i(k). A unit of it on k cores costs
c_i/s_i(k) and takes k/s_i(k) of core-time, and there was no more core-time than that of the n cores in the
time B with jobs present. So for every price l ≥ 0

    cost so far ≥ Σ_i W_i φ_i(l) − l·n·B,      φ_i(l) = min over whole k of (c_i + l·k)/s_i(k):

V* of `theory.relaxed` at the loads W_i/B. No division of the cores could have done this work for less. The
inequality holds at every moment and for any speedups; how much work was done is as they are believed to be.
Time on jobs of different weights is kept apart, as weights matter.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from malleable.arrivals.poisson import Poisson
from malleable.errors import MalleableError
from malleable.live.core.events import ClassChanged, Ended, Registered, WeightChanged, Withdrawn
from malleable.live.core.job_table import CLASS, WEIGHT
from malleable.model import JobClass, Workload
from malleable.theory.relaxed import whole_core_bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.core.actions import Action
    from malleable.live.core.events import Event
    from malleable.live.core.scheduler import Scheduler

MOST_KINDS = 32
"""Pairs of class and weight that are told apart; of further ones the next lower weight counts, if any."""
MOST_WIDTHS = 4096
"""Pairs of kind and width whose time is kept; that of further ones is left out, which lowers the bound."""
EVERY = 1.0
"""Seconds between two computations of the bound, at least; they take up to 1 % of the time."""
LEAST = 1e-9
"""Work per core-time that is as good as none."""

Kind = tuple[str, float]
"""Name of a class, and weight."""


@dataclass(frozen=True)
class Account:
    """Cost, time at widths, and core-time up to a moment."""

    now: float
    area: float
    """The cost so far: weight times time, of all jobs."""
    arrivals: int
    spent: dict[tuple[Kind, int], float]
    """Time that jobs of each kind spent on so many cores."""
    busy: float
    """Time with jobs present."""
    core_time: float
    """Core-time that there was meanwhile."""
    most: int
    """The most cores that there were."""
    classes: dict[str, JobClass]
    """Those of the kinds; what is believed of them now, or was when they were forgotten."""

    def bound(self) -> float | None:
        """The least that the work done so far must have cost; None while there is none."""
        if self.busy <= 0.0 or not self.spent:
            return None
        workload = self._as_workload()
        # Jobs that were never on more than one core used up to all of it, which rounding makes more than all.
        mean_cores = max(self.core_time / self.busy, workload.total_load) * (1.0 + LEAST)
        try:
            least = whole_core_bound(workload, self.most, mean_cores)
        except MalleableError:  # widths that do not fit on these cores, or numbers beyond range
            return None
        return least * workload.total_rate * self.busy

    def _as_workload(self) -> Workload:
        """The workload that brings the work done in the time with jobs, one class per kind."""
        done: dict[Kind, float] = {}
        for (kind, cores), spent in self.spent.items():
            speed = float(self.classes[kind[0]].speedup(cores))
            done[kind] = done.get(kind, 0.0) + speed * spent
        classes = []
        for i, ((name, weight), work) in enumerate(done.items()):
            described = self.classes[name]
            arrivals = Poisson(rate=max(work / self.busy, LEAST) / described.size.mean)
            classes.append(
                replace(described, name=f"{i} at {weight}", arrivals=arrivals, holding_cost=weight)
            )
        return Workload("done so far", tuple(classes))


class CostSoFar:
    """Watches the events of a scheduler, and keeps account of cost, time at widths, and core-time."""

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
        self._spent: dict[tuple[Kind, int], float] = {}
        self._kinds: set[Kind] = set()
        self._classes: dict[str, JobClass] = {}
        """The classes of the kinds; a scheduler forgets those without jobs when there are too many."""
        self._since: dict[str, tuple[Kind, int, float]] = {}
        """Kind and width of each job that uses cores, and since when."""

    def watching(self, handle: Callable[[Event, float], list[Action]]) -> Callable[..., list[Action]]:
        """`handle`, with account kept of what it is told."""

        def watched(event: Event, now: float) -> list[Action]:
            self._pass_time(now)
            actions = handle(event, now)
            if not self._scheduler.refused:
                self._note(event)
            return actions

        return watched

    def account(self, now: float) -> Account:
        """What is there to say now; it costs little, and is to be taken while no event happens."""
        self._pass_time(now)
        spent = dict(self._spent)
        for kind, cores, since in self._since.values():
            _add(spent, (kind, cores), self._now - since)
        self._learn_classes()
        classes = dict(self._classes)
        return Account(
            self._now, self.area, self.arrivals, spent, self._busy, self._core_time, self._most, classes
        )

    def _learn_classes(self) -> None:
        """Remember what is believed of the classes of the kinds, as long as the scheduler knows them."""
        known = {job_class.name: job_class for job_class in self._scheduler.beliefs.workload.classes}
        self._classes = {name: known.get(name) or self._classes[name] for name, _ in self._kinds}

    def document(self, account: Account) -> dict[str, Any]:
        """Cost per job so far, the lower bound on it, and the time average of the sum of weights present.

        The cost never falls, so what was a bound on it remains one: it is computed now and then only.
        """
        started = time.monotonic()
        if self._least is None or started >= self._next_bound:
            self._least = account.bound()
            ended = time.monotonic()
            self._next_bound = ended + max(EVERY, 100.0 * (ended - started))
        jobs = account.arrivals
        return {
            "so_far": account.area / jobs if jobs else None,
            "bound": self._least / jobs if jobs and self._least is not None else None,
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
            self._most = max(self._most, ledger.cores, ledger.granted)
        self._now = now

    def _note(self, event: Event) -> None:
        """Account for an event that was accepted."""
        self.arrivals += isinstance(event, Registered) - isinstance(event, Withdrawn)
        if isinstance(event, Registered | Ended | WeightChanged | ClassChanged):
            table = self._scheduler.table
            self._weight = float(table[WEIGHT][table.rows()].sum())
        job = getattr(event, "job", None)
        if job is not None:
            self._follow(job)

    def _follow(self, job: str) -> None:
        """Close the time that a job spent at its last width, and start that at the present one."""
        kind, cores, since = self._since.pop(job, (("", 0.0), 0, self._now))
        _add(self._spent, (kind, cores), self._now - since)
        table, account = self._scheduler.table, self._scheduler.ledger.accounts.get(job)
        if account is not None and account.in_use:
            row = table.row_of[job]
            job_class = self._scheduler.beliefs.workload.classes[int(table[CLASS][row])]
            found = self._kind(job_class, float(table[WEIGHT][row]))
            if found is not None:
                self._since[job] = (found, account.in_use, self._now)

    def _kind(self, job_class: JobClass, weight: float) -> Kind | None:
        """The kind that a job counts as; to take a weight for a lower one only lowers the bound."""
        kind = job_class.name, weight
        if len(self._kinds) < MOST_KINDS:
            self._kinds.add(kind)
            self._classes[job_class.name] = job_class
        if kind in self._kinds:
            return kind
        lower = (other for other in self._kinds if other[0] == job_class.name and other < kind)
        return max(lower, default=None)


def _add(spent: dict[tuple[Kind, int], float], place: tuple[Kind, int], more: float) -> None:
    if more > 0.0 and place[1] > 0 and (place in spent or len(spent) < MOST_WIDTHS):
        spent[place] = spent.get(place, 0.0) + more
