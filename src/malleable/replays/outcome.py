"""A schedule as a `Result`, so that tables, plots, frames and files made for simulations take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.replays.schedule import Spread
from malleable.results import ClassResult, Result
from malleable.results.versions import installed_versions
from malleable.statistics import Estimate, Percentiles

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.replays.schedule import Schedule
    from malleable.theory.price_path import JobsBound

BOUND_NAME = "these very jobs, the future known"
"""What the bound for given jobs assumes."""
ONE_SAMPLE = "a log is one sample: its numbers have no intervals unless it is resampled"


def result_of(
    schedule: Schedule, bound: JobsBound | None, interval: tuple[float, float] | None = None
) -> Result:
    """The result of a schedule; with the ends of an interval of its cost, if it was resampled."""
    jobs, holds = schedule.jobs, bound is not None and schedule.rents is not None
    lowest = bound.per_job if bound is not None and holds else None
    low, high = interval or (-np.inf, np.inf)
    return Result(
        policy=schedule.policy,
        workload=jobs.workload,
        cores=schedule.cores,
        load=load_of(schedule),
        seeds=(0,),
        jobs=len(jobs),
        warmup=0,
        cost=Estimate(schedule.cost, low, high),
        bound=lowest,
        utilisation=schedule.utilisation,
        effective_load=schedule.utilisation,
        overload=schedule.overload,
        classes=_classes(schedule),
        events=schedule.events,
        seconds=schedule.seconds,
        stable=True,
        notes=(*schedule.notes, *(() if interval else (ONE_SAMPLE,))),
        policy_notes=schedule.notes,
        bound_tight=lowest,
        bound_name=None if lowest is None else BOUND_NAME,
        whole_cores=schedule.whole_cores,
        versions=installed_versions(),
    )


def load_of(schedule: Schedule) -> float:
    """Work that came over what the cores could do one by one, up to the last arrival."""
    jobs = schedule.jobs
    span = float(jobs.times[-1] - jobs.times[0])
    return float(jobs.sizes.sum()) / (span * schedule.cores) if span > 0.0 else np.inf


def _classes(schedule: Schedule) -> tuple[ClassResult, ...]:
    """The classes of the log."""
    found = []
    ratios = schedule.responses / schedule.jobs.sizes
    for i, name in enumerate(schedule.by_class.names):
        own = schedule.by_class.codes == i
        responses, slowdowns = schedule.responses[own], ratios[own]
        found.append(
            ClassResult(
                name=name,
                response_time=Estimate(float(responses.mean()) if len(responses) else np.nan),
                response=_percentiles(responses),
                mean_slowdown=float(slowdowns.mean()) if len(slowdowns) else np.nan,
                slowdown=_percentiles(slowdowns),
                width=Percentiles(),
                jobs=int(own.sum()),
                present=float(responses.sum()) / schedule.span if schedule.span > 0.0 else np.nan,
                little=0.0,
                resizes=float(schedule.resizes[own].mean()) if own.any() else None,
            )
        )
    return tuple(found)


def _percentiles(values: FloatArray) -> Percentiles:
    return Percentiles(*Spread.of(values)[1:]) if len(values) else Percentiles()
