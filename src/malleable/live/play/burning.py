"""Jobs that burn CPU time: one process per CPU, which works for the job that holds it.

A job on k cores does the work s(k)/k for every second of CPU time that its k processes get. So it stretches
like s(k) where the machine is its own, and is slower where others take CPU time from it.
"""

from __future__ import annotations

import mmap
import subprocess
import sys
import tempfile
from math import inf
from typing import TYPE_CHECKING

from malleable.live.play import burner

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.live.core.decision import Machine
    from malleable.live.core.virtual import VirtualJob
    from malleable.model import Workload

LOOK = 0.002
"""Seconds between two looks at how far jobs are."""
PATIENCE = 10.0
"""Seconds that a process has to end before it is killed."""


class Burners:
    """One process per CPU, pinned to it; idle at first."""

    def __init__(self, cpus: Iterable[int]) -> None:
        self._place = {cpu: i for i, cpu in enumerate(sorted(cpus))}
        self._file = tempfile.NamedTemporaryFile(prefix="malleable-play-")  # noqa: SIM115 - closed by close
        self._file.truncate(16 * len(self._place))
        self._shared = mmap.mmap(self._file.fileno(), 0)
        self._numbers = memoryview(self._shared).cast("d")
        self._processes = [
            subprocess.Popen(  # noqa: S603 - a file of ours
                [sys.executable, "-I", burner.__file__, self._file.name, str(i), str(cpu)]
            )
            for cpu, i in self._place.items()
        ]

    def set(self, cpus: Iterable[int], order: float) -> None:
        """Let these burn, or be idle."""
        for cpu in cpus:
            self._numbers[2 * self._place[cpu]] = order

    def burned(self, cpu: int) -> float:
        """CPU time burned so far, in seconds."""
        return float(self._numbers[2 * self._place[cpu] + 1])

    def close(self) -> None:
        """End the processes."""
        self.set(self._place, burner.END)
        for process in self._processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._numbers.release()
        self._shared.close()
        self._file.close()


class Burning:
    """Jobs on burners; `speed` is how much model time a second is."""

    def __init__(self, truth: Workload, burners: Burners, speed: float) -> None:
        self._truth, self._burners, self._speed = truth, burners, speed
        self._jobs: dict[str, VirtualJob] = {}
        self._held: dict[str, dict[int, float]] = {}
        """The CPUs of each job, and what they had burned when it was last looked at."""
        self.seconds = 0.0
        """CPU time that jobs have had."""

    def add(self, job: VirtualJob) -> None:
        self._jobs[job.name], self._held[job.name] = job, {}

    def resize(self, name: str, cores: int, cpus: Sequence[int], now: float, machine: Machine) -> None:
        job = self._jobs[name]
        self._look(job, now)
        self._burners.set(self._held[name], burner.IDLE)
        job.since = max(
            job.since, now
        )  # what it has done was counted, and is not to be reckoned from its speed
        job.resize(cores, now, machine, self._truth)
        self._held[name] = {cpu: self._burners.burned(cpu) for cpu in cpus[:cores]}
        self._burners.set(self._held[name], burner.BURN)

    def remove(self, name: str) -> None:
        self._burners.set(self._held.pop(name), burner.IDLE)
        del self._jobs[name]

    def due(self, now: float) -> float:
        return now + LOOK * self._speed if any(self._held.values()) else inf

    def done(self, now: float) -> str | None:
        for name, job in self._jobs.items():
            self._look(job, now)
            if job.left <= 0.0:
                return name
        return None

    def _look(self, job: VirtualJob, now: float) -> None:
        """Count the CPU time that a job has had since the last look, unless it pauses after a resize."""
        held = self._held[job.name]
        for cpu, before in held.items():
            held[cpu] = self._burners.burned(cpu)
            self.seconds += held[cpu] - before
            if now >= job.since:
                job.left -= (held[cpu] - before) * self._speed * job.speed / job.cores

    def close(self) -> None:
        self._burners.close()
