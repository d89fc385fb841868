"""What came of every job under one policy, and the numbers that follow from it.

The bounded slowdown of a job is max(1, (wait + run time)/max(t, 10 s)), where t is how long the job ran in
the log (Feitelson et al. 1997); where the log does not say so, t is its size, the time on one core.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from malleable.contracts import FloatArray
from malleable.engine.replaying import Usage
from malleable.model.job_list import JobList
from malleable.replays.groups import Groups, grouped_by_class, grouped_by_user

SHORTEST = 10.0
"""Seconds that the shortest job counts for in a bounded slowdown."""


class Spread(NamedTuple):
    """The mean of some values, and their percentiles."""

    mean: float
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: FloatArray) -> Spread:
        """The mean and percentiles of some values; NaN for none."""
        if not len(values):
            return cls(*[np.nan] * 4)
        return cls(float(values.mean()), *(float(one) for one in np.percentile(values, (50, 95, 99))))


@dataclass(frozen=True, eq=False)
class Schedule:
    """When each job started and ended under a policy, and on how many cores."""

    policy: str
    jobs: JobList = field(repr=False)
    cores: float
    starts: FloatArray = field(repr=False)
    ends: FloatArray = field(repr=False)
    core_time: FloatArray = field(repr=False)
    """The integral of each job's cores."""
    resizes: FloatArray = field(repr=False)
    usage: Usage = field(repr=False)
    """Cores in use over time by class of the log (`by_class`)."""
    rents: FloatArray | None = field(default=None, repr=False)
    """The integral of each job's cores times their price, if there are prices."""
    overload: float = 0.0
    """Share of the time with more jobs than cores."""
    events: int = 0
    seconds: float = 0.0
    whole_cores: bool = False
    notes: tuple[str, ...] = ()

    @cached_property
    def waits(self) -> FloatArray:
        """From the arrival of each job to its first core."""
        return np.maximum(self.starts - self.jobs.times, 0.0)

    @cached_property
    def responses(self) -> FloatArray:
        """From the arrival of each job to its end."""
        return self.ends - self.jobs.times

    @cached_property
    def slowdowns(self) -> FloatArray:
        """Bounded slowdowns."""
        return np.maximum(self.responses / np.maximum(run_times(self.jobs), SHORTEST), 1.0)

    @cached_property
    def costs(self) -> FloatArray:
        """What each job cost: its weight times its response time."""
        return self.jobs.weight * self.responses

    @property
    def cost(self) -> float:
        """The mean cost of a job."""
        return float(self.costs.mean())

    @property
    def end(self) -> float:
        """When the last job ended."""
        return float(self.ends.max())

    @property
    def span(self) -> float:
        """From the first arrival to the last end."""
        return self.end - float(self.jobs.times[0])

    @property
    def utilisation(self) -> float:
        """Share of the cores in use over the span."""
        return float(self.core_time.sum()) / (self.cores * self.span) if self.span > 0.0 else 0.0

    @property
    def area_response(self) -> float:
        """The mean response time in which every job counts by its core-seconds in the log."""
        areas = run_times(self.jobs) * (1.0 if self.jobs.cores is None else self.jobs.cores)
        return float(areas @ self.responses / areas.sum())

    @cached_property
    def by_class(self) -> Groups:
        """The classes of the log, and that of each job."""
        return grouped_by_class(self.jobs)

    @cached_property
    def user_slowdowns(self) -> FloatArray | None:
        """The mean bounded slowdown of each user; None where the log names none."""
        users = grouped_by_user(self.jobs)
        return None if users is None else users.means(self.slowdowns)

    @property
    def jain(self) -> float | None:
        """Jain's index over the users' mean slowdowns: 1 if all fare alike, 1/users if one has it all."""
        values = self.user_slowdowns
        return None if values is None else float(values.sum() ** 2 / (len(values) * (values @ values)))

    def waiting(self, times: FloatArray) -> FloatArray:
        """How many jobs have come, and not started, at some times."""
        came = np.searchsorted(self.jobs.times, times, side="right")
        started = np.searchsorted(np.sort(self.starts), times, side="right")
        return (came - started).astype(float)

    @property
    def mean_queue(self) -> float:
        """How many jobs wait, on average over the span."""
        return float(self.waits.sum()) / self.span if self.span > 0.0 else 0.0

    @cached_property
    def longest_queue(self) -> int:
        """The most jobs that ever wait."""
        return int(self.waiting(self.jobs.times).max())

    def measures(self) -> dict[str, Any]:
        """The numbers of a schedule that a simulation has not."""
        return {
            "wait": Spread.of(self.waits)._asdict(),
            "response": Spread.of(self.responses)._asdict(),
            "slowdown": Spread.of(self.slowdowns)._asdict(),
            "area_response": self.area_response,
            "queue": {"mean": self.mean_queue, "most": self.longest_queue},
            "resizes": float(self.resizes.mean()),
            "span": self.span,
            "jain": self.jain,
        }


def run_times(jobs: JobList) -> FloatArray:
    """How long each job ran in the log, or else its size."""
    return jobs.sizes if jobs.run_times is None else jobs.run_times
