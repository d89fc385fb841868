"""One policy plays a stream of jobs in real time: a broker, and one thread that is the client of all jobs.

Jobs come at their times, whether or not the machine is late, and what they cost counts from then. Orders of
the broker are carried out and confirmed one after the other, as a client with an event loop does. The session
ends with the last arrival, as a simulation does; jobs that are still there are cancelled.
"""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import FloatArray
from malleable.live.broker.broker import Broker, Order
from malleable.live.core.events import Cancelled, Confirmed, Finished, Registered
from malleable.live.core.orders import LastOrder
from malleable.live.core.virtual import VirtualJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.core.scheduler import Scheduler
    from malleable.live.play.work import Work
    from malleable.live.system.cpus import CpuSets
    from malleable.sources.streams import Chunk

TELL = 0.1
"""Seconds between two reports of progress, at most."""


@dataclass
class Seen:
    """What happened, as times of the model."""

    departures: FloatArray
    """When each job left; NaN if it has not."""
    came: int = 0
    """Jobs that came."""
    used: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])
    """Cores in use from a time on."""
    resizes: list[tuple[float, int]] = field(default_factory=list)
    """When a job of which class was resized."""
    late: list[float] = field(default_factory=list)
    """By how much arrivals and departures were late, in seconds."""
    events: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def core_time(self) -> float:
        """Integral of the cores in use."""
        times, cores = np.array(self.used).T
        return float(cores[:-1] @ np.diff(times))


class Session:
    """Plays jobs at `speed` units of model time per second; `run` returns when the last one has come."""

    def __init__(
        self, scheduler: Scheduler, jobs: Chunk, work: Work, speed: float, cpus: CpuSets | None = None
    ) -> None:
        self._scheduler, self._jobs, self._work, self._speed, self._cpus = scheduler, jobs, work, speed, cpus
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._present: dict[str, VirtualJob] = {}
        self._last: dict[str, LastOrder] = {}
        self._in_use = 0
        self.seen = Seen(np.full(jobs.size, nan))

    def run(self, progress: Callable[[int, int], None] | None = None) -> Seen:
        """Play; Ctrl-C ends it early, and what was seen until then is returned."""
        started = time.perf_counter()
        clock = lambda: time.monotonic() * self._speed  # noqa: E731 - a name for an expression
        self._broker = Broker(self._scheduler, self._cpus, clock=clock, speed=self._speed)
        try:
            while self.seen.came < self._jobs.size:
                if progress is not None:
                    progress(self.seen.came, self._jobs.size)
                self._step()
        except KeyboardInterrupt:
            self.seen.interrupted = True
        finally:
            self._end()
            self.seen.seconds = time.perf_counter() - started
        return self.seen

    def _step(self) -> None:
        """Do what is due, or wait until something is."""
        broker, work = self._broker, self._work
        now = broker.now
        arrival, due = float(self._jobs.times[self.seen.came]), work.due(now)
        if arrival <= now and arrival <= due:
            self._note_lateness(now - arrival)
            self._arrive(self.seen.came, now)
        elif (name := work.done(now)) is not None:
            if due <= now:
                self._note_lateness(now - due)
            self._depart(name)
        else:
            wait = min((min(arrival, due) - now) / self._speed, TELL)
            try:
                self._carry_out(self._orders.get(timeout=max(wait, 0.0)))
            except queue.Empty:
                return
        while not self._orders.empty():
            self._carry_out(self._orders.get())

    def _arrive(self, j: int, now: float) -> None:
        i, size = int(self._jobs.classes[j]), float(self._jobs.sizes[j])
        job = self._present[str(j)] = VirtualJob(str(j), i, size, size, since=now)
        self._work.add(job)
        self._last[str(j)] = LastOrder()
        self.seen.came += 1
        self.seen.events += 1
        weight = float(self._jobs.weights[j]) if len(self._jobs.weights) else None
        name = self._scheduler.beliefs.workload.class_names[i]
        self._broker.join(Registered(str(j), name, weight, size=size), self._orders.put)

    def _depart(self, name: str) -> None:
        self._forget(name)
        self.seen.departures[int(name)] = self._broker.now
        self.seen.events += 1
        self._broker.tell(Finished(name))

    def _forget(self, name: str) -> None:
        self._work.remove(name)
        self._use(-self._present.pop(name).cores)
        del self._last[name]

    def _carry_out(self, order: Order) -> None:
        """Change the width of a job, and confirm it; an order that was overtaken is not answered."""
        job = self._present.get(order.job)
        if job is None or not self._last[order.job].take(order):
            return
        now, before, ran = self._broker.now, job.cores, job.ran
        if order.cores != before:
            self._work.resize(order.job, order.cores, order.cpus, now, self._scheduler.machine)
            self._use(order.cores - before)
            if ran and order.cores:
                self.seen.resizes.append((now, job.class_index))
        self.seen.events += 1
        self._broker.tell(Confirmed(order.job, order.cores, order.number))

    def _use(self, more: int) -> None:
        self._in_use += more
        self.seen.used.append((self._broker.now, self._in_use))

    def _note_lateness(self, late: float) -> None:
        self.seen.late.append(late / self._speed)

    def _end(self) -> None:
        """Cancel what is still there, and end the broker and the work."""
        try:
            for name in list(self._present):
                self._forget(name)
                self._broker.tell(Cancelled(name))
        finally:
            self._broker.close()
            self._work.close()
