"""From sums over groups of replications to `Records`, one per group, as the CPU engine leaves them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.gpu.layout import (
    AREA,
    ARRIVALS,
    CLASS_SUMS,
    DEPARTURES,
    DURATION,
    OVERLOAD,
    RESPONSE,
    SAMPLED,
    SLOWDOWN,
    USED_AREA,
    WORK,
)
from malleable.engine.records import Records
from malleable.engine.rule_interface import BINS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.gpu.backends import Backend


def lean_records(rows: Any, classes: int) -> tuple[Records, ...]:
    """Records of each group from rows (records, fields, groups), without bins for percentiles.

    The area under the number of jobs stands for the sum of response times, which it is but for the jobs at
    both ends of a record.
    """
    none = np.zeros((1, classes, 0))
    made = []
    for group in range(rows.shape[2]):
        mine = rows[:, :, group]
        by_class = mine[:, : CLASS_SUMS * classes].reshape(-1, classes, CLASS_SUMS)
        machine = mine[:, CLASS_SUMS * classes :]
        unknown = np.full(by_class.shape[:2], np.nan)
        made.append(
            Records(
                departures=by_class[:, :, DEPARTURES],
                response=by_class[:, :, AREA],
                slowdown=unknown,
                arrivals=by_class[:, :, ARRIVALS],
                work=unknown,
                area=by_class[:, :, AREA],
                present=mine[:, -classes:],
                duration=machine[:, DURATION],
                used=machine[:, USED_AREA],
                overload=machine[:, OVERLOAD],
                segment=np.zeros(len(mine)),
                response_histogram=none,
                slowdown_histogram=none,
                width_histogram=none[0],
            )
        )
    return tuple(made)


def group_records(
    rows: Any, mean_sizes: Any, segments: Sequence[int], histograms: Any
) -> tuple[Records, ...]:
    """Records of each group from rows (records, fields, groups).

    Histograms are of all groups together and stand in the first.
    """
    classes = len(mean_sizes)
    made = []
    for group, bare in enumerate(lean_records(rows, classes)):
        by_class = rows[:, : CLASS_SUMS * classes, group].reshape(-1, classes, CLASS_SUMS)
        first = group == 0
        counts = histograms if first else np.zeros((1, classes, 2, BINS))
        response, slowdown, work = _job_sums(by_class, mean_sizes)
        made.append(
            replace(
                bare,
                response=response,
                slowdown=slowdown,
                work=work,
                segment=np.array(segments, dtype=float) * first,
                response_histogram=counts[:, :, 0],
                slowdown_histogram=counts[:, :, 1],
                width_histogram=np.zeros((classes, BINS)),
            )
        )
    return tuple(made)


def _job_sums(by_class: Any, mean_sizes: Any) -> tuple[Any, Any, Any]:
    """Sums of response times, slowdowns and sizes over the jobs that left, (records, classes).

    Where all replications keep statistics, they are what was counted. Where only some do, or none, the area
    under the number of jobs stands for the response times, which it is but for the jobs at both ends of a
    record; sizes were counted as jobs came, and those that came but did not leave count as the mean; and the
    slowdowns that were counted are multiplied by how many more jobs left in all than where they were counted.
    """
    departures, sampled = by_class[:, :, DEPARTURES], by_class[:, :, SAMPLED]
    if np.array_equal(departures, sampled):
        return by_class[:, :, RESPONSE], by_class[:, :, SLOWDOWN], by_class[:, :, WORK]
    every, some = departures.sum(axis=0), sampled.sum(axis=0)
    share = np.divide(every, some, out=np.full_like(every, np.nan), where=some > 0.0)
    work = by_class[:, :, WORK] + np.asarray(mean_sizes) * (departures - by_class[:, :, ARRIVALS])
    return by_class[:, :, AREA], by_class[:, :, SLOWDOWN] * share, work


def grouped(backend: Backend, sums: Any, whole: Any, group_of: Any, groups: int) -> tuple[Any, int]:
    """What `Backend.sum_groups` does, for replications whose groups are given; for few of them."""
    parts, status = backend.sum_groups(sums, whole, sums.shape[1])
    columns = (parts if isinstance(parts, np.ndarray) else backend.download(parts)).sum(axis=1)
    found = np.zeros((len(columns), 1, groups))
    for column, group in zip(columns.T, group_of, strict=True):
        found[:, 0, group] += column
    return found, status


def pooled(groups: Sequence[Records]) -> Records:
    """All groups as one run; histograms and segments are those of the first."""
    summed = {
        name: np.sum([getattr(one, name) for one in groups], axis=0)
        for name in groups[0].arrays()
        if name != "segment" and not name.endswith("histogram")
    }
    return replace(groups[0], **summed)
