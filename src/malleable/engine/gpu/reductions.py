"""Small kernels around the events: sums over groups of replications, histograms put together, columns taken.

Every sum is taken in one order, so that a run gives the same numbers each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.layout import COUNTERS, JOB, PRESENT, STATUS, WHOLE
from malleable.engine.rule_interface import DONE

CHUNKS = 32
"""Parts in which the replications of a group are summed."""
NEVER = 1 << 60
"""The number of the next job of a replication that goes on elsewhere."""


def sum_groups(sums: Any, whole: Any, partial: Any, trouble: Any) -> None:
    """partial[f, chunk, group]: sums of row f over replications, which start again at 0; then jobs present.

    `trouble[0]` becomes the largest status of a replication.
    """
    at = cuda.grid(1)
    rows, fields, groups = sums.shape[0], partial.shape[0], partial.shape[2]
    if at < fields * CHUNKS * groups:
        group = at % groups
        chunk = (at // groups) % CHUNKS
        f = at // (groups * CHUNKS)
        total = 0.0
        t = chunk * groups + group
        while t < sums.shape[1]:
            if f < rows:
                total += sums[f, t]
                sums[f, t] = 0.0
            else:
                total += whole[WHOLE + COUNTERS * (f - rows) + PRESENT, t]
            if f == 0 and whole[STATUS, t] != DONE:
                cuda.atomic.max(trouble, 0, whole[STATUS, t])
            t += CHUNKS * groups
        partial[f, chunk, group] = total


def fold_histogram(histogram: Any, total: Any) -> None:
    """Add the copies of the histogram to the total, and empty them."""
    at = cuda.grid(1)
    if at < total.shape[0]:
        found = np.int64(0)
        for copy in range(histogram.shape[0]):
            found += histogram[copy, at]
            histogram[copy, at] = 0
        total[at] += found


def take_columns(array: Any, columns: Any, out: Any) -> None:
    """out = array[:, columns]."""
    at = cuda.grid(1)
    if at < out.shape[0] * out.shape[1]:
        row, j = at // out.shape[1], at % out.shape[1]
        out[row, j] = array[row, columns[j]]


def retire(whole: Any, sums: Any, columns: Any) -> None:
    """Leave these replications alone from now on: they go on in another cohort."""
    at = cuda.grid(1)
    if at < columns.shape[0]:
        t = columns[at]
        for row in range(whole.shape[0]):
            whole[row, t] = 0
        for row in range(sums.shape[0]):
            sums[row, t] = 0.0
        whole[STATUS, t] = DONE
        whole[JOB, t] = NEVER
