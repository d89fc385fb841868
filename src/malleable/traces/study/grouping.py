"""Classes of the jobs of a log: by user, group, application, queue, width or length, and few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Labels

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray
    from malleable.traces.base import Trace

OTHERS, ALL, UNKNOWN = "others", "all", "unknown"
COLUMNS = ("application", "queue", "group", "user")
LENGTHS = (60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0)
LENGTH_NAMES = ("up to 1 min", "1 to 10 min", "10 to 60 min", "1 to 6 h", "6 to 24 h", "over a day")


class Groups(NamedTuple):
    """The class of each job, as a place among the names, and what they go by."""

    names: tuple[str, ...]
    codes: IntArray
    by: str


def group_jobs(trace: Trace, by: str, most: int) -> Groups:
    """Classes of the jobs; those with the fewest core-seconds are put together."""
    by = _chosen(trace, most) if by == "auto" else by
    if by == "none":
        return Groups((ALL,), np.zeros(len(trace), dtype=np.intp), by)
    labels = _labels(trace, by)
    names, codes = _with_unknown(labels)
    used: FloatArray = np.bincount(codes, weights=amounts(trace), minlength=len(names)).astype(float)
    return Groups(*_capped(names, codes, used, most), by)


def amounts(trace: Trace) -> FloatArray:
    """What jobs count for: core-seconds, work, or one each where the log knows neither."""
    if trace.core_seconds is not None:
        return trace.core_seconds
    return np.ones(len(trace)) if trace.size is None else np.nan_to_num(trace.size)


def _chosen(trace: Trace, most: int) -> str:
    """By application where the log names a few, and otherwise by width."""
    named = trace.application
    return "application" if named is not None and 1 < len(named.names) <= most else "width"


def _labels(trace: Trace, by: str) -> Labels:
    if by == "width":
        return widths(trace.cores)
    if by == "length":
        if trace.duration is None:
            raise TraceError(
                f"{trace.name} has no run times to make classes of", "choose others: width, user"
            )
        places = np.searchsorted(np.array(LENGTHS), trace.duration)
        return Labels(LENGTH_NAMES, places.astype(np.intp)).take(np.arange(len(trace)))
    found = trace.labels(by)
    if found is None:
        there = [name for name in COLUMNS if trace.labels(name) is not None]
        hint = f"choose one of {', '.join([*there, 'width', 'length'])}"
        raise TraceError(f"{trace.name} says nothing of the {by} of its jobs", hint)
    return found


def widths(cores: FloatArray) -> Labels:
    """Powers of two and what lies between them: 1, 2, 3-4, 5-8, and so on."""
    levels = np.ceil(np.log2(np.maximum(cores, 1.0)) - 1e-9).astype(np.intp)
    names = tuple(_range(level) for level in range(int(levels.max(initial=0)) + 1))
    return Labels(names, levels).take(np.arange(len(cores)))


def _range(level: int) -> str:
    low, high = (1 << level - 1) + 1 if level else 1, 1 << level
    return f"width {low}" if low >= high else f"width {low}-{high}"


def _with_unknown(labels: Labels) -> tuple[tuple[str, ...], IntArray]:
    if (labels.codes >= 0).all():
        return labels.names, labels.codes
    return (*labels.names, UNKNOWN), np.where(labels.codes >= 0, labels.codes, len(labels.names))


def _capped(
    names: tuple[str, ...], codes: IntArray, used: FloatArray, most: int
) -> tuple[tuple[str, ...], IntArray]:
    """At most so many classes; the order stays."""
    if len(names) <= most:
        return names, codes
    kept = np.sort(np.argsort(-used, kind="stable")[: most - 1])
    places = np.full(len(names), len(kept), dtype=np.intp)
    places[kept] = np.arange(len(kept))
    return (*(names[i] for i in kept), OTHERS), places[codes]
