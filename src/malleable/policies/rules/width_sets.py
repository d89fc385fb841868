"""Sets of jobs that take their steps together (see `width_steps`), in plain numbers.

A *set* is a run of jobs of one group with the same width, the earliest first (the smallest of equal age).
It is a column of an array whose lines are named below; raising only some of its jobs splits it in two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import AGE as JOB_AGE
from malleable.engine.rule_interface import REMAINING
from malleable.policies.rules.market_groups import GROUP_CLASS, GROUP_WEIGHT, LOW
from malleable.policies.rules.ordering import ascending

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

FIRST, SIZE, GROUP, NARROW, WIDER, VALUE, REACH, AGE = range(8)
"""Where its jobs stand, its width, the next one and what that is worth, the spare cores for which this is the
best part of a step that does not fit (0 for a step), and its rank among sets of one value."""
SET_LINES = 8


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
    order, sets = np.empty(present, np.int64), np.zeros((SET_LINES, count + present))
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
        sets[SIZE, shift + member[queue[position]]] += 1.0
    by_class = True
    for g in range(groups):
        sets[GROUP, shift + g], sets[AGE, shift + g], sets[FIRST, shift + g] = g, shift + g, first
        first += int(sets[SIZE, shift + g])
        if shift == 0 and sets[SIZE, g] > 0.0:
            sets[NARROW, g] = market[LOW, g]
        sets[SIZE, shift + g] = 0.0
        by_class = by_class and market[GROUP_CLASS, g] == g
    earliest_first = _earliest_first(jobs, queue)
    if not by_class:
        _rank(market, member, earliest_first, shift, sets)
    for position in range(size):
        one = shift + member[earliest_first[position]]
        order[int(sets[FIRST, one]) + int(sets[SIZE, one])] = earliest_first[position]
        sets[SIZE, one] += 1.0


def _earliest_first(jobs: FloatArray, queue: IntArray) -> IntArray:
    """The queue by age, the smallest first among jobs of one age."""
    size = queue.shape[0]
    keys = np.empty(size)
    for position in range(size):
        keys[position] = jobs[queue[position], REMAINING]
    by_size = ascending(keys)
    for position in range(size):
        keys[position] = -jobs[queue[by_size[position]], JOB_AGE]
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
    for line in (GROUP_WEIGHT, GROUP_CLASS):
        for position in range(size):
            keys[position] = market[line, order[position]]
        by_key = ascending(keys)
        for position in range(size):
            by_key[position] = order[by_key[position]]
        order = by_key
    for position in range(size):
        sets[AGE, shift + order[position]] = shift + position
