"""From the raw columns of a file to a `Trace`: rows that cannot be used are left out, counted, by reason."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malleable.contracts import BoolArray, FloatArray
from malleable.errors import TraceError
from malleable.traces.base.trace import NUMBERS, WORDS, Dropped, Labels, Trace

MOST = 1e15
"""Seconds and cores above this are mistakes: thirty million years."""
NO_SUBMIT = "no time of submission"
NO_TIME = "no run time: never started, or not over"
NEGATIVE = "negative run time"
ZERO = "run time 0"
NO_CORES = "no cores"
RANGE = "a number out of range"


@dataclass
class Columns:
    """What a reader found, a column each; NaN and empty words are missing.

    Times are in seconds from any origin; `epoch` is the Unix time of that origin on a clock of the place, or
    None where nothing is known of it. Run times come as `duration`, or from `start` and `end`.
    """

    submit: FloatArray
    cores: FloatArray
    start: FloatArray | None = None
    end: FloatArray | None = None
    duration: FloatArray | None = None
    wait: FloatArray | None = None
    size: FloatArray | None = None
    estimate: FloatArray | None = None
    weight: FloatArray | None = None
    min_cores: FloatArray | None = None
    max_cores: FloatArray | None = None
    user: Labels | None = None
    group: Labels | None = None
    application: Labels | None = None
    queue: Labels | None = None
    status: Labels | None = None
    shape: Labels | None = None
    ids: NDArray[Any] | None = None
    unit: str = "cores"
    epoch: float | None = None
    machine: float | None = None
    lost: dict[str, int] = field(default_factory=dict)
    """Rows that the reader itself could not use, by reason."""
    refused: dict[str, BoolArray] = field(default_factory=dict)
    """Rows that are no jobs to be counted, by reason."""
    notes: tuple[str, ...] = ()


def trace_of(columns: Columns, name: str, kind: str) -> Trace:
    """The jobs that can be used, in order of submission."""
    with np.errstate(invalid="ignore", over="ignore"):
        known = _timed(columns)
        reasons = _reasons(known)
    kept: BoolArray = np.ones(len(known.submit), dtype=bool)
    dropped = dict(known.lost)
    for reason, rows in reasons.items():
        count = int((rows & kept).sum())
        if count:
            dropped[reason] = dropped.get(reason, 0) + count
        kept = kept & ~rows
    _check_some_left(kept, dropped, name)
    used = np.flatnonzero(kept)
    order = used[np.argsort(known.submit[used], kind="stable")]
    return _trace(known, order, name, kind, tuple(Dropped(*one) for one in dropped.items()))


def _timed(known: Columns) -> Columns:
    """With run times and waits, from starts and ends where these are given."""
    found = replace(known)
    if found.start is not None and found.wait is None:
        found.wait = found.start - found.submit
    if found.end is not None and found.start is not None:
        ran = found.end - found.start
        given = found.duration
        found.duration = ran if given is None else np.where(np.isnan(ran), given, ran)
    if found.wait is not None:
        early = int(np.count_nonzero(found.wait < 0.0))
        found.wait = np.where((found.wait >= 0.0) & (found.wait < MOST), found.wait, np.nan)
        if early:
            what = "job begins" if early == 1 else "jobs begin"
            found.notes = (*found.notes, f"{early} {what} before the submission; the wait is unknown")
        if np.isnan(found.wait).all():
            found.wait = None
    return found


def _reasons(known: Columns) -> dict[str, BoolArray]:
    """Which rows cannot be used, the first reason that holds counting."""
    found = dict(known.refused)
    found[NO_SUBMIT] = np.isnan(known.submit)
    if known.duration is not None:
        found |= {NO_TIME: np.isnan(known.duration), NEGATIVE: known.duration < 0.0}
        found[ZERO] = known.duration == 0.0
    elif known.size is not None:
        found["no size, or none above 0"] = ~(known.size > 0.0)
    found[NO_CORES] = ~(known.cores > 0.0)
    numbers = [np.abs(known.submit), known.cores]
    numbers += [one for one in (known.duration, known.size) if one is not None]
    found[RANGE] = np.any([~(one < MOST) for one in numbers], axis=0)
    found["less than one core"] = known.cores < 1.0
    return found


def _check_some_left(kept: BoolArray, dropped: dict[str, int], name: str) -> None:
    if kept.any():
        return
    if not dropped:
        raise TraceError(f"{name} holds no jobs", "give a log with one line per job")
    reasons = "; ".join(f"{reason}: {rows:,} row{'s' * (rows != 1)}" for reason, rows in dropped.items())
    raise TraceError(f"{name} holds no job that can be used", reasons)


def _trace(known: Columns, rows: Any, name: str, kind: str, dropped: tuple[Dropped, ...]) -> Trace:
    numbers = {key: _given(getattr(known, key), rows, key) for key in NUMBERS}
    words = {key: _worded(getattr(known, key), rows) for key in WORDS}
    submit = known.submit[rows]
    first = float(submit[0])
    return Trace(
        name=name,
        format=kind,
        submit=submit - first,
        cores=known.cores[rows],
        **numbers,  # type: ignore[arg-type]
        **words,  # type: ignore[arg-type]
        ids=None if known.ids is None else known.ids[rows],
        unit=known.unit,
        epoch=None if known.epoch is None else known.epoch + first,
        machine=known.machine,
        dropped=dropped,
        notes=known.notes,
    )


def _given(column: FloatArray | None, rows: Any, key: str) -> FloatArray | None:
    """A column of the kept rows; None where no job has it."""
    if column is None:
        return None
    taken: FloatArray = column[rows]
    if key not in {"duration", "wait"}:
        with np.errstate(invalid="ignore"):
            taken = np.where((taken > 0.0) & (taken < MOST), taken, np.nan)
    return None if np.isnan(taken).all() else taken


def _worded(column: Labels | None, rows: Any) -> Labels | None:
    taken = None if column is None else column.take(rows)
    return taken if taken is not None and taken.names else None
