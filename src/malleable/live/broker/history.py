"""Who had how many cores over time, in memory that does not grow.

    history.record(now, status(broker))     # whenever something changed
    history.document()                      # columns, for `GET /v1/history` and the page
    history.log()                           # the jobs that came and went, for `GET /v1/past-jobs`

A sample holds from its time until the next one. When there are too many, neighbours in the older half are
merged in pairs: what is kept of them is their average over time, so areas stay what they were, and the past
grows coarser the longer ago it is.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_SAMPLES = 720
"""Samples of the whole machine that are kept."""
MOST_STEPS = 120
"""Samples that are kept of each job."""
MOST_JOBS = 500
"""Jobs present whose history is kept; that of later ones is not."""
MOST_ENDED = 50
"""Jobs that are gone and still remembered."""

MOST_LOGGED = 100_000
"""Jobs that are gone of which the log keeps a line."""

Values = dict[str, float]


@dataclass
class Track:
    """Numbers that hold from a time on, at most `most` samples of them.

    A number that is missing from a sample is not known, or is 0 where `absent` says so.
    """

    most: int
    absent: float | None = None
    times: list[float] = field(default_factory=list)
    values: list[Values] = field(default_factory=list)

    def add(self, now: float, values: Values) -> None:
        """From now on these are the numbers."""
        if self.values and self.values[-1] == values:
            return
        if self.times and now <= self.times[-1]:
            self.values[-1] = values
            return
        self.times.append(now)
        self.values.append(values)
        if len(self.times) > self.most:
            self._thin_out()

    def _thin_out(self) -> None:
        """Merge the samples of the older half in pairs; each holds until the next."""
        pairs = len(self.times) // 4
        times, values = [], []
        for first in range(0, 2 * pairs, 2):
            start, middle, end = self.times[first : first + 3]
            times.append(start)
            one, other = self.values[first : first + 2]
            values.append(self._mean(one, other, (middle - start) / (end - start)))
        self.times[: 2 * pairs] = times
        self.values[: 2 * pairs] = values

    def _mean(self, one: Values, other: Values, share: float) -> Values:
        """The average of two samples, of which the first counts `share`; what only one knows is that."""
        keys = {**one, **other}
        if self.absent is None:
            one, other = {**other, **one}, {**one, **other}
        blank = self.absent or 0.0
        return {key: share * one.get(key, blank) + (1.0 - share) * other.get(key, blank) for key in keys}

    def columns(self, keys: Sequence[str]) -> dict[str, list[float | None]]:
        """The numbers of each key, None where one is not known."""
        return {key: [values.get(key, self.absent) for values in self.values] for key in keys}


@dataclass
class JobTrack:
    """The width and progress of a job over time."""

    job_class: str
    track: Track = field(default_factory=lambda: Track(MOST_STEPS))
    ended: float | None = None

    def document(self) -> dict[str, Any]:
        """The job's part of the document."""
        found = self.track.columns(("granted", "progress"))
        return {"class": self.job_class, "ended": self.ended, "time": list(self.track.times), **found}


@dataclass
class Stay:
    """A job as a log has it: when it came, began and went, and the core-seconds that it was granted."""

    job_class: str
    weight: float | None
    came: float
    began: float | None = None
    went: float | None = None
    core_seconds: float = 0.0
    granted: float = 0.0
    at: float = 0.0

    def follow(self, now: float, granted: float) -> None:
        """From now on it has so many cores."""
        self.core_seconds += self.granted * max(now - self.at, 0.0)
        self.granted, self.at = granted, now
        if self.began is None and granted > 0.0:
            self.began = now


class History:
    """Samples of the machine and of its jobs, thinned out as they grow old."""

    def __init__(self, most_samples: int = MOST_SAMPLES) -> None:
        self._machine = Track(most_samples)
        self._cores_by_class = Track(most_samples, absent=0.0)
        self._present: dict[str, JobTrack] = {}
        self._gone: deque[tuple[str, JobTrack]] = deque(maxlen=MOST_ENDED)
        self._stays: dict[str, Stay] = {}
        self._log: deque[tuple[str, Stay]] = deque(maxlen=MOST_LOGGED)
        self._lock = threading.Lock()

    def record(self, now: float, status: Mapping[str, Any]) -> None:
        """Take a sample of a status document; `now` is a time that does not go back."""
        with self._lock:
            self._record(now, status)

    def _record(self, now: float, status: Mapping[str, Any]) -> None:
        jobs = status["jobs"]
        cost = status.get("cost") or {}
        self._machine.add(
            now,
            _known(
                cores=status["cores"],
                price=status["price"],
                jobs=status["present"],
                waiting=status["waiting"],
                cost=cost.get("so_far"),
                bound=cost.get("bound"),
            ),
        )
        by_class: Values = {}
        for job in jobs:
            by_class[job["class"]] = by_class.get(job["class"], 0.0) + job["granted"]
        self._cores_by_class.add(now, {name: cores for name, cores in by_class.items() if cores})
        self._record_jobs(now, jobs, complete=len(jobs) == status["present"])

    def _record_jobs(self, now: float, jobs: Sequence[Mapping[str, Any]], *, complete: bool) -> None:
        for job in jobs:
            stay = self._stays.get(job["id"])
            if stay is None:
                stay = self._stays[job["id"]] = Stay(job["class"], job.get("weight"), now, at=now)
            stay.follow(now, job["granted"])
            kept = self._present.get(job["id"])
            if kept is None:
                if len(self._present) >= MOST_JOBS:
                    continue
                kept = self._present[job["id"]] = JobTrack(job["class"])
            kept.track.add(now, _known(granted=job["granted"], progress=job["progress"]))
        here = {job["id"] for job in jobs}
        for name in [name for name in self._present if name not in here]:
            gone = self._present.pop(name)
            gone.ended = now
            self._gone.append((name, gone))
        if not complete:  # who is not listed may be there all the same
            return
        for name in [name for name in self._stays if name not in here]:
            stay = self._stays.pop(name)
            stay.follow(now, 0.0)
            stay.went = now
            self._log.append((name, stay))

    def document(self) -> dict[str, Any]:
        """Columns of numbers: the machine's, the cores of each class, and each job's."""
        with self._lock:
            return self._document()

    def log(self) -> dict[str, list[Any]]:
        """The jobs that were there, those that are gone first: a column for each thing known of them."""
        with self._lock:
            rows = [*self._log, *self._stays.items()]
        columns = ("job_class", "weight", "came", "began", "went", "core_seconds")
        found: dict[str, list[Any]] = {"id": [name for name, _ in rows]}
        return found | {column: [getattr(stay, column) for _, stay in rows] for column in columns}

    def _document(self) -> dict[str, Any]:
        names = list(dict.fromkeys(name for values in self._cores_by_class.values for name in values))
        return {
            "machine": {
                "time": list(self._machine.times),
                **self._machine.columns(("cores", "price", "jobs", "waiting", "cost", "bound")),
            },
            "classes": {
                "time": list(self._cores_by_class.times),
                "granted": self._cores_by_class.columns(names),
            },
            "jobs": {name: kept.document() for name, kept in [*self._gone, *self._present.items()]},
        }


def _known(**values: float | None) -> Values:
    return {key: float(value) for key, value in values.items() if value is not None}
