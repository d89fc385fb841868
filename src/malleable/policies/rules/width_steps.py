"""Spending whole steps: cores that do not divide evenly go to the most valuable steps that fit.

A step is one core, or the next vertex of a speedup that is not concave. Jobs of one group with the same width
take their steps together, as a *set*: a run of jobs, the earliest first (the smallest of equal age), which is
a column of an array with the lines of `Set`. Raising only some of its jobs splits it in two. Plain functions
that the engine compiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.rule_interface import AGE, REMAINING
from malleable.engine.speedup_table import corners, has_corners, speed, vertices
from malleable.numerics.hull import DENT
from malleable.numerics.places import places
from malleable.policies.rules.class_rules import WHAM
from malleable.policies.rules.market import GROUP, WIDTHS, class_row
from malleable.policies.rules.ordering import ascending, heap_of
from malleable.policies.rules.tolerances import DUST, SAME
from malleable.speedups.table import corner_below

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray


class Set(NamedTuple):
    """The lines of a set."""

    FIRST: int
    SIZE: int
    """Where its jobs stand, and how many there are."""
    GROUP: int
    NARROW: int
    WIDER: int
    """Its width and the next one."""
    VALUE: int
    """What that step is worth."""
    REACH: int
    """The spare cores for which this is the best part of a step that does not fit; 0 for a step."""
    AGE: int
    """Its rank among sets of one value."""


SET = places(Set)
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
    own = class_row(table, i)
    if width < table[own + WIDTHS.LEAST]:
        return float(table[own + WIDTHS.LEAST])
    if table[own + WIDTHS.CONCAVE] != 0.0 or not has_corners(table, i):
        return max(min(width + 1.0, float(table[own + WIDTHS.MOST])), width)
    widths, count = vertices(table, i)
    following = corner_below(table, widths, count, width) + 1
    return float(table[widths + following]) if following < count else width


def is_straight(table: FloatArray, i: int, low: float, high: float) -> bool:
    """Whether class i's measurements between two widths lie on their chord (`malleable.numerics.hull`)."""
    if table[class_row(table, i) + WIDTHS.CONCAVE] != 0.0 or not has_corners(table, i) or high <= low:
        return True
    first, points = corners(table, i)
    start, end = speed(table, i, low), speed(table, i, high)
    for corner in range(corner_below(table, first, points, low) + 1, points):
        width = table[first + corner]
        if width >= high:
            break
        chord = start + (width - low) / (high - low) * (end - start)
        if table[first + points + corner] < chord * (1.0 - DENT):
            return False
    return True


def _best_part(
    table: FloatArray, i: int, weight: float, width: float, spare: float, kind: int
) -> tuple[float, float]:
    """Where the next width is too far: the most valuable one within reach, its value first.

    Among corners of one value the widest counts; the width itself where nothing is gained.
    """
    own = class_row(table, i)
    reach = min(width + spare, float(table[own + WIDTHS.MOST]))
    slow, best, target = speed(table, i, width), 0.0, width
    if reach < 1.0:  # no job runs on a part of a core
        return best, target
    if reach > width and speed(table, i, reach) > slow:
        best, target = step_value(table, i, weight, width, reach, kind), reach
    if table[own + WIDTHS.CONCAVE] != 0.0 or not has_corners(table, i):
        return best, target
    first, points = corners(table, i)
    here = corner_below(table, first, points, width)
    # From the far end back, so that of corners of one value the widest is found first.
    for corner in range(corner_below(table, first, points, reach), here - 1, -1):
        wider = float(table[first + corner])
        if width < wider < reach and table[first + points + corner] > slow:
            value = step_value(table, i, weight, width, wider, kind)
            if value > best * (1.0 + SAME):
                best, target = value, wider
    return best, target


def _push_next_step(
    heap: IntArray, table: FloatArray, market: FloatArray, sets: FloatArray, one: int, kind: int
) -> None:
    """Offer the next step of a set, if it can step at all."""
    i, weight = _class_and_weight(market, sets, one)
    narrow = float(sets[SET.NARROW, one])
    wider = next_width(table, i, narrow)
    sets[SET.WIDER, one], sets[SET.REACH, one] = wider, 0.0
    if wider > narrow:
        sets[SET.VALUE, one] = step_value(table, i, weight, narrow, wider, kind)
        _push(heap, sets, one)


def _push_step(heap: IntArray, sets: FloatArray, one: int) -> None:
    """Offer a step, unless it leads nowhere."""
    if sets[SET.WIDER, one] > sets[SET.NARROW, one]:
        _push(heap, sets, one)


