"""`describe`: a log in numbers: jobs, span, load, widths, laws, cycles, users, and what was dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.traces.base import Trace
from malleable.traces.describing.over_time import area_up_to, day_names, hour_of_week, peak
from malleable.traces.study.grouping import amounts, group_jobs, widths
from malleable.traces.study.laws import scv

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

SLICES = 96
"""Stretches of time in which the load is shown."""
MOST_CLASSES = 8
MOST_USERS = 10


class Law(NamedTuple):
    """The law of some numbers of jobs: mean, squared coefficient of variation, percentiles."""

    mean: float
    scv: float
    p50: float
    p95: float
    p99: float
    largest: float

    @classmethod
    def of(cls, values: FloatArray) -> Law | None:
        """The law of some values; None without any."""
        known = values[np.isfinite(values)]
        if not len(known):
            return None
        tail = (float(one) for one in np.percentile(known, (50, 95, 99, 100)))
        return cls(float(known.mean()), scv(known), *tail)


class Part(NamedTuple):
    """Some of the jobs: how many, and what they used of the machine."""

    name: str
    jobs: int
    core_seconds: float | None
    mean_cores: float
    mean_duration: float | None


@dataclass(frozen=True, eq=False)
class TraceSummary:
    """What a log looks like."""

    trace: Trace = field(repr=False)
    cores: float | None
    """The size of the machine: as it was given, or as the log says."""

    @property
    def core_seconds(self) -> float | None:
        """What all jobs used."""
        found = self.trace.core_seconds
        return None if found is None else float(found.sum())

    @property
    def load(self) -> float | None:
        """Share of the machine that the jobs used over the span; None where it is not known."""
        used, span = self.core_seconds, self.trace.span
        return None if used is None or self.cores is None or span <= 0.0 else used / (self.cores * span)

    @cached_property
    def peak(self) -> float | None:
        """The most cores in use at once; where waits are unknown, as if all jobs had begun at once."""
        trace = self.trace
        if trace.end is None or trace.duration is None:
            return None
        return peak(trace.end - trace.duration, trace.end, trace.cores)

    @cached_property
    def load_over_time(self) -> tuple[FloatArray, FloatArray] | None:
        """Edges of stretches of time in seconds, and the mean number of cores in use in each."""
        trace = self.trace
        if trace.end is None or trace.duration is None or trace.span <= 0.0:
            return None
        edges = np.linspace(0.0, trace.span, SLICES + 1)
        used = area_up_to(edges, trace.end - trace.duration, trace.end, trace.cores)
        return edges, np.diff(used) / np.diff(edges)

    @cached_property
    def laws(self) -> dict[str, Law]:
        """Laws of what the log knows of its jobs."""
        trace = self.trace
        columns = {
            "cores": trace.cores,
            "duration": trace.duration,
            "core_seconds": trace.core_seconds,
            "size": trace.size,
            "wait": trace.wait,
            "interarrival": np.diff(trace.submit),
        }
        found = {name: Law.of(column) for name, column in columns.items() if column is not None}
        return {name: law for name, law in found.items() if law is not None}

    @cached_property
    def cycle(self) -> FloatArray:
        """Jobs that came, by weekday (or day of seven) and hour of the day."""
        places = hour_of_week(self.trace.submit, self.trace.epoch)
        return np.bincount(places, minlength=7 * 24).reshape(7, 24).astype(float)

    @property
    def days(self) -> tuple[str, ...]:
        """What the rows of the cycle are called."""
        return day_names(dated=self.trace.epoch is not None)

    @cached_property
    def classes(self) -> list[Part]:
        """By application where the log names a few, or else by width."""
        groups = group_jobs(self.trace, "auto", MOST_CLASSES)
        return [self._part(name, groups.codes == i) for i, name in enumerate(groups.names)]

    @cached_property
    def widths(self) -> list[Part]:
        """By width: powers of two and what lies between them."""
        labels = widths(self.trace.cores)
        return [self._part(name, labels.codes == i) for i, name in enumerate(labels.names)]

    @cached_property
    def users(self) -> list[Part]:
        """The users with the most core-seconds, or the most jobs where these are not known."""
        users = self.trace.user
        if users is None:
            return []
        used = np.bincount(users.codes + 1, amounts(self.trace), minlength=len(users.names) + 1)[1:]
        most = np.argsort(-used, kind="stable")[:MOST_USERS]
        return [self._part(users.names[i], users.codes == i) for i in most]

    def _part(self, name: str, own: Any) -> Part:
        trace = self.trace
        used = None if trace.core_seconds is None else float(trace.core_seconds[own].sum())
        ran = None if trace.duration is None else float(trace.duration[own].mean())
        return Part(name, int(own.sum()), used, float(trace.cores[own].mean()), ran)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable trace`."""
        trace, load = self.trace, self.load_over_time
        return {
            "log": trace.name,
            "format": trace.format,
            "jobs": len(trace),
            "span": trace.span,
            "unit": trace.unit,
            "cores": self.cores,
            "core_seconds": self.core_seconds,
            "load": self.load,
            "peak": self.peak,
            "classes": [part._asdict() for part in self.classes],
            "widths": [part._asdict() for part in self.widths],
            "users": [part._asdict() for part in self.users],
            "user_count": None if trace.user is None else len(trace.user.names),
            "laws": {name: law._asdict() for name, law in self.laws.items()},
            "cycle": {"days": list(self.days), "jobs": self.cycle.astype(int).tolist()},
            "load_over_time": None
            if load is None
            else {"edges": load[0].tolist(), "cores": load[1].tolist()},
            "dropped": [one._asdict() for one in trace.dropped],
            "notes": list(trace.notes),
        }


def describe(trace: Trace, cores: float | None = None) -> TraceSummary:
    """A log in numbers; `cores` is the size of the machine, where the log does not say or it is another."""
    return TraceSummary(trace, trace.machine if cores is None else cores)
