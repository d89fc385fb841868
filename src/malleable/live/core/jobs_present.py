"""The jobs present and what is known of each: who they are, how fast they work, how much is left."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.live.core.beliefs import Beliefs, Throughput
from malleable.live.core.estimates import remaining_work, work_done
from malleable.live.core.job_table import (
    ARRIVED,
    CLASS,
    DECLARED,
    DONE,
    KEPT,
    MEMORY,
    MOST,
    NEVER_PAUSE,
    NUMBER,
    OWN_WEIGHT,
    RAN,
    SINCE,
    SIZE,
    SPEED,
    STARTED,
    TARGET,
    WAITS_SINCE,
    WEIGHT,
    JobTable,
)
from malleable.live.core.learned_sizes import LearnedSizes

if TYPE_CHECKING:
    from malleable.live.core.decision import Machine
    from malleable.live.core.events import Registered
    from malleable.model import JobClass, Workload

LARGEST = 1e150
"""Work beyond this is as good as infinite."""


class JobsPresent:
    """A table of jobs, the units they have reported, and what their throughput says of their speedups."""

    def __init__(self, workload: Workload, cores: int, *, learn: bool) -> None:
        self.table = JobTable()
        self.beliefs = Beliefs(workload, cores, learn=learn)
        self._throughputs: dict[str, Throughput] = {}
        self._units: dict[str, tuple[float, float | None]] = {}
        self._speeds: dict[tuple[int, int], float] = {}
        self._came = 0

    def add(self, event: Registered, class_index: int, cores: int, now: float) -> None:
        """A new job; `cores` are those that it uses already and may go on using."""
        cost = float(self.beliefs.workload.holding_costs[class_index])
        before = float(event.cores > 0 or event.started)
        self.table.add(
            event.job,
            {
                CLASS: class_index, WEIGHT: event.weight or cost, OWN_WEIGHT: event.weight is not None,
                ARRIVED: now - event.age, SIZE: nan if event.size is None else event.size,
                DONE: event.work_done, SINCE: now, SPEED: self._speed(class_index, cores),
                TARGET: cores, KEPT: cores, STARTED: before, RAN: before,
                MEMORY: event.memory, NEVER_PAUSE: event.never_pause,
                MOST: event.max_cores or inf, DECLARED: event.size is not None, WAITS_SINCE: now,
                NUMBER: self._came,
            },
        )  # fmt: skip
        self._came += 1
        if event.units is not None:
            self._units[event.job] = (0.0, event.units)

    def end(self, job: str, now: float, *, finished: bool) -> None:
        """A job ended: learn from it, and forget it."""
        row, i, sizes = self.table.row_of[job], self.class_of(job), self.beliefs.sizes
        if isinstance(sizes, LearnedSizes):
            done = float(work_done(self.table, np.array([row]), now)[0])
            declared = float(self.table[SIZE][row]) if self.table[DECLARED][row] else None
            sizes.end(i, done, finished=finished, declared=declared)
            throughput = self._throughputs.get(job)
            if throughput is not None and throughput.work_per_unit is not None:
                sizes.seen[i].unit_work.append(throughput.work_per_unit)
        self.remove(job)

    def remove(self, job: str) -> None:
        """Forget a job."""
        self.table.remove(job)
        self._throughputs.pop(job, None)
        self._units.pop(job, None)

    def class_of(self, job: str) -> int:
        """The position of a job's class."""
        return int(self.table[CLASS][self.table.row_of[job]])

    def units_done(self, job: str) -> float:
        """Units that a job has reported."""
        return self._units.get(job, (0.0, None))[0]

    def units_in_all(self, job: str) -> float | None:
        """Units that a job has, if it said so."""
        return self._units.get(job, (0.0, None))[1]

    def progress(self, job: str, done: float, units: float | None, cores: int, now: float) -> bool:
        """A report of a job that uses so many cores; whether the believed speedups have changed.

        With `units` 0 it is not known how many there are.
        """
        row, i = self.table.row_of[job], self.class_of(job)
        before = self._units.get(job, (0.0, None))[1] if units is None else units or None
        total = None if before is None else max(before, done)
        self._units[job] = (done, total)
        throughput = self._throughputs.setdefault(job, Throughput())
        found = throughput.report(done, cores, now)
        changed = found is not None and self.beliefs.observe(i, throughput, *found)
        work = throughput.work_per_unit or self._supposed_work(row, i, total)
        if total is not None and work is not None:
            self.table[SIZE][row] = min(total * work, LARGEST)
            self.table[DONE][row] = min(done * work, LARGEST)
            self.table[SINCE][row] = max(now, self.table[SINCE][row])
            self.table[DECLARED][row] = 0.0
        elif units == 0.0 and not self.table[DECLARED][row]:
            self.table[SIZE][row] = nan
        return changed

    def _supposed_work(self, row: int, class_index: int, units: float | None) -> float | None:
        """Work of a unit of a job none of whose units was measured: as declared, or as in its class."""
        size, sizes = float(self.table[SIZE][row]), self.beliefs.sizes
        if units is not None and not isnan(size):
            return size / units
        if isinstance(sizes, LearnedSizes):
            return sizes.unit_work(class_index)
        return None if units is None else sizes.laws[class_index].mean / units

    def change_width(self, job: str, before: int, after: int, machine: Machine, now: float) -> None:
        """A job goes on at another speed; one that ran before pauses and loses work, as its class says."""
        row, i = self.table.row_of[job], self.class_of(job)
        self._settle_work(row, now)
        if after > 0:
            if self.table[RAN][row] > 0.0:
                pause = machine.pause(i, before, after)
                if pause > 0.0:
                    self.table[SINCE][row] = now + pause
                lost = machine.workload.job_types[i].resize.work
                self.table[DONE][row] = max(self.table[DONE][row] - lost, 0.0)
            self.table[RAN][row] = 1.0
        self.table[SPEED][row] = self._speed(i, after)
        if job in self._throughputs:
            self._throughputs[job].interrupt()

    def change_class(self, job: str, class_index: int, cores: int, now: float) -> None:
        """A job is of another class; what its throughput said counts no longer."""
        row = self.table.row_of[job]
        self._settle_work(row, now)
        self.table[CLASS][row], self.table[SPEED][row] = class_index, self._speed(class_index, cores)
        if not self.table[OWN_WEIGHT][row]:
            self.table[WEIGHT][row] = self.beliefs.workload.holding_costs[class_index]
        self._throughputs.pop(job, None)

    def replace_class(self, class_index: int, job_class: JobClass) -> None:
        """Another class takes the place of one that no job is of."""
        self.beliefs.replace_class(class_index, job_class)
        self._speeds = {key: speed for key, speed in self._speeds.items() if key[0] != class_index}

    def change_speeds(self, in_use: dict[str, int], now: float) -> None:
        """Speedups are believed to be others: the work done stays, speeds are new."""
        self._speeds.clear()
        for job, cores in in_use.items():
            row = self.table.row_of[job]
            self._settle_work(row, now)
            self.table[SPEED][row] = self._speed(int(self.table[CLASS][row]), cores)

    def _settle_work(self, row: int, now: float) -> None:
        """Add the work done since the last change."""
        self.table[DONE][row] = work_done(self.table, np.array([row]), now)[0]
        self.table[SINCE][row] = max(now, self.table[SINCE][row])

    def _speed(self, class_index: int, cores: int) -> float:
        """The believed speed on a whole number of cores."""
        key = class_index, cores
        if key not in self._speeds:
            self._speeds[key] = float(self.beliefs.workload.speedups[class_index](cores))
        return self._speeds[key]

    def state(self, now: float) -> dict[str, Any]:
        """What is known of each job, as plain values that compare."""
        rows = self.table.rows()
        remaining, _ = remaining_work(self.table, rows, now, self.beliefs.sizes)
        numbers = self.table.columns[:, rows]
        columns = np.where(np.isnan(numbers), None, numbers).T.tolist()  # type: ignore[call-overload]
        return {
            job: {"remaining": left, "units": self._units.get(job), "columns": values}
            for job, left, values in zip(
                (self.table.ids[row] for row in rows.tolist()), remaining.tolist(), columns, strict=True
            )
        }
