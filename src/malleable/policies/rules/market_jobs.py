"""The market policies job by job, where class rules do not reach: plain functions that the engine compiles.

`wham_jobs_rule`, `wham_integer_rule` and `greedy_jobs_rule` take any speedups and weights: serve by index or
by price, then share the cores at one price, which they leave in the table. The table and the market that they
build from it are described in `market_groups`. `allocate` and the simulator run these functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING
from malleable.engine.speedup_table import speed
from malleable.policies.rules.market_clearing import clear_groups, excess
from malleable.policies.rules.market_groups import (
    CLEARED,
    CONCAVE,
    COUNT,
    GROUP_CLASS,
    GROUP_WEIGHT,
    HIGH,
    LEAST,
    LINES,
    LOW,
    MOST,
    TIES,
    WHAM,
    WORK,
    class_row,
    cores_needed,
    count_served,
    group_jobs,
    value_of,
)
from malleable.policies.rules.market_steps import is_straight, spend
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST, TIGHT

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray


def wham_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM: blocks of the most efficient width by c·s/(k·x), then one price for all who are served."""
    size = jobs.shape[0]
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    if cores_needed(table, market, groups) <= cores + DUST:
        _share(jobs, table, market, groups, member, queue, size, size, cores, WHAM, out)
        return
    queue = _by_index(jobs, table, member, market)
    fit, spare = blocks_that_fit(jobs, table, queue, cores)
    if spare < 1.0:
        _share(jobs, table, market, groups, member, queue, fit, fit, cores, WHAM, out)
        table[int(table[1]) + CLEARED] = np.nan
        return
    _give_blocks(jobs, table, queue, fit, spare, out)


def wham_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM on whole cores: the same, then steps in order of their price as long as they fit.

    The steps start from the demand at a price at which every class certainly fits, rounding up included.
    """
    size = jobs.shape[0]
    whole = float(math.floor(cores))
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    fit, spare = size, 0.0
    if cores_needed(table, market, groups) > whole + DUST:
        queue = _by_index(jobs, table, member, market)
        fit, spare = blocks_that_fit(jobs, table, queue, whole)
    if spare >= 1.0:
        _give_blocks(jobs, table, queue, fit, math.floor(spare), out)
        return
    count_served(market, groups, member, queue, fit)
    price = clear_groups(table, market, groups, whole - 2.0 * fit, float(fit), WHAM)
    left = whole
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            market[LOW, g] = whole_wish(table, market, g, price, WHAM)
            left -= market[COUNT, g] * market[LOW, g]
    price = spend(jobs, table, market, groups, member, queue, fit, fit, left, WHAM, out)
    table[int(table[1]) + CLEARED] = price if fit == size else np.nan


def greedy_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """GREEDY with any weights: the longest prefix of the queue whose last job is worth its cores.

    The prefix clears below a price if and only if, at that price, it wants at most the cores there are.
    """
    size = jobs.shape[0]
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    if cores_needed(table, market, groups) <= cores + DUST:
        least_value = math.inf
        for g in range(groups):
            if market[COUNT, g] > 0.0:
                least_value = min(least_value, value_of(table, market, g))
        if excess(table, market, groups, cores, WORK, least_value * (1.0 + DUST)) <= DUST:
            _share(jobs, table, market, groups, member, queue, size, size, cores, WORK, out)
            return
    queue = by_value(table, market, member)
    few, many = 0, min(blocks_that_fit(jobs, table, queue, cores)[0], size) + 1
    trial = many - 1
    while many - few > 1:
        value = value_of(table, market, member[queue[trial - 1]])
        count_served(market, groups, member, queue, trial)
        if excess(table, market, groups, cores, WORK, value * (1.0 + DUST)) <= DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    _share_with_rest(jobs, table, market, groups, member, queue, few, cores, out)


def _share_with_rest(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    few: int,
    cores: float,
    out: FloatArray,
) -> None:
    """Serve the first few; give the next a part of its block if, at its own value, they leave a core.

    Where some speedup has a dent, what is left is offered to all jobs, served or not.
    """
    size = jobs.shape[0]
    present = size if few < size and dented(jobs, table) else few
    if few < size:
        following = queue[few]
        count_served(market, groups, member, queue, few)
        value = value_of(table, market, member[following])
        left = -excess(table, market, groups, cores, WORK, value)
        spare = min(left, table[class_row(table, int(jobs[following, CLASS])) + LEAST])
        if spare >= 1.0:
            table[int(table[1]) + CLEARED] = value
            if present > few:
                spend(jobs, table, market, groups, member, queue, few, present, left, WORK, out)
                return
            for position in range(few):
                out[queue[position]] = market[LOW, member[queue[position]]]
            out[following] = spare
            return
    _share(jobs, table, market, groups, member, queue, few, present, cores, WORK, out)


def dented(jobs: FloatArray, table: FloatArray) -> bool:
    """Whether some job's speedup is not concave."""
    dented = False
    for j in range(jobs.shape[0]):
        dented = dented or table[class_row(table, int(jobs[j, CLASS])) + CONCAVE] == 0.0
    return dented


