"""From a log to jobs that can be resized: classes, speedups, shapes, sizes and weights; nothing unsaid.

A job that ran for t on k cores, and whose class speeds up by s, has the size t·s(k): on k cores it takes as
long as the log says. All that is taken for granted stands in `assumptions`, one sentence each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.arrivals.poisson import Poisson
from malleable.contracts import IntArray
from malleable.errors import TraceError
from malleable.model.job_class import JobClass
from malleable.model.job_list import JobList
from malleable.model.resize import Resize
from malleable.model.widths import Widths
from malleable.model.workload import Workload
from malleable.traces.study.grouping import Groups, group_jobs
from malleable.traces.study.laws import law_of
from malleable.traces.study.shapes import MALLEABLE, MOLDABLE, RIGID, SHAPES, shapes_of
from malleable.traces.study.speedups import speedups_of
from malleable.traces.study.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.contracts import FloatArray, Speedup
    from malleable.traces.base import Trace

MOST_KINDS = 4096
"""Job types of a workload: more widths than that are a mistake in the log."""


def malleabilise(trace: Trace, study: Study | None = None, **changes: Any) -> JobList:
    """The jobs of a log as jobs of a workload, under the assumptions of a study."""
    study = (study or Study(log=trace.name)).with_changes(**changes)
    trace, said = _fitting(trace, study)
    run_times, how = _run_times(trace, study)
    groups = group_jobs(trace, study.classes, study.most_classes)
    if run_times is None and not isinstance(study.durations, int | float):
        run_times, how = _by_class(trace, study, groups)
    speedups, speedups_said = speedups_of(study, groups.names)
    sizes = _sizes(trace, run_times, groups, speedups)
    shapes, shapes_said = shapes_of(trace, study, run_times)
    times, waits, load_said = _rescaled(trace, study, sizes)
    weights, weights_said = _weights(trace, study, groups)
    kinds = _kinds(trace, study, groups, speedups, shapes)
    span = max(float(times[-1]), float(sizes.max()), 1.0)
    words = trace.user.words("unknown") if trace.user is not None else None
    return JobList(
        workload=_workload(Path(trace.name).name, kinds, sizes, span),
        times=times,
        classes=kinds.codes,
        sizes=sizes,
        weights=weights,
        ids=None if trace.ids is None else tuple(map(str, trace.ids.tolist())),
        users=None if words is None else tuple(words),
        cores=trace.cores,
        run_times=run_times,
        estimates=run_times if study.estimates == "truth" else trace.estimate,
        waits=waits,
        epoch=trace.epoch if study.load is None else None,
        groups=kinds.groups,
        assumptions=(
            *said, *how, _classes_said(groups), *speedups_said, *shapes_said, *load_said, *weights_said,
            *_estimates_said(trace, study),
        ),
    )  # fmt: skip


def chosen_jobs(trace: Trace, rows: IntArray) -> Trace:
    """Some of the jobs of a trace."""

    def picked(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value[rows]
        return value.take(rows) if hasattr(value, "codes") else value

    first = float(trace.submit[rows[0]])
    own = {name: picked(value) for name, value in vars(trace).items() if name in trace.__dataclass_fields__}
    own["submit"] = own["submit"] - first
    own["epoch"] = None if trace.epoch is None else trace.epoch + first
    return replace(trace, **own)


def _fitting(trace: Trace, study: Study) -> tuple[Trace, tuple[str, ...]]:
    """The jobs that fit on the machine, and what was left out."""
    row = {1: "row of the log is"}
    said = [
        f"{one.rows:,} {row.get(one.rows, 'rows of the log are')} left out: {one.reason}"
        for one in trace.dropped
    ]
    if study.cores is not None:
        least = trace.cores if trace.min_cores is None else np.fmin(trace.cores, trace.min_cores)
        wide = least > study.cores
        if wide.all():
            raise TraceError(f"all jobs of {trace.name} need more than {study.cores:g} cores", "give more")
        if wide.any():
            many = int(wide.sum())
            said.append(f"{many:,} jobs are left out: they are wider than {study.cores:g} {trace.unit}")
            trace = chosen_jobs(trace, np.flatnonzero(~wide))
    return trace, tuple(said)


def _run_times(trace: Trace, study: Study) -> tuple[FloatArray | None, tuple[str, ...]]:
    """How long each job ran on its cores, where the log or the study says so for all jobs alike."""
    if trace.duration is not None or trace.size is not None:
        return trace.duration, ()
    if study.durations is None:
        hint = "give --duration SECONDS, --duration estimates, or durations in a study"
        raise TraceError(f"{trace.name} does not say how long its jobs run", hint)
    if isinstance(study.durations, int | float) and not isinstance(study.durations, bool):
        seconds = float(study.durations)
        if not 0.0 < seconds < np.inf:
            raise TraceError(f"a run time must be above 0, got {study.durations!r}", "give it in seconds")
        return np.full(len(trace), seconds), (f"every job runs {seconds:g} s on the cores it asked for",)
    if study.durations == "estimates":
        if trace.estimate is None or np.isnan(trace.estimate).any():
            raise TraceError(f"{trace.name} does not estimate all run times", "give --duration SECONDS")
        return trace.estimate, ("jobs run as long as their users estimated",)
    return None, ()


def _by_class(trace: Trace, study: Study, groups: Groups) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Run times that a study gives by class."""
    if trace.size is not None:
        return None, ()
    table = study.durations
    if not isinstance(table, dict) or set(groups.names) - set(table):
        lacking = sorted(set(groups.names) - set(table)) if isinstance(table, dict) else list(groups.names)
        hint = "write [durations] in a study, and class = seconds below it"
        raise TraceError(f"no run time is given for {', '.join(lacking):.60}", hint)
    seconds = [table[name] for name in groups.names]
    if not all(isinstance(one, int | float) and 0.0 < one < np.inf for one in seconds):
        raise TraceError(f"run times must be numbers above 0, got {seconds!r:.60}", "give them in seconds")
    said = f"jobs run as long as the study says of their {groups.by}"
    return np.array(seconds, dtype=float)[groups.codes], (said,)


