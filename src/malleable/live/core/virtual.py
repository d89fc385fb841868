"""The scheduler on a virtual clock: jobs that are only numbers, carried out at once or with a delay.

Each job works at the true speed of its class on the cores that it uses; what the scheduler believes may
differ. Without delays the scheduler then gives exactly the simulator's completion times on whole cores. With
a `delay` every answer of a job (cores given back, cores taken) comes so much later, as on a real machine.

At the same time, departures and ends of pauses come first, then arrivals, then answers, then ticks, as in
the simulator.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import SAME_TIME
from malleable.live.core.events import Confirmed, Event, Finished, Progressed, Registered, Tick

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.live.core.actions import Action
    from malleable.live.core.decision import Machine
    from malleable.live.core.scheduler import Scheduler
    from malleable.model import Workload
    from malleable.sources.streams import Chunk


@dataclass
class VirtualJob:
    """A job that works at its speed from `since` on."""

    name: str
    class_index: int
    size: float
    left: float
    cores: int = 0
    ran: bool = False
    speed: float = 0.0
    since: float = 0.0

    def work_until(self, now: float) -> None:
        """Do the work of the time that has passed."""
        if now > self.since:
            self.left -= self.speed * (now - self.since)
            self.since = now

    def resize(self, cores: int, now: float, machine: Machine, truth: Workload) -> None:
        """Go on with so many cores; a job that ran before pauses and loses work, as its class says."""
        self.work_until(now)
        if not truth.plain and self.left <= self.speed * SAME_TIME * now and self.speed > 0.0:
            # It is done but for rounding, and leaves as it is.
            self.cores = cores
            return
        if cores > 0 and self.ran:
            pause = machine.pause(self.class_index, self.cores, cores)
            self.since = now + pause if pause > 0.0 else max(self.since, now)
            self.left = min(self.left + truth.job_types[self.class_index].resize.work, self.size)
        self.ran = self.ran or cores > 0
        self.cores = cores
        self.speed = float(truth.speedups[self.class_index](cores))

    @property
    def done_at(self) -> float:
        """When it will be done."""
        return self.since + max(self.left, 0.0) / self.speed if self.speed > 0.0 else inf


class VirtualMachine:
    """Drives a scheduler over given jobs.

    `truth` is the workload as it is; `handle` is called in place of `scheduler.handle`, by a journal say.
    Jobs declare their sizes, unless these are not `declared`. With `report` jobs tell their progress so often
    and declare how many units they have, of `unit` work each.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        truth: Workload,
        *,
        delay: float = 0.0,
        report: float = inf,
        unit: float = 1.0,
        declared: bool = True,
        handle: Callable[[Event, float], list[Action]] | None = None,
    ) -> None:
        self.scheduler, self.truth = scheduler, truth
        self.delay, self.report, self.unit, self.declared = delay, report, unit, declared
        self.now = 0.0
        self.left: dict[str, float] = {}
        self._handle = handle or scheduler.handle
        self._jobs: dict[str, VirtualJob] = {}
        self._coming: list[tuple[float, int, Action]] = []
        self._carried_out = 0
        self._next_report = report

    def departures(self, jobs: Chunk) -> FloatArray:
        """When each of the jobs is done, all of them let finish."""
        following = 0
        while following < jobs.size or self._jobs:
            arrival = float(jobs.times[following]) if following < jobs.size else inf
            if self._step(arrival):
                self._arrive(jobs, following)
                following += 1
        return np.array([self.left[str(j)] for j in range(jobs.size)])

    def _step(self, arrival: float) -> bool:
        """What happens next; whether it is an arrival, which is left to the caller."""
        leaver = min(self._jobs.values(), key=lambda job: job.done_at, default=None)
        departure = inf if leaver is None else leaver.done_at
        answer = self._coming[0][0] if self._coming else inf
        wake = self.scheduler.wake_at
        tick = inf if wake is None else max(wake, self.now)
        others = min(arrival, answer, self._next_report, tick)
        if not self.truth.plain and departure <= others + SAME_TIME * self.now:
            departure = min(departure, others)
        moment = min(departure, others)
        if moment == inf:
            raise AssertionError("jobs are there, and nothing will ever happen")
        self.now = max(self.now, moment)
        if leaver is not None and departure == moment:
            del self._jobs[leaver.name]
            self.left[leaver.name] = self.now
            self._tell(Finished(leaver.name))
        elif arrival == moment:
            return True
        elif answer == moment:
            self._carry_out(heapq.heappop(self._coming)[2])
        elif self._next_report == moment:
            self._report()
        else:
            self._tell(Tick())
        return False

    def _arrive(self, jobs: Chunk, j: int) -> None:
        i, size = int(jobs.classes[j]), float(jobs.sizes[j])
        self._jobs[str(j)] = VirtualJob(str(j), i, size, size, since=self.now)
        weight = float(jobs.weights[j]) if len(jobs.weights) else None
        reports = self.report < inf
        tells_size, tells_units = self.declared and not reports, self.declared and reports
        self._tell(
            Registered(
                str(j), self.truth.class_names[i], weight,
                size=size if tells_size else None, units=size / self.unit if tells_units else None,
            )
        )  # fmt: skip

    def _report(self) -> None:
        """Every job says how many units it has done."""
        self._next_report += self.report
        for job in list(self._jobs.values()):
            job.work_until(self.now)
            self._tell(Progressed(job.name, max(job.size - job.left, 0.0) / self.unit))

    def _tell(self, event: Event) -> None:
        """Let the scheduler know, and see to what it asks for."""
        for action in self._handle(event, self.now):
            heapq.heappush(self._coming, (self.now + self.delay, self._carried_out, action))
            self._carried_out += 1
        while self.delay == 0.0 and self._coming:
            self._carry_out(heapq.heappop(self._coming)[2])

    def _carry_out(self, action: Action) -> None:
        """A job changes its width, pays for that what its class says, and confirms."""
        job = self._jobs.get(action.job)
        if job is None:
            return
        if action.cores != job.cores:
            job.resize(action.cores, self.now, self.scheduler.machine, self.truth)
        self._tell(Confirmed(job.name, job.cores, action.number))