def _by_index(jobs: FloatArray, table: FloatArray, member: IntArray, market: FloatArray) -> IntArray:
    """Job positions by decreasing c·s(k_e)/(k_e·x), earlier arrivals first among equals."""
    keys = np.empty(jobs.shape[0])
    for j in range(jobs.shape[0]):
        remaining = float(jobs[j, REMAINING])
        keys[j] = -value_of(table, market, member[j]) / remaining if remaining > 0.0 else -math.inf
    return ascending(keys)


def by_value(table: FloatArray, market: FloatArray, member: IntArray) -> IntArray:
    """Job positions by decreasing value, then as the table says, earlier arrivals first among equals."""
    size = member.shape[0]
    keys, ties = np.empty(size), np.empty(size)
    different = False
    for j in range(size):
        keys[j] = -value_of(table, market, member[j])
        ties[j] = table[class_row(table, int(market[GROUP_CLASS, member[j]])) + TIES]
        different = different or ties[j] != ties[0]
    if not different:
        return ascending(keys)
    first = ascending(ties)
    for j in range(size):
        ties[j] = keys[first[j]]
    second = ascending(ties)
    for j in range(size):
        second[j] = first[second[j]]
    return second


def blocks_that_fit(jobs: FloatArray, table: FloatArray, queue: IntArray, cores: float) -> tuple[int, float]:
    """How many least widths fit one after the other, and what is left."""
    used = 0.0
    for position in range(queue.shape[0]):
        need = table[class_row(table, int(jobs[queue[position], CLASS])) + LEAST]
        if used + need > cores + DUST:
            return position, cores - used
        used += need
    return queue.shape[0], cores - used


def _give_blocks(
    jobs: FloatArray, table: FloatArray, queue: IntArray, fit: int, spare: float, out: FloatArray
) -> None:
    """Least widths for those who fit, and the rest for the next."""
    for position in range(fit):
        out[queue[position]] = table[class_row(table, int(jobs[queue[position], CLASS])) + LEAST]
    if fit < queue.shape[0]:
        out[queue[fit]] = spare


def whole_wish(table: FloatArray, market: FloatArray, g: int, price: float, kind: int) -> float:
    """The neighbouring integer of the group's quantity that its jobs like better at the price."""
    i, weight, wish = int(market[GROUP_CLASS, g]), float(market[GROUP_WEIGHT, g]), float(market[LOW, g])
    down, up = math.floor(wish), min(math.ceil(wish), float(table[class_row(table, i) + MOST]))
    if up <= down:
        return float(down)
    slow, fast = speed(table, i, down), speed(table, i, up)
    if kind == WHAM:
        cheaper = (weight + price * up) / fast < (weight + price * down) / slow
    else:
        cheaper = price * up - weight * fast < price * down - weight * slow
    return float(up) if cheaper else float(down)


def _share(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    served: int,
    present: int,
    cores: float,
    kind: int,
    out: FloatArray,
) -> None:
    """Cores for the first jobs of the queue at the price that clears their market.

    What a step leaves over that does not fit is offered to those who follow as well, up to `present`.
    """
    count_served(market, groups, member, queue, served)
    price = clear_groups(table, market, groups, cores, TIGHT * cores, kind)
    table[int(table[1]) + CLEARED] = price if served > 0 else np.nan
    missing, gap, pieces = cores, 0.0, False
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            step = market[HIGH, g] - market[LOW, g]
            missing -= market[COUNT, g] * market[LOW, g]
            gap += market[COUNT, g] * step
            straight = is_straight(table, int(market[GROUP_CLASS, g]), market[LOW, g], market[HIGH, g])
            pieces = pieces or not straight
    if pieces:
        spend(jobs, table, market, groups, member, queue, served, present, missing, kind, out)
        return
    part = min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0
    for position in range(served):
        g = member[queue[position]]
        out[queue[position]] = market[LOW, g] + part * (market[HIGH, g] - market[LOW, g])
