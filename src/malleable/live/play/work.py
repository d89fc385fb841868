"""Jobs that stretch like s(k): what they have left, and when they will be done.

They do nothing but wait, so there may be more cores than the machine has. One heap holds the times at which
they are due; a job whose width changes is put in again, and its older entries are skipped.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.live.core.decision import Machine
    from malleable.live.core.virtual import VirtualJob
    from malleable.model import Workload


class Work(Protocol):
    """Carries out jobs. Times are the model's."""

    def add(self, job: VirtualJob) -> None:
        """A job that has no cores yet."""

    def resize(self, name: str, cores: int, cpus: Sequence[int], now: float, machine: Machine) -> None:
        """A job uses so many cores from now on, on these CPUs where CPUs are bound."""

    def remove(self, name: str) -> None:
        """A job has ended; what it used is idle."""

    def due(self, now: float) -> float:
        """When the next job will be done, or when to look again."""

    def done(self, now: float) -> str | None:
        """A job that is done."""

    def close(self) -> None:
        """End whatever works."""


class Sleeping:
    """Jobs that sleep for as long as they would work."""

    def __init__(self, truth: Workload) -> None:
        self._truth = truth
        self._jobs: dict[str, VirtualJob] = {}
        self._heap: list[tuple[float, str]] = []

    def add(self, job: VirtualJob) -> None:
        self._jobs[job.name] = job

    def resize(self, name: str, cores: int, cpus: Sequence[int], now: float, machine: Machine) -> None:
        del cpus
        job = self._jobs[name]
        job.resize(cores, now, machine, self._truth)
        if job.done_at < inf:
            heapq.heappush(self._heap, (job.done_at, name))

    def remove(self, name: str) -> None:
        del self._jobs[name]

    def due(self, now: float) -> float:
        del now
        while self._heap:
            moment, name = self._heap[0]
            if name in self._jobs and self._jobs[name].done_at == moment:
                return moment
            heapq.heappop(self._heap)
        return inf

    def done(self, now: float) -> str | None:
        return self._heap[0][1] if self.due(now) <= now else None

    def close(self) -> None:
        pass
