"""Logs in the plain format: a trace written as a table, and the history of a live broker as a trace."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Columns, Labels
from malleable.traces.base.columns import trace_of
from malleable.traces.base.trace import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.traces.base import Trace

NAMED = {"application": "class", "user": "user", "group": "group", "queue": "queue", "status": "status",
         "shape": "shape"}  # fmt: skip
"""Columns of words, and what the plain format calls them."""
PLAIN = "plain"


def plain_text(trace: Trace) -> str:
    """The jobs of a trace as CSV with named columns; columns that the log does not have are left out."""
    columns: dict[str, Sequence[Any]] = {}
    if trace.ids is not None:
        columns["id"] = trace.ids.tolist()
    columns["arrival"] = _texts(trace.submit if trace.epoch is None else trace.submit + trace.epoch)
    columns["cores"] = _texts(trace.cores)
    for name in NUMBERS:
        if (numbers := getattr(trace, name)) is not None:
            columns[name] = _texts(numbers)
    for name, plain in NAMED.items():
        if (labels := trace.labels(name)) is not None:
            columns[plain] = labels.words()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _texts(numbers: Any) -> list[str]:
    """Numbers in full; nothing for those that are missing."""
    return ["" if np.isnan(value) else repr(value).removesuffix(".0") for value in numbers.tolist()]


def trace_of_history(document: Mapping[str, Any]) -> Trace:
    """The jobs of `GET /v1/history`: when each came, had its first cores and ended, and its mean width."""
    jobs = document.get("jobs", {})
    if not jobs:
        raise TraceError("the broker remembers no jobs", "submit some, and ask again when they have ended")
    rows = [_row(job) for job in jobs.values()]
    submit, start, end, width = np.array(rows, dtype=float).T
    columns = Columns(
        submit=submit,
        cores=width,
        start=start,
        end=end,
        application=Labels.of([str(job["class"]) for job in jobs.values()]),
        ids=np.array([*map(str, jobs), None], dtype=object)[:-1],
        refused={"not over yet": np.isnan(end)},
        notes=(f"the broker remembers {len(jobs):,} jobs; the width of each is the mean over its run",),
    )
    return trace_of(columns, "the broker", PLAIN)


def _row(job: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Arrival, first cores, end and mean width of a job; NaN for what there is not."""
    times = np.array(job["time"], dtype=float)
    granted = np.array([0.0 if cores is None else cores for cores in job["granted"]], dtype=float)
    end = np.nan if job["ended"] is None else float(job["ended"])
    running = np.flatnonzero(granted > 0.0)
    if not len(running) or np.isnan(end):
        return float(times[0]) if len(times) else np.nan, np.nan, end, np.nan
    start = float(times[running[0]])
    used = float((granted * np.diff(times, append=end)).sum())
    return float(times[0]), start, end, used / (end - start) if end > start else np.nan
