"""From times of arrival and departure to the records that statistics are made from.

The stretches are those of a simulation on the same jobs, from one arrival to a later one, so the two can be
compared stretch by stretch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.records import Records, bin_edges

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray
    from malleable.live.play.session import Seen
    from malleable.sources.streams import Chunk


def records_of(jobs: Chunk, seen: Seen, cores: float, classes: int, like: Records) -> Records:
    """Records of what was seen, in the stretches of `like`, as far as it goes."""
    stride = int(like.stride)
    count = min(seen.came // stride, like.size) if stride else 0
    ends = jobs.times[stride - 1 : stride * count : stride] if count else np.zeros(0)
    came = slice(0, stride * count)
    arrived, index, sizes = jobs.times[came], jobs.classes[came], jobs.sizes[came]
    left = np.where(np.isnan(seen.departures[came]), np.inf, seen.departures[came])
    gone = left <= (ends[-1] if count else -np.inf)
    record = np.searchsorted(ends, left[gone])

    def by_class(values: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        out = np.zeros((count, classes))
        np.add.at(out, (rows, columns), values)
        return out

    response = (left - arrived)[gone]
    slowdown = response / sizes[gone]
    segments = like.segment[:count]
    resized = np.array([time for time, _ in seen.resizes])
    kept = resized <= (ends[-1] if count else -np.inf)
    resized_class = np.array([i for _, i in seen.resizes], dtype=np.int64)[kept]
    ones = np.ones(int(gone.sum()))
    return Records(
        departures=by_class(ones, record, index[gone]),
        response=by_class(response, record, index[gone]),
        slowdown=by_class(slowdown, record, index[gone]),
        arrivals=by_class(np.ones(len(arrived)), np.repeat(np.arange(count), stride), index),
        work=by_class(sizes[gone], record, index[gone]),
        area=_areas(arrived, left, index, ends, classes),
        present=_present(arrived, left, index, ends, classes),
        duration=np.diff(ends, prepend=0.0),
        used=_integrals(np.array(seen.used), ends),
        overload=_overload(arrived, left, cores, ends),
        segment=segments,
        response_histogram=_histogram(response, segments[record], index[gone], like.response_histogram),
        slowdown_histogram=_histogram(slowdown, segments[record], index[gone], like.slowdown_histogram),
        width_histogram=np.zeros_like(like.width_histogram),
        resizes=by_class(np.ones(int(kept.sum())), np.searchsorted(ends, resized[kept]), resized_class),
    )


def _areas(
    arrived: FloatArray, left: FloatArray, index: IntArray, ends: FloatArray, classes: int
) -> FloatArray:
    """Integrals of the number of jobs present, over each record."""
    up_to = np.zeros((len(ends) + 1, classes))
    for row, end in enumerate(ends.tolist(), 1):
        time_there = np.maximum(np.minimum(left, end) - arrived, 0.0)
        up_to[row] = np.bincount(index, time_there, classes)
    return np.diff(up_to, axis=0)


def _present(
    arrived: FloatArray, left: FloatArray, index: IntArray, ends: FloatArray, classes: int
) -> FloatArray:
    """Jobs present at the end of each record."""
    rows = [
        np.bincount(index[(arrived <= end) & (left > end)], minlength=classes).astype(float) for end in ends
    ]
    return np.array(rows).reshape(-1, classes)


def _integrals(steps: FloatArray, ends: FloatArray) -> FloatArray:
    """Integrals over each record of a function of steps (time, value)."""
    times, values = steps.T
    last = max(times[-1], ends[-1] if len(ends) else 0.0)
    gaps = np.diff(times, append=last)
    up_to = np.append(0.0, np.cumsum(values * gaps))
    return np.diff(np.interp(ends, np.append(times, last), up_to), prepend=0.0)


def _overload(arrived: FloatArray, left: FloatArray, cores: float, ends: FloatArray) -> FloatArray:
    """Time with more jobs than cores, in each record."""
    there = np.isfinite(left)
    times = np.concatenate([arrived, left[there]])
    change = np.concatenate([np.ones(len(arrived)), -np.ones(int(there.sum()))])
    order = np.argsort(times, kind="stable")
    many = np.cumsum(change[order]) > cores
    steps = np.column_stack([np.append(0.0, times[order]), np.append(0.0, many)])
    return _integrals(steps, ends)


def _histogram(values: FloatArray, segment: FloatArray, index: IntArray, like: FloatArray) -> FloatArray:
    """Counts by segment, class and bin."""
    out = np.zeros_like(like)
    bins = np.clip(np.searchsorted(bin_edges(), values, side="right") - 1, 0, like.shape[2] - 1)
    np.add.at(out, (segment.astype(np.int64), index, bins), 1.0)
    return out