def _sizes(
    trace: Trace, run_times: FloatArray | None, groups: Groups, speedups: tuple[Speedup, ...]
) -> FloatArray:
    """Work: the run time times the speed on the cores that the job had."""
    if trace.size is not None:
        return trace.size
    assert run_times is not None  # noqa: S101 - one of them is given
    sizes = np.empty(len(trace))
    for i, speedup in enumerate(speedups):
        own = groups.codes == i
        sizes[own] = run_times[own] * np.asarray(speedup(trace.cores[own]), dtype=float)
    return sizes


def _rescaled(
    trace: Trace, study: Study, sizes: FloatArray
) -> tuple[FloatArray, FloatArray | None, tuple[str, ...]]:
    """Times of arrival at the load that is asked for; waits of the log hold at its own load only."""
    if study.load is None or study.cores is None:
        return trace.submit, trace.wait, ()
    last = float(trace.submit[-1])
    if last <= 0.0:
        raise TraceError(f"all jobs of {trace.name} come at once", "leave out the load")
    own = float(sizes.sum()) / (last * study.cores)
    said = f"times between arrivals are multiplied by {own / study.load:.6g}: the load is {study.load:g}"
    return trace.submit * (own / study.load), None, (f"{said} of {study.cores:g} cores, not {own:.6g}",)


def _weights(trace: Trace, study: Study, groups: Groups) -> tuple[FloatArray | None, tuple[str, ...]]:
    """What each job costs per second, from the log and the study."""
    if trace.weight is None and not study.weights:
        return None, ("all jobs weigh the same",)
    weights = np.ones(len(trace)) if trace.weight is None else np.nan_to_num(trace.weight, nan=1.0)
    said = ["weights are those of the log"] if trace.weight is not None else []
    for column, table in study.weights.items():
        if column == "user" and trace.user is None:
            raise TraceError(f"{trace.name} does not name users", "give weights by class")
        names, codes = (groups.names, groups.codes) if column == "class" else _users(trace)
        for name, weight in table.items():
            if name not in names:
                raise TraceError(f"there is no {column} {name!r} to have a weight", f"as {names[0]!r:.40} is")
            if not isinstance(weight, int | float) or not 0.0 < weight < np.inf:
                raise TraceError(f"the weight of {name!r} must be above 0, got {weight!r:.40}")
            weights[codes == names.index(name)] = weight
            said.append(f"jobs of {column} {name} weigh {weight:g}")
    return weights, tuple(said)


