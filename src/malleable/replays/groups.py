"""Jobs of a list by class, user, width, and hour of the week."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.traces.describing.over_time import HOURS, hour_name, hour_of_week
from malleable.traces.study.grouping import widths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, IntArray
    from malleable.model.job_list import JobList


class Groups(NamedTuple):
    """The groups that there are, and the place of each job's own among them."""

    names: tuple[str, ...]
    codes: IntArray

    @property
    def counts(self) -> IntArray:
        """How many jobs are in each."""
        return np.bincount(self.codes, minlength=len(self.names))

    def sums(self, values: FloatArray) -> FloatArray:
        """The sum of a number of the jobs in each."""
        found: FloatArray = np.bincount(self.codes, values, minlength=len(self.names)).astype(float)
        return found

    def means(self, values: FloatArray) -> FloatArray:
        """The mean of a number of the jobs in each."""
        return self.sums(values) / np.maximum(self.counts, 1)


def coded(words: Sequence[str]) -> Groups:
    """A group for each different word."""
    places: dict[str, int] = {}
    codes = np.fromiter((places.setdefault(word, len(places)) for word in words), np.intp, len(words))
    return Groups(tuple(places), codes)


def grouped_by_class(jobs: JobList) -> Groups:
    """The classes of the log, which may be several of the workload each."""
    names = coded(jobs.workload.class_names if jobs.groups is None else jobs.groups)
    return Groups(names.names, names.codes[jobs.classes])


def grouped_by_user(jobs: JobList) -> Groups | None:
    """The users; None where the log names none."""
    return None if jobs.users is None else coded(jobs.users)


def grouped_by_width(jobs: JobList) -> Groups | None:
    """Widths that jobs had in the log: powers of two and what lies between them."""
    if jobs.cores is None:
        return None
    labels = widths(jobs.cores)
    return Groups(labels.names, labels.codes)


def grouped_by_hour(jobs: JobList) -> Groups:
    """The hour of the week in which jobs came, from Monday at 0; without dates, from the first arrival on."""
    names = tuple(hour_name(hour, dated=jobs.epoch is not None) for hour in range(HOURS))
    return Groups(names, hour_of_week(jobs.times, jobs.epoch))
