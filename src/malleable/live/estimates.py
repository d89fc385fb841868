"""How much work is left of each job, by the best that is known of it.

Work is time on one core. Between two reports a job is taken to work at the speed of its class on the cores
that it says it uses. What is left is its size less the work done, where the size is known: declared, or the
number of its units times the work that one was measured to be. Where it is not, or where a job has done more
than its size, it is what the law of sizes of its class expects of a job that has done so much,

    E[X − a | X > a],

and as much again as was done where the law knows no job that large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.live.job_table import CLASS, DONE, SINCE, SIZE, SPEED, JobTable

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray
    from malleable.model import Workload

ROUNDING = 1e-9
"""Work beyond a known size, as a share of it, that is rounding."""
LEAST = 1e-12
"""What is left of a job that is there still, as a share of its size, at least."""


def work_done(table: JobTable, rows: IntArray, now: float) -> FloatArray:
    """Work done of each job; a job that pauses after a resize has a `SINCE` in the future."""
    passed = np.maximum(now - table[SINCE][rows], 0.0)
    return np.asarray(table[DONE][rows] + table[SPEED][rows] * passed)


def remaining_work(
    table: JobTable, rows: IntArray, now: float, workload: Workload
) -> tuple[FloatArray, FloatArray]:
    """Work left of each job, and in all."""
    done, size = work_done(table, rows, now), table[SIZE][rows].copy()
    left = size - done
    unknown = ~(left >= -ROUNDING * size)
    if not unknown.any():
        return np.maximum(left, LEAST * size), size
    index = table[CLASS][rows].astype(np.intp)
    for i in np.unique(index[unknown]).tolist():
        mine = unknown & (index == i)
        left[mine] = expected_remaining(workload, i, done[mine])
    size[unknown] = done[unknown] + left[unknown]
    return np.maximum(left, LEAST * size), size


def expected_remaining(workload: Workload, class_index: int, done: FloatArray) -> FloatArray:
    """What the law of sizes expects after so much work."""
    expected = workload.classes[class_index].size.mean_remaining(done)
    return np.where(expected > 0.0, expected, done)
