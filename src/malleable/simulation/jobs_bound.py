"""What no policy can beat on jobs as they come, not even one that knew them all beforehand: `bound="jobs"`.

V* knows averages alone. Here several streams of jobs are drawn, and for each the price path gives a bound on
the cost of any schedule of these very jobs (`theory.price_path`). A stream starts with no job present and
ends when the last one has left. Leaving out jobs raises the cost of no schedule, so over longer streams
the mean of the least cost per job can only rise: for every length it is a lower bound on what a policy
costs per job in the long run, and the mean over streams estimates such a bound.

D = Σ φ_i − ∫ n l splits into stretches of jobs, Σ φ_i of those that arrive less the rent of all cores in that
time. The stretches are batches, so the interval is made as that of a cost (`statistics.estimate`): its means
by class, with sizes and arrivals as controls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.records import Records
from malleable.errors import UnsupportedError
from malleable.model.job_list import JobList
from malleable.results import Result, Status
from malleable.simulation.settings import FILLINGS
from malleable.sources import Drawn
from malleable.statistics import estimate, find_warmup
from malleable.theory.price_path import bound_for_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.simulation.task import Task
    from malleable.statistics import Estimate
    from malleable.theory.price_path import JobsBound

STREAMS = 4
BATCHES = 10
"""Stretches of a stream."""
JOBS = 25_000
"""Jobs of a stream, or more where so many would hardly fill the system."""


def with_jobs_bound(
    results: list[Result], tasks: list[Task], progress: Callable[[int, int], None] | None
) -> list[Result]:
    """The results with the bound for given jobs beside V*, one for all that saw the same jobs."""
    found: dict[tuple[float, float], Estimate | None] = {}
    made = []
    for result, task in zip(results, tasks, strict=True):
        setting = (task.cores, result.load)
        if setting not in found:
            try:
                found[setting] = _of_task(task, progress)
            except KeyboardInterrupt:
                found[setting] = None
        bound = found[setting]
        status = Status.INTERRUPTED if bound is None else result.status
        made.append(replace(result, bound_jobs=bound, status=status))
    return made


def check_jobs_bound(task: Task) -> None:
    """Refuse what the bound knows nothing of, before anything runs."""
    if task.settings.capacity is not None:
        raise UnsupportedError(
            "the bound for given jobs needs a number of cores that stays the same here",
            "leave out --bound, or ask malleable.bound_for_jobs with (time, cores) pairs",
        )
    if not isinstance(task.source, Drawn):
        raise UnsupportedError("the bound for given jobs draws jobs itself", "leave out --bound")


def _of_task(task: Task, progress: Callable[[int, int], None] | None) -> Estimate:
    settings = task.settings
    return stationary_bound(
        task.workload,
        task.cores,
        jobs=min(JOBS, max(settings.most_jobs // STREAMS, 1)),
        seed=settings.seed,
        confidence=settings.confidence,
        progress=progress,
    )


def stationary_bound(
    workload: Workload,
    cores: float,
    *,
    jobs: int = JOBS,
    streams: int = STREAMS,
    seed: int = 0,
    confidence: float = 0.95,
    precision: float = 5e-4,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Estimate:
    """A lower bound on the mean cost of a job under any policy, from streams of so many jobs or more."""
    count = max(jobs, min(int(FILLINGS * workload.total_load), 40 * jobs))
    runs = []
    for number in range(streams):
        drawn = drawn_jobs(workload, count, seed + number)

        def tell(_: int, __: float, number: int = number) -> None:
            if progress is not None:
                progress(number * count, streams * count)

        found = bound_for_jobs(drawn, cores, precision=precision, threads=threads, on_progress=tell)
        runs.append(_records(drawn, found))
    return estimate(runs, workload, find_warmup(runs, workload, 0), confidence=confidence).cost


def drawn_jobs(workload: Workload, count: int, seed: int) -> JobList:
    """The first jobs of the stream that belongs to a seed."""
    stream = Drawn(seed).stream(workload)
    chunks = [stream.take()]
    while sum(chunk.size for chunk in chunks) < count:
        chunks.append(stream.take())
    times = np.concatenate([chunk.times for chunk in chunks])[:count]
    classes = np.concatenate([chunk.classes for chunk in chunks])[:count]
    sizes = np.concatenate([chunk.sizes for chunk in chunks])[:count]
    return JobList(workload, times, classes, sizes)


def _records(jobs: JobList, bound: JobsBound) -> Records:
    """A stream in stretches: each job counts with its own schedule's cost, less its part of all the rent.

    Of the rent while the jobs of a stretch arrive, each of them has a part in proportion to that cost.
    """
    count, classes = min(BATCHES, len(jobs)), len(jobs.workload.classes)
    cuts = np.linspace(0, len(jobs), count + 1).astype(int)
    which = np.repeat(np.arange(count), np.diff(cuts))
    times = np.append(jobs.times[cuts[:-1]], jobs.times[-1])
    times[0] = 0.0
    rent = np.diff(np.interp(times, bound.edges, bound.path.paid), append=0.0)[:count] * bound.cores
    rent[-1] += bound.rent - rent.sum()
    own = np.bincount(which, bound.own, minlength=count)
    net = bound.own * (1.0 - rent / own)[which] * (bound.bound / bound.by_prices) / jobs.weight
    place = which * classes + jobs.classes

    def summed(values: FloatArray | None = None) -> FloatArray:
        found = np.bincount(place, values, minlength=count * classes).astype(float)
        return found.reshape(count, classes)

    nothing, none = np.zeros((count, classes)), np.zeros(count)
    return Records(
        departures=summed(),
        response=summed(net),
        slowdown=nothing,
        arrivals=summed(),
        work=summed(jobs.sizes),
        area=nothing,
        present=nothing,
        duration=np.diff(times),
        used=none,
        overload=none,
        segment=none,
        response_histogram=np.zeros((1, classes, 1)),
        slowdown_histogram=np.zeros((1, classes, 1)),
        width_histogram=np.zeros((classes, 1)),
    )
