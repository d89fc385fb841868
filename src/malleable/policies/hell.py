"""HELL, Highest Efficiency, Lowest Latency (Lin, Paolieri, Chou, Golubchik 2018).

H_j(k) = (s(k)/k)/(x_j/s(k)) = s(k)²/(k·x_j): efficiency over run time. While cores remain (R of them), the
job with the highest max_{k≤R} H_j gets the k that attains it, the larger where several do; once all jobs have
theirs, single cores go to the highest H_j(k_j + 1). Ties between jobs go to the earlier arrival. No job is
taken beyond its peak, where a further core would slow it down. Widths are whole.

With s = k^p all of it is decided by p: below ½ every job starts from one core, above ½ the smallest job takes
everything, at ½ all widths tie (so it takes everything too).

The best k ≤ R of a class changes with R only where h(k) = s(k)²/k reaches a record. `prepare` therefore keeps
the runs of R over which the best k is R itself or does not move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import (
    CLASS,
    DUST,
    REMAINING,
    TINY,
    JobRule,
    by_remaining,
    encode,
    peak,
    speed,
    table_of,
)
from malleable.policies.rules.ordering import heap_of

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, Speedup
    from malleable.model import Workload

TIE = 1e-12
"""Relative difference of H that counts as none."""
MOVING = 0.0
"""In place of a width: the best k is R itself."""


def hell(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Best widths in order of H, then single cores to the highest next H."""
    size, classes = jobs.shape[0], int(table[0])
    out[:] = 0.0
    spare = float(math.floor(cores + DUST))
    head, following = np.full(classes, -1), np.full(size, -1)
    order = by_remaining(jobs)
    for position in range(size - 1, -1, -1):
        j = order[position]
        i = int(jobs[j, CLASS])
        following[j], head[i] = head[i], j
    while spare >= 1.0:
        first, best, width = -1, -1.0, 0.0
        for i in range(classes):
            j = head[i]
            if j >= 0:
                k = best_width(table, i, spare)
                value = merit(table, i, k, jobs[j, REMAINING])
                if value > best or (value == best and j < first):
                    first, best, width = j, value, k
        if first < 0:
            break
        out[first] = width
        spare -= width
        head[int(jobs[first, CLASS])] = following[first]
    if size > 0 and spare >= 1.0:
        hand_out(jobs, table, spare, out)


def merit(table: FloatArray, i: int, k: float, remaining: float) -> float:
    """H(k) of a job of class i."""
    s = speed(table, i, k)
    return s * s / (k * max(remaining, TINY))


def next_merit(jobs: FloatArray, table: FloatArray, j: int, k: float) -> float:
    """H_j(k + 1), or −1 where that core would not help."""
    i = int(jobs[j, CLASS])
    if k + 1.0 > peak(table, i) and speed(table, i, k + 1.0) <= speed(table, i, k):
        return -1.0
    return merit(table, i, k + 1.0, jobs[j, REMAINING])


def best_width(table: FloatArray, i: int, spare: float) -> float:
    """The k ≤ spare with the highest H in class i: looked up in the runs of `runs_of`."""
    start = int(table[int(table[1]) + i])
    runs = int(table[start])
    last = 0
    for run in range(1, runs):
        if table[start + 1 + 2 * run] > spare:
            break
        last = run
    width = table[start + 2 + 2 * last]
    return spare if width == MOVING else float(width)


def more_valuable(values: FloatArray, one: int, other: int) -> bool:
    """Whether a job's next core has a higher H than another's, or the same and it came earlier."""
    if values[one] == values[other]:
        return one < other
    return bool(values[one] > values[other])


sink = heap_of(more_valuable)[2]


def hand_out(jobs: FloatArray, table: FloatArray, spare: float, out: FloatArray) -> None:
    """Single cores to the highest H_j(k_j + 1)."""
    size = jobs.shape[0]
    values, heap = np.empty(size), np.empty(size + 1, np.int64)
    heap[0] = size
    for j in range(size):
        values[j] = next_merit(jobs, table, j, out[j])
        heap[1 + j] = j
    for at in range(size // 2, 0, -1):
        sink(heap, values, at)
    while spare >= 1.0 and values[heap[1]] >= 0.0:
        j = heap[1]
        out[j] += 1.0
        spare -= 1.0
        values[j] = next_merit(jobs, table, j, out[j])
        sink(heap, values, 1)


@dataclass(frozen=True)
class Hell(JobRule):
    """HELL: the highest ratio of efficiency to run time first; whole cores."""

    needs = "speedups, work left"

    whole_cores: ClassVar[bool] = True
    rule = staticmethod(hell)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        encoded = encode(workload.speedups)
        runs = [runs_of(speedup, cores) for speedup in workload.speedups]
        lengths = np.array([0, *map(len, runs[:-1])])
        starts = len(encoded) + len(runs) + np.cumsum(lengths)
        return table_of(encoded, np.concatenate([starts, *runs]))


def runs_of(speedup: Speedup, cores: float) -> FloatArray:
    """Number of runs, then the first R of each and its best width (`MOVING`: R itself)."""
    limit = max(1.0, np.floor(min(cores + DUST, np.ceil(float(speedup.peak)))))
    k = np.arange(1.0, limit + 1.0)
    h = speedup(k) ** 2 / k
    record = h >= np.maximum.accumulate(h) * (1.0 - TIE)
    if cores > limit:
        record = np.append(record, False)  # beyond the peak there are no more records
    first = np.flatnonzero(np.diff(record, prepend=~record[:1]))
    widths = np.where(record[first], MOVING, first)
    return np.concatenate([[float(len(first))], np.column_stack([first + 1.0, widths]).ravel()])
