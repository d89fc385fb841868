"""Logs in the plain format: a trace written as a table, and the jobs of a live broker as a trace."""

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


def trace_of_stays(document: Mapping[str, Sequence[Any]], zone: float = 0.0) -> Trace:
    """The jobs of `GET /v1/past-jobs`, of a place whose clocks are `zone` seconds ahead of UTC.

    The width of each is its mean between its first cores and its end.
    """
    if not document["id"]:
        raise TraceError("the broker remembers no jobs", "submit some, and ask again when they are over")
    came, began, went, used = (
        np.array(document[name], dtype=float) for name in ("came", "began", "went", "core_seconds")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(went > began, used / (went - began), np.nan)
    columns = Columns(
        submit=came,
        cores=np.fmax(np.round(width, 2), 1.0),  # times are those of samples
        start=began,
        end=went,
        weight=np.array(document["weight"], dtype=float),
        application=Labels.of(list(map(str, document["job_class"]))),
        ids=np.array([*map(str, document["id"]), None], dtype=object)[:-1],
        refused={"not over yet": np.isnan(went), "never ran": np.isnan(began) & ~np.isnan(went)},
        epoch=zone,
        notes=("a job that came and went within a second may be missing: the broker looks that often",),
    )
    return trace_of(columns, "the broker", PLAIN)
