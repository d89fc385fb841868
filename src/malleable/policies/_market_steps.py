"""Spending whole steps: cores that do not divide evenly go to the most valuable steps that fit.

A step is one core, or the next vertex of a speedup that is not concave. Plain functions that the engine
compiles; the same procedure as `_purchase._fill`. A *set* is a run of jobs of one group with the same width,
the earliest first (the smallest of equal age); raising only some of them leaves the others where they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.abi import AGE as JOB_AGE
from malleable.engine.abi import REMAINING
from malleable.policies._market_groups import (
    CONCAVE,
    COUNT,
    GROUP_CLASS,
    GROUP_WEIGHT,
    LOW,
    MOST,
    WHAM,
    class_row,
)
from malleable.policies._rules import ascending
from malleable.speedups._encoded import POINTS, PREAMBLE, ROW, START, TABLE, VERTICES, _segment, speed

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.jobs import IntArray

# Lines of the sets.
FIRST, SIZE, NARROW, WIDER, VALUE, AGE = range(6)
SET_LINES = 6

DUST = 1e-9
STEEPEST = 1e300
"""Stands for the value of a step along a ray through the origin."""


def step_value(table: FloatArray, i: int, weight: float, low: float, high: float, kind: int) -> float:
    """The price below which a job prefers `high` to `low` cores."""
    s, faster = speed(table, i, low), speed(table, i, high)
    run = high * s - low * faster if kind == WHAM else high - low
    rise = weight * (faster - s)
    return rise / run if run * STEEPEST > rise else STEEPEST


def next_width(table: FloatArray, i: int, width: float) -> float:
    """The next width above this one that some price selects; the same width where there is none."""
    own, row = class_row(table, i), PREAMBLE + ROW * i
    if table[own + CONCAVE] != 0.0 or int(table[row]) != TABLE:
        return max(min(width + 1.0, float(table[own + MOST])), width)
    vertices = int(table[row + VERTICES])
    widths = int(table[row + START]) + 2 * int(table[row + POINTS])
    following = _segment(table, widths, vertices, width) + 1
    return float(table[widths + following]) if following < vertices else width


def spend(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    served: int,
    spare: float,
    kind: int,
    out: FloatArray,
) -> None:
    """Raise the served jobs from their group's quantity by the most valuable steps that fit, then in part."""
    order, sets, entries = _sets(jobs, table, market, groups, member, queue, served, kind)
    stuck = np.empty((2, served), np.int64)
    waiting = 0
    while spare > DUST:
        best = _most_valuable(sets, groups)
        if best < 0:
            break
        i, weight = int(market[GROUP_CLASS, best]), float(market[GROUP_WEIGHT, best])
        first, size, wider = int(sets[FIRST, best]), int(sets[SIZE, best]), float(sets[WIDER, best])
        step = wider - float(sets[NARROW, best])
        lucky = size if size * step <= spare + DUST else int((spare + DUST) / step)
        for position in range(first + lucky, first + size):
            out[order[position]] = sets[NARROW, best]
        if lucky < size:
            stuck[0, waiting], stuck[1, waiting] = best, order[first + lucky]
            waiting += 1
        spare -= lucky * step
        entries += 1
        sets[SIZE, best], sets[NARROW, best], sets[AGE, best] = lucky, wider, entries
        wider = next_width(table, i, wider) if lucky > 0 else wider
        sets[WIDER, best] = wider
        if wider > sets[NARROW, best]:
            sets[VALUE, best] = step_value(table, i, weight, float(sets[NARROW, best]), wider, kind)
    for g in range(groups):
        for position in range(int(sets[FIRST, g]), int(sets[FIRST, g]) + int(sets[SIZE, g])):
            out[order[position]] = sets[NARROW, g]
    if spare > DUST:
        _give_rest(table, market, stuck, waiting, spare, kind, out)


def _most_valuable(sets: FloatArray, groups: int) -> int:
    """The set that pays most for its next step, the oldest where several do; −1 if nobody can step."""
    best = -1
    for g in range(groups):
        if sets[WIDER, g] > sets[NARROW, g] and (
            best < 0
            or sets[VALUE, g] > sets[VALUE, best]
            or (sets[VALUE, g] == sets[VALUE, best] and sets[AGE, g] < sets[AGE, best])
        ):
            best = g
    return best


def _sets(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    served: int,
    kind: int,
) -> tuple[IntArray, FloatArray, int]:
    """The served jobs group by group, earliest first and the smallest of equal age, and one set a group."""
    order, keys = np.empty(served, np.int64), np.empty(served)
    sets = np.empty((SET_LINES, groups))
    first = 0
    for g in range(groups):
        sets[FIRST, g], sets[SIZE, g], sets[AGE, g] = first, 0.0, g
        sets[NARROW, g] = sets[WIDER, g] = sets[VALUE, g] = 0.0
        if market[COUNT, g] > 0.0:
            first += int(market[COUNT, g])
            i, width = int(market[GROUP_CLASS, g]), float(market[LOW, g])
            wider = next_width(table, i, width)
            sets[NARROW, g], sets[WIDER, g] = width, wider
            if wider > width:
                sets[VALUE, g] = step_value(table, i, float(market[GROUP_WEIGHT, g]), width, wider, kind)
    for position in range(served):
        keys[position] = jobs[queue[position], REMAINING]
    by_size = ascending(keys)
    for position in range(served):
        keys[position] = -jobs[queue[by_size[position]], JOB_AGE]
    by_age = ascending(keys)
    earliest_first = np.empty(served, np.int64)
    for position in range(served):
        earliest_first[position] = by_size[by_age[position]]
    by_class = True
    for g in range(groups):
        by_class = by_class and market[GROUP_CLASS, g] == g
    if not by_class:
        _rank(market, member, queue, earliest_first, sets)
    for position in range(served):
        job = queue[earliest_first[position]]
        g = member[job]
        order[int(sets[FIRST, g]) + int(sets[SIZE, g])] = job
        sets[SIZE, g] += 1.0
    return order, sets, groups


def _rank(
    market: FloatArray, member: IntArray, queue: IntArray, earliest_first: IntArray, sets: FloatArray
) -> None:
    """Where every job is a group of its own, the lower class, weight and size count as the older set."""
    served = earliest_first.shape[0]
    order, keys = np.empty(served, np.int64), np.empty(served)
    for position in range(served):
        order[position] = member[queue[earliest_first[position]]]
    for line in (GROUP_WEIGHT, GROUP_CLASS):
        for position in range(served):
            keys[position] = market[line, order[position]]
        by_key = ascending(keys)
        for position in range(served):
            by_key[position] = order[by_key[position]]
        order = by_key
    for position in range(served):
        sets[AGE, order[position]] = position


def _give_rest(
    table: FloatArray,
    market: FloatArray,
    stuck: IntArray,
    waiting: int,
    spare: float,
    kind: int,
    out: FloatArray,
) -> None:
    """Give what is less than any whole step to the job that gains most from it, if one gains."""
    best, job = -math.inf, -1
    for entry in range(waiting):
        g, candidate = stuck[0, entry], stuck[1, entry]
        i, width = int(market[GROUP_CLASS, g]), float(out[candidate])
        value = step_value(table, i, float(market[GROUP_WEIGHT, g]), width, width + spare, kind)
        if value > best and speed(table, i, width + spare) > speed(table, i, width):
            best, job = value, candidate
    if job >= 0:
        out[job] += spare
