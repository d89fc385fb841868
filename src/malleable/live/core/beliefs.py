"""What is believed of each class, its speedup and its sizes: as the workload says, then as jobs show.

An observation is a job's throughput over a stretch of constant width: units per time on k cores. How much
work a unit is differs from job to job, so only ratios of one job's rates at different widths say something
of s (`live.core.rate_ratios`); a job that was seen at one width only teaches nothing. `fitting.Learner`
makes a speedup of them that never leaves its contract.

The workload with new speedups costs the policies their tables, so it is made when enough was observed and
only if speeds moved by more than `MATERIAL`.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from malleable.fitting import Learner
from malleable.live.core.learned_sizes import GivenSizes, LearnedSizes
from malleable.live.core.rate_ratios import relative_speeds
from malleable.live.core.unknown_jobs import UNKNOWN
from malleable.model import ConditionWarning, JobClass, Workload

if TYPE_CHECKING:
    from malleable.contracts import Distribution, Speedup
    from malleable.live.core.estimates import Sizes

MATERIAL = 0.02
"""Change of the logarithm of a speed that is worth new tables."""
GROWTH = 1.25
"""By how much the number of observations grows until the next look."""
LIMIT = 1024
"""The widest width that is learned, at least."""
LARGEST = 300.0
"""Logarithm of the most work that a unit may be."""
SAMPLES = 9
"""Rates of a job of which the median is taken."""
MOST_WIDTHS = 16
"""Widths of one job that are kept."""
MOST_JOBS = 256
"""Jobs per class that are remembered, the latest."""
CERTAIN = 8
"""Jobs at a width that are as good as any number."""


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
    rates: dict[int, deque[float]] = field(default_factory=dict)
    """The last logarithms of its rates at each width."""
    levels: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    """The last logarithms of units per work, by the speeds believed at the time."""

    def add(self, cores: int, rate: float, speed: float) -> None:
        """Take in a rate on so many cores, on which work is believed to go at this speed."""
        if cores in self.rates or len(self.rates) < MOST_WIDTHS:
            self.rates.setdefault(cores, deque(maxlen=SAMPLES)).append(log(rate))
        self.levels.append(log(rate) - log(speed))

    @property
    def typical(self) -> dict[int, float]:
        """The median logarithm of its rates at each width."""
        return {cores: float(np.median(values)) for cores, values in self.rates.items()}

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
        return exp(-float(np.median(self.levels).clip(-LARGEST, LARGEST))) if self.levels else None


class Beliefs:
    """The workload as it is believed to be, and what jobs have shown of its speedups."""

    def __init__(self, workload: Workload, cores: int, *, learn: bool = True) -> None:
        self.workload = self.given = workload
        self.learn = learn
        laws = [one.size for one in workload.classes]
        self.sizes: Sizes = LearnedSizes(list(map(_law, workload.classes))) if learn else GivenSizes(laws)
        self._limit = max(LIMIT, cores)
        self._learners: dict[int, Learner] = {}
        self._teachers: defaultdict[int, deque[Throughput]] = defaultdict(lambda: deque(maxlen=MOST_JOBS))
        """Jobs of each class that were seen at several widths."""
        self._observations: Counter[int] = Counter()
        self._next_look: dict[int, float] = {}

    def add_class(self, job_class: JobClass) -> int:
        """A class that the workload did not have."""
        self.given = _with_classes(self.given, (*self.given.classes, job_class))
        self.workload = _with_classes(self.workload, (*self.workload.classes, job_class))
        if isinstance(self.sizes, LearnedSizes):
            self.sizes.add_class(_law(job_class))
        else:
            self.sizes.laws.append(job_class.size)
        return len(self.workload.classes) - 1

    def replace_class(self, class_index: int, job_class: JobClass) -> None:
        """Another class in the place of one, of which nothing is remembered."""
        self.given = _with_class(self.given, class_index, job_class)
        self.workload = _with_class(self.workload, class_index, job_class)
        for memory in (self._learners, self._teachers, self._observations, self._next_look):
            memory.pop(class_index, None)

    def learner(self, class_index: int) -> Learner | None:
        """What was learned of a class, if anything was."""
        return self._learners.get(class_index)

    def observe(self, class_index: int, job: Throughput, cores: int, rate: float) -> bool:
        """Take in a job's rate on so many cores; whether the believed speedups have changed."""
        before = len(job.rates)
        job.add(cores, rate, float(self.workload.speedups[class_index](cores)))
        if not self.learn or len(job.rates) < 2:
            return False
        if before == 1:
            self._teachers[class_index].append(job)
        self._observations[class_index] += 1
        return self._look(class_index)

    def _look(self, class_index: int) -> bool:
        """Learn anew, if enough was observed since the last look; whether that moves speeds."""
        seen = self._observations[class_index]
        if seen < self._next_look.get(class_index, 1.0):
            return False
        self._next_look[class_index] = GROWTH * seen + 1.0
        learner = self._learners[class_index] = self._taught(class_index)
        found = learner.speedup
        if _distance(found, self.workload.speedups[class_index], self._limit) <= MATERIAL:
            return False
        taught = replace(self.workload.classes[class_index], speedup=found)
        self.workload = _with_class(self.workload, class_index, taught)
        return True

    def _taught(self, class_index: int) -> Learner:
        """What all remembered jobs of a class teach, from the prior on."""
        prior = self.given.speedups[class_index]
        jobs = [job.typical for job in self._teachers[class_index]]
        seen = Counter(cores for job in jobs for cores in job)
        speeds = relative_speeds(jobs, {cores: log(float(prior(cores))) for cores in seen})
        learner = Learner(prior, limit=self._limit)
        for cores, times in sorted(seen.items()):
            for _ in range(min(times, CERTAIN)):
                learner.add(cores, exp(speeds[cores]))
        return learner


def _law(job_class: JobClass) -> Distribution | None:
    """The law of sizes that is given of a class; None if nothing is known of it."""
    return None if job_class.size == UNKNOWN.size else job_class.size


def _distance(one: Speedup, other: Speedup, limit: int) -> float:
    """The largest difference of the logarithms of two speedups."""
    widths = 2.0 ** np.arange(int(np.log2(limit)) + 1)
    return float(np.abs(np.log(one(widths) / other(widths))).max())


def _with_class(workload: Workload, class_index: int, job_class: JobClass) -> Workload:
    classes = list(workload.classes)
    classes[class_index] = job_class
    return _with_classes(workload, tuple(classes))


def _with_classes(workload: Workload, classes: tuple[JobClass, ...]) -> Workload:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload(workload.name, classes)
