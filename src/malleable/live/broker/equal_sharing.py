"""What the same jobs would have cost, had the machine been shared equally among them.

Equal sharing is what an operating system does when each job brings as many workers as there are cores: a job
of weight w gets n·w/Σw cores, no more than it takes, and below one core it gets a part of one. A machine that
shares so runs beside the real one, on the same arrivals, weights and cores, with the speedups believed.

It knows no more of a job than the real machine has shown. A job that has ended has a size: the work it did.
One that still runs is at least as large as the work done so far, so the virtual clock stops where such a job
would go beyond that, and goes on when the real one has. Nothing is guessed: up to the virtual clock both
areas under the weights of the jobs present are known, and their difference is what the policy has saved.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from math import inf, isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.live.core.estimates import work_done
from malleable.live.core.events import ClassChanged, CoresChanged, Ended, Registered, WeightChanged, Withdrawn
from malleable.live.core.job_table import CLASS, MOST, WEIGHT
from malleable.model import JobClass

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.live.core.actions import Action
    from malleable.live.core.events import Event
    from malleable.live.core.scheduler import Scheduler
    from malleable.model import Workload

MOST_JOBS = 4096
"""Jobs up to which the comparison goes on; beyond, it starts anew when the machine is next empty."""
EFFORT = 20_000
"""Steps of one look times the jobs that each moves: about 20 ms."""
EVERY = 1.0
"""Seconds between two looks, at least; they take up to 1 % of the time."""
ROUNDING = 1e-9
"""Work left of a job, as a share of its size, that is rounding."""


class Moment(NamedTuple):
    """What the comparison needs to know of the real machine, taken while no event happens."""

    now: float
    workload: Workload
    work: dict[str, float]
    """Work done so far of each job present."""


class Comparison(NamedTuple):
    """Equal sharing of the same jobs beside the real machine, up to a moment."""

    until: float
    """The time of the scheduler up to which both are known."""
    cost: float
    """What the real machine has cost up to then: weight times time."""
    shared: float
    """What equal sharing would have cost."""
    jobs: int
    """Jobs that had come by then."""


class _Change(NamedTuple):
    """Something that happens on both machines, or to the weights of the real one."""

    time: float
    job: str
    event: Event | None
    job_class: JobClass | None = None
    values: tuple[float, ...] = ()


@dataclass
class _Job:
    """A job on the machine of equal sharing; its class is as it was known when that was last said."""

    job_class: JobClass
    weight: float
    most: float
    done: float


@dataclass
class SharingMachine:
    """Weighted equal sharing of `cores`, up to the time `clock`; `area` is what its jobs have cost."""

    cores: int
    clock: float = 0.0
    area: float = 0.0
    jobs: dict[str, _Job] = field(default_factory=dict)

    def speeds(self, workload: Workload) -> FloatArray:
        """How fast each job works now; a class that the workload has forgotten is as it was."""
        jobs = [*self.jobs.values()]
        weights = np.array([job.weight for job in jobs])
        shares = equal_shares(weights, np.array([job.most for job in jobs]), float(self.cores))
        out = np.minimum(shares, 1.0)
        wide: defaultdict[str, list[int]] = defaultdict(list)
        for j in np.flatnonzero(shares > 1.0).tolist():
            wide[jobs[j].job_class.name].append(j)
        known = {job_class.name: job_class for job_class in workload.classes}
        for name, places in wide.items():
            speedup = known.get(name, jobs[places[0]].job_class).speedup
            out[places] = speedup(shares[places])
        return out

    def run(self, until: float, limits: FloatArray, workload: Workload) -> list[str]:
        """Go on until then, or until the first jobs have done the work in `limits`; the names of these."""
        if not self.jobs:
            self.clock = until
            return []
        names, jobs, speeds = list(self.jobs), list(self.jobs.values()), self.speeds(workload)
        done = np.array([job.done for job in jobs])
        left = np.maximum(limits - done, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(left <= ROUNDING * limits, 0.0, left / speeds)
        passed = min(float(times.min()), until - self.clock)
        for job, speed in zip(jobs, speeds.tolist(), strict=True):
            job.done += speed * passed
        self.area += passed * sum(job.weight for job in jobs)
        self.clock += passed
        return [names[j] for j in np.flatnonzero(times <= passed).tolist()]


def equal_shares(weights: FloatArray, most: FloatArray, cores: float) -> FloatArray:
    """Cores in proportion to weights, none above `most`; what one leaves goes to the others."""
    shares, open_ = np.zeros(len(weights)), np.ones(len(weights), dtype=bool)
    while open_.any():
        shares[open_] = max(cores - shares[~open_].sum(), 0.0) * weights[open_] / weights[open_].sum()
        over = open_ & (shares > most)
        if not over.any():
            break
        shares[over], open_ = most[over], open_ & ~over
    return shares


class EqualSharing:
    """Watches the events of a scheduler, and has equal sharing of the same jobs run beside."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._machine = SharingMachine(scheduler.ledger.cores, scheduler.now)
        self._coming: deque[_Change] = deque()
        self._sizes: dict[str, float] = {}
        """Sizes of jobs that have ended on the real machine, and not yet on the virtual one."""
        self._weights: dict[str, float] = {}
        """Jobs on the real machine at the virtual clock."""
        self._area = 0.0
        """What the real machine has cost up to the virtual clock."""
        self._compared = 0
        self._given_up = False
        self._next_look = 0.0
        self._looking = threading.Lock()

    def watching(self, handle: Callable[[Event, float], list[Action]]) -> Callable[..., list[Action]]:
        """`handle`, with the comparison told of what happens."""

        def watched(event: Event, now: float) -> list[Action]:
            size = self._work([event.job], now) if isinstance(event, Ended) else {}
            actions = handle(event, now)
            if not self._scheduler.refused:
                self._note(event, size)
            return actions

        return watched

    def moment(self) -> Moment | None:
        """The real machine now, to be taken while no event happens; None while it is too early to look."""
        if time.monotonic() < self._next_look:
            return None
        scheduler = self._scheduler
        return Moment(
            scheduler.now, scheduler.beliefs.workload, self._work(list(scheduler.table.row_of), 0.0)
        )

    def document(self, moment: Moment | None) -> dict[str, float | None]:
        """The cost per job under equal sharing, the share of it saved, and how far both are known."""
        if moment is not None:
            with self._looking:
                started = time.monotonic()
                self.advance(moment)
                ended = time.monotonic()
                self._next_look = ended + max(EVERY, 100.0 * (ended - started))
        found = self.comparison
        return {
            "equal_sharing": found.shared / found.jobs if found.jobs else None,
            "saved": 1.0 - found.cost / found.shared if found.shared > 0.0 else None,
            "compared": found.jobs,
            "compared_until": found.until,
        }

    @property
    def comparison(self) -> Comparison:
        """What is known by now."""
        return Comparison(self._machine.clock, self._area, self._machine.area, self._compared)

    def advance(self, moment: Moment) -> None:
        """Let the virtual clock go on as far as the real machine has shown what happens."""
        machine, effort = self._machine, EFFORT
        while effort > 0:
            effort -= len(machine.jobs) + 20
            coming = self._coming[0].time if self._coming else inf
            until = max(min(coming, moment.now), machine.clock)
            before = machine.clock
            ended = machine.run(until, self._limits(moment), moment.workload)
            self._area += (machine.clock - before) * sum(self._weights.values())
            for job in ended:
                if job not in self._sizes:
                    return  # it may be larger than what is known of it
                del machine.jobs[job], self._sizes[job]
            if ended:
                continue
            if not self._coming or coming > moment.now:
                return
            self._apply(self._coming.popleft())

    def _limits(self, moment: Moment) -> FloatArray:
        """How much of each job is known: its size, or the work that it has done."""
        return np.array(
            [self._sizes.get(job, moment.work.get(job, 0.0)) for job in self._machine.jobs], dtype=float
        )

    def _apply(self, change: _Change) -> None:
        """What happens at the virtual clock."""
        machine, event, job = self._machine, change.event, change.job
        if isinstance(event, Registered):
            assert change.job_class is not None  # noqa: S101 - it was noted with it
            machine.jobs[job] = _Job(change.job_class, *change.values)
            self._weights[job] = change.values[0]
            self._compared += 1
        elif isinstance(event, Ended):
            self._weights.pop(job, None)
            self._compared -= isinstance(event, Withdrawn)
        elif isinstance(event, CoresChanged):
            machine.cores = event.cores
        elif isinstance(event, WeightChanged | ClassChanged):
            assert change.job_class is not None  # noqa: S101 - as above
            self._change_terms(job, change.job_class, change.values[0])

    def _change_terms(self, job: str, job_class: JobClass, weight: float) -> None:
        """A job is of another class, or matters more or less, on both machines."""
        if job in self._weights:
            self._weights[job] = weight
        if job in self._machine.jobs:
            self._machine.jobs[job].job_class = job_class
            self._machine.jobs[job].weight = weight

    def _note(self, event: Event, size: dict[str, float]) -> None:
        """Remember an event that was accepted for when the virtual clock gets there."""
        scheduler = self._scheduler
        if self._given_up:
            if len(scheduler.table) == 0:
                self._start_anew()
            return
        now, table = scheduler.now, scheduler.table
        if isinstance(event, CoresChanged):
            self._coming.append(_Change(now, "", event))
        elif isinstance(event, Ended):
            self._sizes[event.job] = size[event.job]
            self._coming.append(_Change(now, event.job, event))
        elif isinstance(event, Registered | WeightChanged | ClassChanged):
            row = table.row_of[event.job]
            job_class = scheduler.beliefs.workload.classes[int(table[CLASS][row])]
            terms = [float(table[WEIGHT][row])]
            if isinstance(event, Registered):
                terms += [float(table[MOST][row]), event.work_done]
            self._coming.append(_Change(now, event.job, event, job_class, tuple(terms)))
        self._given_up = len(self._coming) + len(self._sizes) > MOST_JOBS

    def _start_anew(self) -> None:
        """Compare again from now on: what lies between is left out of both areas."""
        with self._looking:
            self._machine.jobs.clear()
            self._machine.clock, self._machine.cores = self._scheduler.now, self._scheduler.ledger.cores
            for kept in (self._coming, self._sizes, self._weights):
                kept.clear()
            self._given_up = False

    def _work(self, jobs: list[str], now: float) -> dict[str, float]:
        """The work that these jobs have done by the scheduler's time or `now`, those that are there."""
        table, now = self._scheduler.table, max(now, self._scheduler.now)
        present = [job for job in jobs if job in table]
        rows = np.array([table.row_of[job] for job in present], dtype=np.intp)
        done = work_done(table, rows, now).tolist()
        return {job: 0.0 if isnan(work) else work for job, work in zip(present, done, strict=True)}