def _class_and_weight(market: FloatArray, sets: FloatArray, one: int) -> tuple[int, float]:
    g = int(sets[SET.GROUP, one])
    return int(market[GROUP.CLASS, g]), float(market[GROUP.WEIGHT, g])


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
        if sets[SET.SIZE, one] > 0.0:
            _push_next_step(heap, table, market, sets, one, kind)
    entries, price = count, -1.0
    while spare > DUST:
        best = _pop(heap, sets)
        if best < 0:
            break
        lucky = _affordable(sets, best, spare)
        rest = int(sets[SET.SIZE, best]) - lucky
        left = best
        if rest > 0 and price < 0.0:
            price = float(sets[SET.VALUE, best])
        if lucky > 0:
            spare -= lucky * (sets[SET.WIDER, best] - sets[SET.NARROW, best])
            if rest > 0:
                left = count
                count += 1
                for line in range(sets.shape[0]):  # slices would take two seconds more to compile
                    sets[line, left] = sets[line, best]
                sets[SET.FIRST, left] += lucky
            entries += 1
            sets[SET.SIZE, best], sets[SET.NARROW, best], sets[SET.AGE, best] = (
                lucky,
                sets[SET.WIDER, best],
                entries,
            )
            _push_next_step(heap, table, market, sets, best, kind)
        if rest > 0:
            i, weight = _class_and_weight(market, sets, left)
            value, wider = _best_part(table, i, weight, float(sets[SET.NARROW, left]), spare, kind)
            sets[SET.SIZE, left], sets[SET.VALUE, left] = rest, value
            sets[SET.WIDER, left], sets[SET.REACH, left] = wider, spare
            _push_step(heap, sets, left)
    if price < 0.0:
        best = _pop(heap, sets)
        price = float(sets[SET.VALUE, best]) if best >= 0 else 0.0
    for one in range(count):
        for position in range(
            int(sets[SET.FIRST, one]), int(sets[SET.FIRST, one]) + int(sets[SET.SIZE, one])
        ):
            out[order[position]] = sets[SET.NARROW, one]
    return price


def _affordable(sets: FloatArray, one: int, spare: float) -> int:
    """How many jobs of a set can take its step; one at most takes a part, and none an outdated one."""
    if sets[SET.REACH, one] != 0.0 and sets[SET.REACH, one] != spare:
        return 0
    step = sets[SET.WIDER, one] - sets[SET.NARROW, one]
    size = int(sets[SET.SIZE, one]) if sets[SET.REACH, one] == 0.0 else 1
    return size if size * step <= spare + DUST else int((spare + DUST) / step)


def _before(sets: FloatArray, one: int, other: int) -> bool:
    """Whether a set pays more than another, or as much and is older."""
    if sets[SET.VALUE, one] == sets[SET.VALUE, other]:
        return bool(sets[SET.AGE, one] < sets[SET.AGE, other])
    return bool(sets[SET.VALUE, one] > sets[SET.VALUE, other])


_push, _pop, _ = heap_of(_before)


def width_sets(
    jobs: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    served: int,
    present: int,
) -> tuple[IntArray, FloatArray, int]:
    """One set a group: the jobs set by set, the sets with room to be split, and their number.

    The first `served` jobs of the queue have the quantity of their group, those who follow have nothing.
    """
    count = groups if present == served else 2 * groups
    order, sets = np.empty(present, np.int64), np.zeros((len(SET), count + present))
    _add_sets(jobs, market, groups, member, queue[:served], 0, 0, order, sets)
    if count > groups:
        _add_sets(jobs, market, groups, member, queue[served:present], served, groups, order, sets)
    return order, sets, count


def _add_sets(
    jobs: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    first: int,
    shift: int,
    order: IntArray,
    sets: FloatArray,
) -> None:
    """The sets of the jobs in the queue, from column `shift` on; their jobs stand from `first` on."""
    size = queue.shape[0]
    for position in range(size):
        sets[SET.SIZE, shift + member[queue[position]]] += 1.0
    by_class = True
    for g in range(groups):
        sets[SET.GROUP, shift + g], sets[SET.AGE, shift + g], sets[SET.FIRST, shift + g] = g, shift + g, first
        first += int(sets[SET.SIZE, shift + g])
        if shift == 0 and sets[SET.SIZE, g] > 0.0:
            sets[SET.NARROW, g] = market[GROUP.LOW, g]
        sets[SET.SIZE, shift + g] = 0.0
        by_class = by_class and market[GROUP.CLASS, g] == g
    earliest_first = _earliest_first(jobs, queue)
    if not by_class:
        _rank(market, member, earliest_first, shift, sets)
    for position in range(size):
        one = shift + member[earliest_first[position]]
        order[int(sets[SET.FIRST, one]) + int(sets[SET.SIZE, one])] = earliest_first[position]
        sets[SET.SIZE, one] += 1.0


def _earliest_first(jobs: FloatArray, queue: IntArray) -> IntArray:
    """The queue by age, the smallest first among jobs of one age."""
    size = queue.shape[0]
    keys = np.empty(size)
    for position in range(size):
        keys[position] = jobs[queue[position], REMAINING]
    by_size = ascending(keys)
    for position in range(size):
        keys[position] = -jobs[queue[by_size[position]], AGE]
    by_age = ascending(keys)
    for position in range(size):
        by_age[position] = queue[by_size[by_age[position]]]
    return by_age


def _rank(
    market: FloatArray, member: IntArray, earliest_first: IntArray, shift: int, sets: FloatArray
) -> None:
    """Where every job is a group of its own, the lower class, weight and size count as the older set."""
    size = earliest_first.shape[0]
    order, keys = np.empty(size, np.int64), np.empty(size)
    for position in range(size):
        order[position] = member[earliest_first[position]]
    for line in (GROUP.WEIGHT, GROUP.CLASS):
        for position in range(size):
            keys[position] = market[line, order[position]]
        by_key = ascending(keys)
        for position in range(size):
            by_key[position] = order[by_key[position]]
        order = by_key
    for position in range(size):
        sets[SET.AGE, shift + order[position]] = shift + position
