"""What is believed of the speedup of each class: as the workload says at first, then as jobs show.

An observation is a job's throughput over a stretch of constant width: units per time on k cores. How much
work a unit is differs from job to job, so only ratios of one job's rates at different widths say something
of s: its first rate is taken to be the speed that is believed at that width, the others follow. A job that
was seen at one width only teaches nothing. `fitting.Learner` makes a speedup of the observations; it is
robust to single bad ones and never leaves the contract of a speedup.

The workload with new speedups costs the policies their tables, so it is made when enough was observed and
only if speeds moved by more than `MATERIAL`.
"""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass, field, replace
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from malleable.fitting import Learner
from malleable.model import ConditionWarning, JobClass, Workload

if TYPE_CHECKING:
    from malleable.contracts import Speedup

MATERIAL = 0.02
"""Change of the logarithm of a speed that is worth new tables."""
GROWTH = 1.25
"""By how much the number of observations grows until the next look."""
LIMIT = 1024
"""The widest width that is learned, at least."""
ABSURD = 50.0
"""Logarithms of rates of one job that differ by more are no observation."""
LEVELS = 9
"""Measured rates of a job of which the median is taken."""


@dataclass
class Stretch:
    """Since when, from how many units on, and on how many cores a job has run without a change."""

    since: float
    units: float
    cores: int


@dataclass
class Throughput:
    """What a job's reports say: its rates over stretches of constant width."""

    stretch: Stretch | None = None
    first: tuple[int, float] | None = None
    """Cores and rate of its first stretch."""
    level: float = 0.0
    """Logarithm of units per work: its first rate over the speed believed then."""
    several: bool = False
    """Whether it was seen at more than one width."""
    levels: deque[float] = field(default_factory=lambda: deque(maxlen=LEVELS))

    def interrupt(self) -> None:
        """The width changes: what happens until the next report is of no use."""
        self.stretch = None

    def report(self, units_done: float, cores: int, now: float) -> tuple[int, float] | None:
        """The width and rate of a stretch that this report ends, if one is long enough."""
        last = self.stretch
        if last is None or last.cores != cores or cores == 0:
            self.stretch = Stretch(now, units_done, cores) if cores else None
            return None
        # Fewer units than cores say more about where units begin and end than about speed.
        if units_done - last.units < max(cores, 1) or now <= last.since:
            return None
        self.stretch = Stretch(now, units_done, cores)
        rate = (units_done - last.units) / (now - last.since)
        return (cores, rate) if 0.0 < rate < float("inf") else None

    @property
    def work_per_unit(self) -> float | None:
        """Time that a unit takes on one core, as far as measured."""
        return exp(-float(np.median(self.levels))) if self.levels else None


class Beliefs:
    """The workload as it is believed to be, and what jobs have shown of its speedups."""

    def __init__(self, workload: Workload, cores: int, *, learn: bool = True) -> None:
        self.workload = self.given = workload
        self.learn = learn
        self._limit = max(LIMIT, cores)
        self._learners: dict[int, Learner] = {}
        self._next_look: dict[int, float] = {}

    def add_class(self, job_class: JobClass) -> int:
        """A class that the workload did not have."""
        self.given = _with_classes(self.given, (*self.given.classes, job_class))
        self.workload = _with_classes(self.workload, (*self.workload.classes, job_class))
        return len(self.workload.classes) - 1

    def learner(self, class_index: int) -> Learner | None:
        """What was learned of a class, if anything was."""
        return self._learners.get(class_index)

    def observe(self, class_index: int, job: Throughput, cores: int, rate: float) -> bool:
        """Take in a job's rate on so many cores; whether the believed speedups have changed."""
        level = log(rate) - log(float(self.workload.speedups[class_index](cores)))
        if job.first is not None and abs(level - job.level) > ABSURD:
            return False
        job.levels.append(level)
        if job.first is None:
            job.first, job.level = (cores, rate), level
        if not self.learn:
            return False
        if not job.several:
            if cores == job.first[0]:
                return False
            job.several = True
            self._learn(class_index, *job.first, job.level)
        self._learn(class_index, cores, rate, job.level)
        return self._look(class_index)

    def _learn(self, class_index: int, cores: int, rate: float, level: float) -> None:
        if class_index not in self._learners:
            prior = self.given.speedups[class_index]
            self._learners[class_index] = Learner(prior, limit=self._limit)
        self._learners[class_index].add(cores, exp(log(rate) - level))

    def _look(self, class_index: int) -> bool:
        """Believe the learner, if it has seen enough since the last look and has something to say."""
        learner = self._learners[class_index]
        if learner.observations < self._next_look.get(class_index, 2.0):
            return False
        self._next_look[class_index] = GROWTH * learner.observations + 1.0
        found = learner.speedup
        if _distance(found, self.workload.speedups[class_index], self._limit) <= MATERIAL:
            return False
        classes = list(self.workload.classes)
        classes[class_index] = replace(classes[class_index], speedup=found)
        self.workload = _with_classes(self.workload, tuple(classes))
        return True


def _distance(one: Speedup, other: Speedup, limit: int) -> float:
    """The largest difference of the logarithms of two speedups."""
    widths = 2.0 ** np.arange(int(np.log2(limit)) + 1)
    return float(np.abs(np.log(one(widths) / other(widths))).max())


def _with_classes(workload: Workload, classes: tuple[JobClass, ...]) -> Workload:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload(workload.name, classes)