def _users(trace: Trace) -> tuple[tuple[str, ...], IntArray]:
    assert trace.user is not None  # noqa: S101 - asked before
    return trace.user.names, trace.user.codes


def _estimates_said(trace: Trace, study: Study) -> tuple[str, ...]:
    if study.estimates == "truth":
        return ("policies that use estimates are told the true run times",)
    if trace.estimate is None:
        return ("the log has no estimates of run times",)
    return ("estimates of run times are those of the log",)


def _classes_said(groups: Groups) -> str:
    many = f"{len(groups.names)} class{'es' * (len(groups.names) != 1)}"
    return f"jobs are of {many}" + ("" if groups.by == "none" else f", by {groups.by}")


@dataclass(frozen=True)
class Kinds:
    """The classes of the workload: a group, its speedup, a shape, and widths; and the class of each job."""

    groups: tuple[str, ...]
    made: tuple[dict[str, Any], ...]
    codes: IntArray


def _kinds(
    trace: Trace, study: Study, groups: Groups, speedups: tuple[Speedup, ...], shapes: IntArray
) -> Kinds:
    """Jobs of one group with one shape and the same widths are a class of the workload."""
    rigid = shapes == RIGID
    wide = np.where(rigid, np.ceil(trace.cores - 1e-9), 0.0)
    least = _limits(trace.min_cores, rigid, len(trace), 1.0)
    most = _limits(trace.max_cores, rigid, len(trace), np.inf)
    most = np.where(rigid, most, np.maximum(most, least))
    keys = np.column_stack([groups.codes, shapes, wide, least, most])
    rows, codes = np.unique(keys, axis=0, return_inverse=True)
    if len(rows) > MOST_KINDS:
        problem = f"jobs differ in {len(rows):,} ways of class, width and limits"
        raise TraceError(problem, "make more of them malleable, or fewer classes")
    names = [groups.names[int(row[0])] for row in rows]
    made = [
        {"name": name, "speedup": speedups[int(row[0])], **_shape(row[1:], study)}
        for name, row in zip(_unique(names, rows), rows, strict=True)
    ]
    return Kinds(tuple(names), tuple(made), codes.ravel().astype(np.intp))


def _limits(column: FloatArray | None, rigid: Any, count: int, other: float) -> FloatArray:
    if column is None:
        return np.full(count, other)
    return np.where(rigid | np.isnan(column), other, np.ceil(np.nan_to_num(column, nan=1.0)))


def _shape(row: FloatArray, study: Study) -> dict[str, Any]:
    """Shape, widths and cost of resizing of a class."""
    shape, wide, least, most = int(row[0]), row[1], row[2], row[3]
    if shape == RIGID:
        return {"shape": "rigid", "width": int(wide)}
    widths = Widths.of(study.widths)
    if least > 1.0 or most < np.inf:
        widths = Widths.of({"min": int(least), **({"max": int(most)} if most < np.inf else {})})
    resize = Resize(study.pause) if study.pause > 0.0 and shape == MALLEABLE else Resize()
    return {"shape": SHAPES[shape], "widths": widths, "resize": resize}


def _unique(names: list[str], rows: FloatArray) -> Iterator[str]:
    """A name for each class: that of its group, with what sets it apart from others of the group."""
    for name, (_, shape, wide, least, most) in zip(names, rows, strict=True):
        parts = [name] if names.count(name) > 1 or shape != MALLEABLE else []
        if not parts:
            yield name
            continue
        if shape == RIGID:
            parts.append(f"rigid on {wide:g}")
        elif shape == MOLDABLE:
            parts.append("moldable")
        if least > 1.0 or most < np.inf:
            parts.append(f"{least:g} to {most:g}")
        yield ", ".join(parts)


def _workload(name: str, kinds: Kinds, sizes: FloatArray, span: float) -> Workload:
    """The classes with laws that have the means and variations of their jobs."""
    classes = []
    for i, made in enumerate(kinds.made):
        own = sizes[kinds.codes == i]
        arrivals = Poisson(rate=len(own) / span)
        classes.append(JobClass(arrivals=arrivals, size=law_of(own), **made))
    return Workload(name, tuple(classes))
