"""How much work is left of each job, by the best that is known of it.

Work is time on one core. Between two reports a job is taken to work at the speed of its class on the cores
that it says it uses. What is left is its size less the work done, where the size is known: the number of its
units times the work that one was measured to be, or as declared, as far as jobs of its class have kept their
word. Where it is not, or where a job has done more than its size, it is what the law of sizes of its class,
given or learned, expects of a job that has done so much,

    E[X − a | X > a].

For policies that look at more than means there are outcomes: what may be left, by the same law.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from malleable.live.core.job_table import CLASS, DECLARED, DONE, NUMBER, SINCE, SIZE, SPEED, JobTable
from malleable.live.core.learned_sizes import GivenSizes, LearnedSizes

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray

ROUNDING = 1e-9
"""Work beyond a known size, as a share of it, that is rounding."""
MATERIAL = 0.3
"""Growth of the work done that changes what is believed."""
LEAST = 1e-12
"""What is left of a job that is there still, as a share of its size, at least."""
OUTCOMES = 5
"""What may be left of a job is one of so many amounts; a prime number."""

Sizes = LearnedSizes | GivenSizes


def work_done(table: JobTable, rows: IntArray, now: float) -> FloatArray:
    """Work done of each job; a job that pauses after a resize has a `SINCE` in the future."""
    passed = np.maximum(now - table[SINCE][rows], 0.0)
    return np.asarray(table[DONE][rows] + table[SPEED][rows] * passed)


def remaining_work(
    table: JobTable, rows: IntArray, now: float, sizes: Sizes
) -> tuple[FloatArray, FloatArray]:
    """Work left of each job, and in all."""
    done, size = work_done(table, rows, now), table[SIZE][rows].copy()
    left, index = size - done, table[CLASS][rows].astype(np.intp)
    unknown, trust = ~(left >= -ROUNDING * size), _trust(table, rows, sizes)
    guessed = unknown | (trust < 1.0)
    if not guessed.any():
        return np.maximum(left, LEAST * size), size
    if isinstance(sizes, LearnedSizes):
        there = table.rows()
        sizes.look(table[CLASS][there].astype(np.intp), work_done(table, there, now))
    for i in np.unique(index[guessed]).tolist():
        mine = guessed & (index == i)
        expected = sizes.remaining(i, done[mine])
        said = trust[mine] * left[mine] + (1.0 - trust[mine]) * expected
        left[mine] = np.where(unknown[mine], expected, said)
    size[guessed] = done[guessed] + left[guessed]
    return np.maximum(left, LEAST * size), size


def possible_work(table: JobTable, rows: IntArray, now: float, sizes: Sizes) -> FloatArray | None:
    """What may be left of each job, equally likely, in `OUTCOMES` lines; None where all of it is known.

    A job's outcomes are quantiles of what is believed of it; in which line each stands depends on its number
    alone, so that they stay as others come and go, and those of two jobs are as good as independent.
    """
    done, size = work_done(table, rows, now), table[SIZE][rows]
    left, trust = size - done, _trust(table, rows, sizes)
    trust = np.where(left >= -ROUNDING * size, trust, 0.0)
    if not isinstance(sizes, LearnedSizes) or (trust == 1.0).all():
        return None
    index, chance = table[CLASS][rows].astype(np.intp), _chances(table[NUMBER][rows])
    out = np.repeat(np.maximum(left, LEAST * size)[None, :], OUTCOMES, axis=0)
    for i in np.unique(index[trust < 1.0]).tolist():
        mine = (trust < 1.0) & (index == i)
        kept = trust[mine]
        drawn = sizes.possible(i, done[mine], np.maximum(chance[:, mine] - kept, 0.0) / (1.0 - kept))
        out[:, mine] = np.where(chance[:, mine] < kept, out[:, mine], drawn)
    return np.asarray(np.maximum(out, LEAST * np.where(np.isnan(size), done, size)))


def _chances(numbers: FloatArray) -> FloatArray:
    """Each job's chances (k + ½)/OUTCOMES in an order of its own; OUTCOMES is prime."""
    mixed = (numbers.astype(np.int64) * 2_654_435_761) % 2**32
    step, start = 1 + (mixed >> 8) % (OUTCOMES - 1), (mixed >> 18) % OUTCOMES
    return np.asarray(((step * np.arange(OUTCOMES)[:, None] + start) % OUTCOMES + 0.5) / OUTCOMES)


def _trust(table: JobTable, rows: IntArray, sizes: Sizes) -> FloatArray:
    """How far the size is believed that is known of each job: in full, unless it was only declared."""
    if not isinstance(sizes, LearnedSizes):
        return np.ones(len(rows))
    return np.where(table[DECLARED][rows] > 0.0, sizes.trust[table[CLASS][rows].astype(np.intp)], 1.0)


def beliefs_change(table: JobTable, rows: IntArray, now: float, sizes: Sizes, least: float) -> float:
    """When something else is believed of a running job of unknown size than now, `least` from now at best."""
    speed = table[SPEED][rows]
    if not isinstance(sizes, LearnedSizes) or not (speed > 0.0).any():
        return inf
    done, size = work_done(table, rows, now), table[SIZE][rows]
    guessed = (speed > 0.0) & (~(size >= done) | (_trust(table, rows, sizes) < 1.0))
    if not guessed.any():
        return inf
    return now + max(float((MATERIAL * done[guessed] / speed[guessed]).min()), least)
