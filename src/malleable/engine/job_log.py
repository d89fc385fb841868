"""What a run notes of every single job, and of the cores in use over time, when it is asked to.

The kernels have a copy of their own for this (`LOGGING`), so that other runs pay nothing. Usage over time is
summed in slices of equal length; when time runs beyond the last, neighbouring slices are joined. If cores
have prices, what every job pays for its cores is noted, too (`theory.price_path` says what for).

Plain functions that the engine compiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.rule_interface import inlined

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

# Rows of a log, one column per job.
END, START, HELD_AREA, CHANGES, RENT = range(5)
"""When the job left, when it first had a core, the integral of its cores, how often a running one changed,
and the integral of what its cores cost."""
LOG_ROWS = 5
# Columns of `served`, one row per class: for the class kernel, whose jobs of a class are all as wide.
CORE_CLOCK, CHANGE_CLOCK, CURRENT, RENT_CLOCK = range(4)
"""The integral of the width, how often it changed, the width, and the integral of what it costs."""
SERVED = 4
# Entries of `slices`.
FIRST, LENGTH, PAID, PLACE = range(4)
"""When the first slice starts, how long each is, what one core has cost so far, the edge passed last."""


class PricePath(NamedTuple):
    """The price of a core over time: prices[b] from edges[b] to edges[b + 1], and 0 outside."""

    edges: FloatArray
    prices: FloatArray

    @property
    def paid(self) -> FloatArray:
        """∫ l at the edges: what one core has cost up to there."""
        return np.append(0.0, np.cumsum(self.prices * np.diff(self.edges)))


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


@inlined
def rent_until(paid: Any, slices: Any, now: float) -> float:
    """What one core has cost since this was last asked; `paid` has the edges, and ∫ l up to each."""
    last = paid.shape[1] - 1
    if last < 1:
        return 0.0
    place = int(slices[PLACE])
    while place < last and paid[0, place + 1] <= now:
        place += 1
    slices[PLACE] = place
    total = paid[1, place]
    if place < last and now > paid[0, place]:
        share = (now - paid[0, place]) / (paid[0, place + 1] - paid[0, place])
        total += share * (paid[1, place + 1] - paid[1, place])
    rent = total - slices[PAID]
    slices[PAID] = total
    return float(rent)
