"""Spending whole steps: cores that do not divide evenly go to the most valuable steps that fit.

A step is one core, or the next vertex of a speedup that is not concave. Plain functions that the engine
compiles, on the sets of `width_sets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.speedup_table import POINTS, PREAMBLE, ROW, START, TABLE, VERTICES, _segment, speed
from malleable.numerics.hull import DENT
from malleable.policies.rules.market_groups import (
    CONCAVE,
    GROUP_CLASS,
    GROUP_WEIGHT,
    LEAST,
    MOST,
    WHAM,
    class_row,
)
from malleable.policies.rules.tolerances import DUST, SAME
from malleable.policies.rules.width_set_heap import pop_set, push_set
from malleable.policies.rules.width_sets import (
    AGE,
    FIRST,
    GROUP,
    NARROW,
    REACH,
    SIZE,
    VALUE,
    WIDER,
    width_sets,
)

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

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
    if width < table[own + LEAST]:
        return float(table[own + LEAST])
    if table[own + CONCAVE] != 0.0 or int(table[row]) != TABLE:
        return max(min(width + 1.0, float(table[own + MOST])), width)
    vertices = int(table[row + VERTICES])
    widths = int(table[row + START]) + 2 * int(table[row + POINTS])
    following = _segment(table, widths, vertices, width) + 1
    return float(table[widths + following]) if following < vertices else width


def is_straight(table: FloatArray, i: int, low: float, high: float) -> bool:
    """Whether class i's measurements between two widths lie on their chord (`malleable.numerics.hull`)."""
    row = PREAMBLE + ROW * i
    if table[class_row(table, i) + CONCAVE] != 0.0 or int(table[row]) != TABLE or high <= low:
        return True
    corners, points = int(table[row + START]), int(table[row + POINTS])
    start, end = speed(table, i, low), speed(table, i, high)
    for corner in range(_segment(table, corners, points, low) + 1, points):
        width = table[corners + corner]
        if width >= high:
            break
        chord = start + (width - low) / (high - low) * (end - start)
        if table[corners + points + corner] < chord * (1.0 - DENT):
            return False
    return True


def _best_part(
    table: FloatArray, i: int, weight: float, width: float, spare: float, kind: int
) -> tuple[float, float]:
    """Where the next width is too far: the most valuable one within reach, its value first.

    Among corners of one value the widest counts; the width itself where nothing is gained.
    """
    own, row = class_row(table, i), PREAMBLE + ROW * i
    reach = min(width + spare, float(table[own + MOST]))
    slow, best, target = speed(table, i, width), 0.0, width
    if reach < 1.0:  # no job runs on a part of a core
        return best, target
    if reach > width and speed(table, i, reach) > slow:
        best, target = step_value(table, i, weight, width, reach, kind), reach
    if table[own + CONCAVE] != 0.0 or int(table[row]) != TABLE:
        return best, target
    corners, points = int(table[row + START]), int(table[row + POINTS])
    first = _segment(table, corners, points, width)
    # From the far end back, so that of corners of one value the widest is found first.
    for corner in range(_segment(table, corners, points, reach), first - 1, -1):
        wider = float(table[corners + corner])
        if width < wider < reach and table[corners + points + corner] > slow:
            value = step_value(table, i, weight, width, wider, kind)
            if value > best * (1.0 + SAME):
                best, target = value, wider
    return best, target


def _look_ahead(table: FloatArray, market: FloatArray, sets: FloatArray, one: int, kind: int) -> None:
    """The next step of a set."""
    i, weight = _class_and_weight(market, sets, one)
    narrow = float(sets[NARROW, one])
    wider = next_width(table, i, narrow)
    sets[WIDER, one], sets[REACH, one] = wider, 0.0
    if wider > narrow:
        sets[VALUE, one] = step_value(table, i, weight, narrow, wider, kind)


def _class_and_weight(market: FloatArray, sets: FloatArray, one: int) -> tuple[int, float]:
    g = int(sets[GROUP, one])
    return int(market[GROUP_CLASS, g]), float(market[GROUP_WEIGHT, g])


def spend(  # noqa: C901 - one loop over numbers
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    served: int,
    present: int,
    spare: float,
    kind: int,
    out: FloatArray,
) -> float:
    """Raise the served jobs from their group's quantity by the most valuable steps that fit.

    Jobs that follow in the queue, up to `present`, wait and may be given their first cores. A step that does
    not fit comes back as the best part of it within reach of the cores that are left.

    The value of the first step that not all of its set could take, 0 if there is none: the lowest price at
    which the cores suffice.
    """
    order, sets, count = width_sets(jobs, market, groups, member, queue, served, present)
    heap = np.zeros(sets.shape[1] + 1, np.int64)
    for one in range(count):
        if sets[SIZE, one] > 0.0:
            _look_ahead(table, market, sets, one, kind)
            push_set(heap, sets, one)
    entries, price = count, -1.0
    while spare > DUST:
        best = pop_set(heap, sets)
        if best < 0:
            break
        lucky = _affordable(sets, best, spare)
        rest = int(sets[SIZE, best]) - lucky
        left = best
        if rest > 0 and price < 0.0:
            price = float(sets[VALUE, best])
        if lucky > 0:
            spare -= lucky * (sets[WIDER, best] - sets[NARROW, best])
            if rest > 0:
                left = count
                count += 1
                for line in range(sets.shape[0]):  # slices would take two seconds more to compile
                    sets[line, left] = sets[line, best]
                sets[FIRST, left] += lucky
            entries += 1
            sets[SIZE, best], sets[NARROW, best], sets[AGE, best] = lucky, sets[WIDER, best], entries
            _look_ahead(table, market, sets, best, kind)
            push_set(heap, sets, best)
        if rest > 0:
            i, weight = _class_and_weight(market, sets, left)
            value, wider = _best_part(table, i, weight, float(sets[NARROW, left]), spare, kind)
            sets[SIZE, left], sets[VALUE, left] = rest, value
            sets[WIDER, left], sets[REACH, left] = wider, spare
            push_set(heap, sets, left)
    if price < 0.0:
        best = pop_set(heap, sets)
        price = float(sets[VALUE, best]) if best >= 0 else 0.0
    for one in range(count):
        for position in range(int(sets[FIRST, one]), int(sets[FIRST, one]) + int(sets[SIZE, one])):
            out[order[position]] = sets[NARROW, one]
    return price


def _affordable(sets: FloatArray, one: int, spare: float) -> int:
    """How many jobs of a set can take its step; one at most takes a part, and none an outdated one."""
    if sets[REACH, one] != 0.0 and sets[REACH, one] != spare:
        return 0
    step = sets[WIDER, one] - sets[NARROW, one]
    size = int(sets[SIZE, one]) if sets[REACH, one] == 0.0 else 1
    return size if size * step <= spare + DUST else int((spare + DUST) / step)
