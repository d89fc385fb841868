"""One policy on given jobs, and the schedule that the log itself records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Policy
from malleable.engine.enforcement import blame_policy, label
from malleable.engine.replaying import Usage, replay_jobs
from malleable.replays.groups import grouped_by_class
from malleable.replays.schedule import Schedule
from malleable.simulation.given import ready
from malleable.traces.describing.over_time import area_up_to, peak

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray, IntArray
    from malleable.engine.job_log import PricePath
    from malleable.model.job_list import JobList
    from malleable.theory.price_path import JobsBound

OWN = "the log itself"
"""What the schedule of the log is called among the policies."""
SLICES = 1024
"""Slices of time in which the cores in use are summed."""
MOST_UNKNOWN = 0.01
"""Share of the jobs whose wait may be unknown."""
ROUNDING = 1e-9


def run_policy(
    policy: Any,
    jobs: JobList,
    cores: float,
    *,
    prices: PricePath | None = None,
    interpreted: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Schedule | None:
    """The jobs under a policy until the last has left; None if it was interrupted."""
    chosen = Policy.of(policy)
    name = label(policy, chosen)
    with blame_policy(chosen, name):
        made = ready(chosen, jobs, cores)
        found = replay_jobs(
            made.workload, cores, made.program, made.jobs,
            name=name, prices=prices, interpreted=interpreted, progress=progress,
        )  # fmt: skip
        notes = chosen.notes(jobs.workload, cores)
    if found.interrupted:
        return None
    span = found.end - float(jobs.times[0])
    groups = grouped_by_class(jobs)
    class_of = np.zeros(len(jobs.workload.classes), dtype=np.intp)
    class_of[jobs.classes] = groups.codes
    return Schedule(
        policy=name,
        jobs=jobs,
        cores=cores,
        starts=found.log.starts,
        ends=found.log.ends,
        core_time=found.log.core_time,
        resizes=found.log.resizes,
        usage=_folded(found.usage, class_of[made.origin], len(groups.names), found.end),
        rents=None if prices is None else found.log.rents,
        overload=found.overload / span if span > 0.0 else 0.0,
        events=found.events,
        seconds=found.seconds,
        whole_cores=chosen.whole_cores,
        notes=tuple(notes),
    )


def _folded(usage: Usage, group_of: IntArray, groups: int, end: float) -> Usage:
    """Cores in use by class of the log, without empty slices at the end."""
    cores = np.zeros((groups, usage.cores.shape[1]))
    np.add.at(cores, group_of, usage.cores)
    last = int(np.ceil((end - usage.start) / usage.length)) if usage.length > 0.0 else 1
    return Usage(usage.start, usage.length, cores[:, : max(last, 1)])


def own_schedule(jobs: JobList, cores: float, bound: JobsBound | None) -> Schedule | None:
    """What the log says of its own jobs; None where it does not say when they began, or for how long."""
    if jobs.waits is None or jobs.run_times is None or jobs.cores is None:
        return None
    unknown = np.isnan(jobs.waits)
    if unknown.mean() > MOST_UNKNOWN:
        return None
    notes = []
    if unknown.any():
        notes.append(f"the log does not say how long {int(unknown.sum()):,} jobs waited: counted as 0")
    starts = jobs.times + np.where(unknown, 0.0, jobs.waits)
    ends = starts + jobs.run_times
    most = peak(starts, ends, jobs.cores)
    if most > cores * (1.0 + ROUNDING):
        notes.append(f"the log's jobs used up to {most:g} cores at once, so the bound does not hold for them")
    groups = grouped_by_class(jobs)
    start, length = float(jobs.times[0]), (float(ends.max()) - float(jobs.times[0])) / SLICES
    edges: FloatArray = start + length * np.arange(SLICES + 1, dtype=float)
    usage = [
        np.diff(area_up_to(edges, starts[own], ends[own], jobs.cores[own])) / length
        for own in (groups.codes == i for i in range(len(groups.names)))
    ]
    return Schedule(
        policy=OWN,
        jobs=jobs,
        cores=cores,
        starts=starts,
        ends=ends,
        core_time=jobs.cores * jobs.run_times,
        resizes=np.zeros(len(jobs)),
        usage=Usage(start, length, np.array(usage)),
        rents=None if bound is None or most > cores * (1.0 + ROUNDING) else _rents(jobs, bound, starts, ends),
        whole_cores=True,
        notes=tuple(notes),
    )


def _rents(jobs: JobList, bound: JobsBound, starts: FloatArray, ends: FloatArray) -> FloatArray:
    """What jobs that keep their cores pay for these."""
    assert jobs.cores is not None  # noqa: S101 - asked before
    paid = bound.path.paid
    rents: FloatArray = jobs.cores * (
        np.interp(ends, bound.edges, paid) - np.interp(starts, bound.edges, paid)
    )
    return rents
