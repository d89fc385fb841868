"""What a run notes of every single job, and of the cores in use over time, when it is asked to.

The kernels have a copy of their own for this (`LOGGING`), so that other runs pay nothing. Usage over time is
summed in slices of equal length; when time runs beyond the last, neighbouring slices are joined.

Plain functions that the engine compiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.engine.rule_interface import inlined

# Rows of a log, one column per job.
END, START, HELD_AREA, CHANGES = range(4)
"""When the job left, when it first had a core, the integral of its cores, how often a running one changed."""
LOG_ROWS = 4
# Columns of `served`, one row per class: for the class kernel, whose jobs of a class are all as wide.
CORE_CLOCK, CHANGE_CLOCK, CURRENT = range(3)
"""The integral of the class's width, how often the width changed, and the width."""
SERVED = 3
# Entries of `slices`.
FIRST, LENGTH = range(2)
"""When the first slice starts, and how long each is."""


def new_log(jobs: int) -> Any:
    """A log of jobs that have not come yet."""
    return np.vstack([np.full((2, jobs), np.nan), np.zeros((LOG_ROWS - 2, jobs))])


def join_slices(usage: Any, slices: Any, now: float) -> None:
    """Join neighbouring slices until the last one ends after `now`."""
    count = usage.shape[1]
    while now >= slices[FIRST] + slices[LENGTH] * count:
        for i in range(usage.shape[0]):
            for b in range(count // 2):
                usage[i, b] = usage[i, 2 * b] + usage[i, 2 * b + 1]
            for b in range(count // 2, count):
                usage[i, b] = 0.0
        slices[LENGTH] *= 2.0


@inlined
def add_usage(usage: Any, slices: Any, i: int, start: float, end: float, cores: float) -> None:
    """Add so many cores of class i from `start` to `end`."""
    first = slices[FIRST]
    length = slices[LENGTH]
    low = max(int((start - first) / length), 0)
    high = int((end - first) / length)
    if low >= high:
        usage[i, low] += cores * (end - start)
    else:
        for b in range(low, high + 1):
            a = max(start, first + b * length)
            z = min(end, first + (b + 1) * length)
            usage[i, b] += cores * max(z - a, 0.0)
