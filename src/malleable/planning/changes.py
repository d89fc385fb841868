"""Workloads and logs that are a little different: more arrivals, one class more, less that is sequential."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.arrivals.poisson import Poisson
from malleable.contracts import Speedup
from malleable.errors import ParameterError, TraceError, UnsupportedError, WorkloadError, did_you_mean
from malleable.model import Workload
from malleable.model.widths import WHOLE, Widths
from malleable.planning.targets import read_share
from malleable.replays.groups import grouped_by_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray, IntArray
    from malleable.model import JobClass
    from malleable.model.job_list import JobList

HOUR, DAY = 3600.0, 86400.0
MORNING, EVENING = 7.0 * HOUR, 22.0 * HOUR
"""Between these it is day."""


@dataclass(frozen=True)
class Changes:
    """What is asked to be different, each change alone."""

    growth: float | str | None = None
    halve: str | None = None
    add: Workload | None = None
    night: str | None = None
    make_malleable: float | str | None = None

    def of_workload(self, workload: Workload) -> list[tuple[str, Workload]]:
        """The changed workloads, and what they are called."""
        if self.night is not None:
            raise UnsupportedError("a workload's arrivals are the same day and night", "give a log")
        found = []
        if self.growth is not None:
            share = read_share(self.growth, "growth")
            found.append((_more_arrivals(share), grown(workload, share)))
        if self.add is not None:
            found.append((f"also {', '.join(self.add.class_names)}", with_classes(workload, self.add)))
        if self.halve is not None:
            found.append((_half(self.halve), halved(workload, self.halve)))
        if self.make_malleable is not None:
            share = _part(self.make_malleable)
            found.append((_malleable(share), made_malleable(workload, share)))
        return found

    def of_log(self, jobs: JobList, remade: Callable[..., JobList] | None) -> list[tuple[str, JobList]]:
        """The changed jobs, and what they are called; `remade` makes the jobs of the log anew."""
        if self.add is not None:
            raise UnsupportedError("a log has the classes that it has", "use --growth, or plan a workload")
        found = []
        if self.growth is not None:
            share = read_share(self.growth, "growth")
            found.append((_more_arrivals(share), grown_log(jobs, share)))
        if self.halve is not None:
            _known_class(jobs, self.halve)
            found.append((_half(self.halve), halved_log(jobs, self.halve)))
        if self.night is not None:
            found.append((f"{self.night} by night", by_night(jobs, _known_class(jobs, self.night))))
        if self.make_malleable is not None:
            if remade is None:
                raise UnsupportedError("given jobs are as they are", "give the log that they were made from")
            share = _part(self.make_malleable)
            found.append((_malleable(share), remade(malleable=share)))
        return found


NONE = Changes()


def _more_arrivals(share: float) -> str:
    return f"{100.0 * abs(share):.4g} % {'more' if share > 0.0 else 'fewer'} arrivals"


def _half(name: str) -> str:
    return f"half the sequential part of {name}"


def _malleable(share: float) -> str:
    return f"{100.0 * share:.4g} % of the jobs malleable"


def _part(text: float | str) -> float:
    """A share of the jobs."""
    share = read_share(text, "make-malleable")
    if not 0.0 < share <= 1.0:
        raise ParameterError(f"make-malleable must be a share of the jobs, got {text}", "write 20% or 0.2")
    return share


def _known_class(jobs: JobList, name: str) -> IntArray:
    """The jobs of a class of the log."""
    groups = grouped_by_class(jobs)
    if name not in groups.names:
        raise ParameterError(f"no class is called {name!r:.60}", did_you_mean(name, groups.names))
    return np.flatnonzero(groups.codes == groups.names.index(name))


SEQUENTIAL = ("sequential", "contention")
"""What families of speedups call the part that no core makes faster."""


def grown(workload: Workload, share: float) -> Workload:
    """All arrival rates higher by a share."""
    return workload.scaled(1.0 + share)


def with_classes(workload: Workload, other: Workload) -> Workload:
    """The classes of another workload as well."""
    twice = sorted(set(workload.class_names) & set(other.class_names))
    if twice:
        raise WorkloadError(f"both workloads have a class {twice[0]!r}", "rename one of them")
    return Workload(workload.name, (*workload.classes, *other.classes))


def halved(workload: Workload, name: str) -> Workload:
    """A class with half its sequential part."""
    job_class = workload.classes[workload.index(name)]
    speedup = job_class.speedup
    part = next((key for key in SEQUENTIAL if hasattr(speedup, key)), None)
    if part is None:
        raise UnsupportedError(
            f"class {name!r} has a {speedup.kind} speedup, which has no sequential part",
            "give it an amdahl or usl speedup; `malleable fit` finds one",
        )
    faster = Speedup.of({**speedup.to_dict(), part: 0.5 * float(getattr(speedup, part))})
    return _replaced(workload, name, (replace(job_class, speedup=faster),))


def made_malleable(workload: Workload, share: float) -> Workload:
    """A share of the jobs of each rigid or moldable class can be resized, on any whole width."""
    classes: list[JobClass] = []
    for one in workload.classes:
        if one.shape == "malleable":
            classes.append(one)
            continue
        if not one.arrivals.poisson:
            raise UnsupportedError(
                f"class {one.name!r} has {one.arrivals.kind} arrivals, which do not divide into two streams",
                "use poisson arrivals",
            )
        free = replace(
            one,
            name=f"{one.name} (malleable)",
            arrivals=Poisson(rate=share * one.arrivals.rate),
            shape="malleable",
            width=None,
            widths=one.widths if one.shape == "moldable" else Widths(WHOLE),
        )
        left = () if share == 1.0 else (replace(one, arrivals=one.arrivals.faster(1.0 - share)),)
        classes += [*left, free]
    if len(classes) == len(workload.classes) and all(one.shape == "malleable" for one in workload.classes):
        raise UnsupportedError(f"all jobs of {workload.name} are malleable already", "leave it out")
    return Workload(workload.name, tuple(classes))


def grown_log(jobs: JobList, share: float) -> JobList:
    """The same jobs, which come in a time that is shorter by so much that there are more per hour."""
    first = float(jobs.times[0])
    return at_other_times(jobs, first + (jobs.times - first) / (1.0 + share))


def halved_log(jobs: JobList, name: str) -> JobList:
    """The jobs of a class of the log with half their sequential part."""
    workload = jobs.workload
    for own, group in zip(workload.class_names, jobs.groups or workload.class_names, strict=True):
        workload = halved(workload, own) if group == name else workload
    return replace(jobs, workload=workload)


def by_night(jobs: JobList, rows: IntArray) -> JobList:
    """Some of the jobs come at night: those of the day wait for ten in the evening."""
    if jobs.epoch is None:
        raise TraceError("the log does not say at what time of the day it begins", "plan without the night")
    clock = (jobs.times[rows] + jobs.epoch) % DAY
    by_day = (clock >= MORNING) & (clock < EVENING)
    times = jobs.times.copy()
    times[rows] += np.where(by_day, EVENING - clock, 0.0)
    return at_other_times(jobs, times)


def some_jobs(jobs: JobList, rows: Any, **columns: Any) -> JobList:
    """Some of the jobs, in the order of the rows; `columns` have other values for these."""
    for name in ("times", "classes", "sizes", "weights", "cores", "run_times", "estimates", "waits"):
        column = getattr(jobs, name)
        columns.setdefault(name, None if column is None else column[rows])
    for name in ("ids", "users"):
        words = getattr(jobs, name)
        columns[name] = None if words is None else tuple(words[int(row)] for row in rows)
    return replace(jobs, **columns)


def at_other_times(jobs: JobList, times: FloatArray) -> JobList:
    """The same jobs, which come at other times; what the log says of their waits is forgotten."""
    order = np.argsort(times, kind="stable")
    return some_jobs(jobs, order, times=np.asarray(times)[order], waits=None)


def _replaced(workload: Workload, name: str, by: tuple[JobClass, ...]) -> Workload:
    classes = [by if one.name == name else (one,) for one in workload.classes]
    return replace(workload, classes=tuple(one for some in classes for one in some))
