"""WHAM and GREEDY job by job, on real or whole cores: plain functions that the engine compiles.

Serve by index, or by value; then share the cores at one price, which is left in the table (see `market`).
What jobs want at a price divides evenly among real cores, unless a speedup has a dent; whole cores that do
not divide evenly are given out in steps (`width_steps`). Where speedups have dents, whole steps may miss
GREEDY's optimum; `knapsack` looks for it among all widths. `allocate` and the simulator run these functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, inlined
from malleable.engine.speedup_table import demand, speed, work_demand
from malleable.policies.rules.class_rules import WHAM, WORK
from malleable.policies.rules.market import (
    GROUP,
    MARKET,
    WIDTHS,
    class_row,
    clear_groups,
    cores_needed,
    count_served,
    excess,
    group_jobs,
    least_widths_that_fit,
    value_of,
    weight_of,
)
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST, TIGHT
from malleable.policies.rules.width_steps import is_straight, spend
from malleable.theory.market import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

ALL_WHOLE = 2.0**52
"""From here on every float is a whole number, and soon too large for an integer."""
STEPS = 100
"""Bisections of the logarithm of a price: more than its digits need."""


def wham_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM: blocks of the most efficient width by c·s/(k·x), then one price for all who are served."""
    _serve_by_index(jobs, cores, table, False, out)


def wham_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM on whole cores: the same, then steps in order of their price as long as they fit."""
    _serve_by_index(jobs, float(math.floor(cores)), table, True, out)


@inlined
def _serve_by_index(
    jobs: FloatArray, cores: float, table: FloatArray, integer: bool, out: FloatArray
) -> None:
    size = jobs.shape[0]
    market = np.empty((len(GROUP), max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    if cores_needed(table, market, groups) <= cores + DUST:
        share_out(jobs, table, market, groups, member, queue, size, size, cores, WHAM, integer, out)
        return
    queue = _by_index(jobs, table, member, market)
    fit, spare = least_widths_that_fit(jobs, table, queue, cores)
    if spare < 1.0:
        share_out(jobs, table, market, groups, member, queue, fit, fit, cores, WHAM, integer, out)
        table[int(table[1]) + MARKET.CLEARED] = np.nan
        return
    for position in range(fit):
        out[queue[position]] = table[class_row(table, int(jobs[queue[position], CLASS])) + WIDTHS.LEAST]
    if fit < size:
        out[queue[fit]] = math.floor(spare) if integer else spare


def _by_index(jobs: FloatArray, table: FloatArray, member: IntArray, market: FloatArray) -> IntArray:
    """Job positions by decreasing c·s(k_e)/(k_e·x), earlier arrivals first among equals."""
    keys = np.empty(jobs.shape[0])
    for j in range(jobs.shape[0]):
        remaining = float(jobs[j, REMAINING])
        keys[j] = -value_of(table, market, member[j]) / remaining if remaining > 0.0 else -math.inf
    return ascending(keys)


def greedy_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """GREEDY with any weights: the longest prefix of the queue whose last job is worth its cores."""
    _serve_by_value(jobs, cores, table, False, out)


def greedy_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The same with the whole number of cores that a job prefers at a price, then steps by their value."""
    _serve_by_value(jobs, float(math.floor(cores)), table, True, out)


@inlined
def _serve_by_value(
    jobs: FloatArray, cores: float, table: FloatArray, integer: bool, out: FloatArray
) -> None:
    """The prefix clears below a price if and only if, at that price, it wants at most the cores there are."""
    size = jobs.shape[0]
    market = np.empty((len(GROUP), max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    if cores_needed(table, market, groups) <= cores + DUST:
        least_value = math.inf
        for g in range(groups):
            if market[GROUP.COUNT, g] > 0.0:
                least_value = min(least_value, value_of(table, market, g))
        if excess_of(table, market, groups, cores, WORK, least_value * (1.0 + DUST), integer) <= DUST:
            share_out(jobs, table, market, groups, member, queue, size, size, cores, WORK, integer, out)
            return
    queue = _by_value(table, market, member)
    few, many = 0, min(least_widths_that_fit(jobs, table, queue, cores)[0], size) + 1
    trial = many - 1
    while many - few > 1:
        value = value_of(table, market, member[queue[trial - 1]])
        count_served(market, groups, member, queue, trial)
        if excess_of(table, market, groups, cores, WORK, value * (1.0 + DUST), integer) <= DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    _share_with_rest(jobs, table, market, groups, member, queue, few, cores, integer, out)


def _share_with_rest(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    few: int,
    cores: float,
    integer: bool,
    out: FloatArray,
) -> None:
    """Serve the first few; give the next a part of its block if, at its own value, they leave a core.

    Where some speedup has a dent, what is left is offered to all jobs, served or not.
    """
    size = jobs.shape[0]
    present = size if few < size and _dented(jobs, table) else few
    if few < size:
        following = queue[few]
        count_served(market, groups, member, queue, few)
        value = value_of(table, market, member[following])
        left = -excess_of(table, market, groups, cores, WORK, value, integer)
        spare = min(left, float(table[class_row(table, int(jobs[following, CLASS])) + WIDTHS.LEAST]))
        if integer and spare > 0.0:
            spare = float(math.floor(spare + DUST))
        if spare >= 1.0:
            table[int(table[1]) + MARKET.CLEARED] = value
            if present > few:
                spend(jobs, table, market, groups, member, queue, few, present, left, WORK, out)
                return
            for position in range(few):
                out[queue[position]] = market[GROUP.LOW, member[queue[position]]]
            out[following] = spare
            return
    share_out(jobs, table, market, groups, member, queue, few, present, cores, WORK, integer, out)


def _dented(jobs: FloatArray, table: FloatArray) -> bool:
    """Whether some job's speedup is not concave."""
    dented = False
    for j in range(jobs.shape[0]):
        dented = dented or table[class_row(table, int(jobs[j, CLASS])) + WIDTHS.CONCAVE] == 0.0
    return dented


def _by_value(table: FloatArray, market: FloatArray, member: IntArray) -> IntArray:
    """Job positions by decreasing value, then as the table says, earlier arrivals first among equals."""
    size = member.shape[0]
    keys, ties = np.empty(size), np.empty(size)
    different = False
    for j in range(size):
        keys[j] = -value_of(table, market, member[j])
        ties[j] = table[class_row(table, int(market[GROUP.CLASS, member[j]])) + WIDTHS.TIES]
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


@inlined
def share_out(
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
    integer: bool,
    out: FloatArray,
) -> None:
    """Cores for the first jobs of the queue at the price that clears their market.

    What a step leaves over that does not fit is offered to those who follow as well, up to `present`.
    """
    count_served(market, groups, member, queue, served)
    if integer:
        _share_whole(jobs, table, market, groups, member, queue, served, present, cores, kind, out)
    else:
        _share_real(jobs, table, market, groups, member, queue, served, present, cores, kind, out)


def _share_whole(
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
    """Steps in order of their value, from the demand at a price at which all fit, rounding up included."""
    price = clear_groups(table, market, groups, cores - 2.0 * served, float(served), kind)
    left = -_round_wishes(table, market, groups, cores, kind, price)
    price = spend(jobs, table, market, groups, member, queue, served, present, left, kind, out)
    table[int(table[1]) + MARKET.CLEARED] = price if served > 0 else np.nan


def _share_real(
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
    """The same part of the way between the quantities on both sides of the price, or steps over dents."""
    price = clear_groups(table, market, groups, cores, TIGHT * cores, kind)
    table[int(table[1]) + MARKET.CLEARED] = price if served > 0 else np.nan
    missing, gap, pieces = cores, 0.0, False
    for g in range(groups):
        if market[GROUP.COUNT, g] > 0.0:
            step = market[GROUP.HIGH, g] - market[GROUP.LOW, g]
            missing -= market[GROUP.COUNT, g] * market[GROUP.LOW, g]
            gap += market[GROUP.COUNT, g] * step
            straight = is_straight(
                table, int(market[GROUP.CLASS, g]), market[GROUP.LOW, g], market[GROUP.HIGH, g]
            )
            pieces = pieces or not straight
    if pieces:
        spend(jobs, table, market, groups, member, queue, served, present, missing, kind, out)
        return
    part = min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0
    for position in range(served):
        g = member[queue[position]]
        out[queue[position]] = market[GROUP.LOW, g] + part * (market[GROUP.HIGH, g] - market[GROUP.LOW, g])


@inlined
def excess_of(
    table: FloatArray,
    market: FloatArray,
    groups: int,
    cores: float,
    kind: int,
    price: float,
    integer: bool,
) -> float:
    """Total demand at a price, less the cores; what each group wants, real or whole, is left in LOW."""
    more = excess((table, market, groups, cores, kind), price)
    return _round_wishes(table, market, groups, cores, kind, price) if integer else more


def _round_wishes(
    table: FloatArray, market: FloatArray, groups: int, cores: float, kind: int, price: float
) -> float:
    """Make what the line LOW says whole, as the jobs like it at the price; the total, less the cores."""
    total = -cores
    for g in range(groups):
        if market[GROUP.COUNT, g] > 0.0:
            market[GROUP.LOW, g] = _whole_wish(table, market, g, price, kind)
            total += float(market[GROUP.COUNT, g]) * float(
                market[GROUP.LOW, g]
            )  # of Python's, which overflow in silence
    return total


def _whole_wish(table: FloatArray, market: FloatArray, g: int, price: float, kind: int) -> float:
    """The neighbouring integer of the group's quantity that its jobs like better at the price."""
    i, weight, wish = int(market[GROUP.CLASS, g]), float(market[GROUP.WEIGHT, g]), float(market[GROUP.LOW, g])
    if wish >= ALL_WHOLE:  # what a job about to finish wants may be infinite
        return wish
    down, up = math.floor(wish), min(math.ceil(wish), float(table[class_row(table, i) + WIDTHS.MOST]))
    if up <= down:
        return float(down)
    slow, fast = speed(table, i, down), speed(table, i, up)
    if kind == WHAM:
        cheaper = (weight + price * up) / fast < (weight + price * down) / slow
    else:
        cheaper = price * up - weight * fast < price * down - weight * slow
    return float(up) if cheaper else float(down)


def wham_price(jobs: FloatArray, table: FloatArray, out: FloatArray) -> float | None:
    """The price of WHAM's last decision."""
    return _reported(jobs, table, out, WHAM)


def greedy_price(jobs: FloatArray, table: FloatArray, out: FloatArray) -> float | None:
    """The price of GREEDY's last decision."""
    return _reported(jobs, table, out, WORK)


def _reported(jobs: FloatArray, table: FloatArray, out: FloatArray, kind: int) -> float | None:
    """The price of the last decision: None where jobs wait in line, 0 where every job has all that helps.

    A market whose least widths use up the cores clears at many prices; the lowest of them counts.
    """
    price = float(table[int(table[1]) + MARKET.CLEARED])
    if math.isnan(price):
        return None
    if price <= 2.0 * FREE:  # where the search gives up
        return 0.0
    return price if price < PROHIBITIVE else _entry_price(jobs, table, out, kind)


def _entry_price(jobs: FloatArray, table: FloatArray, out: FloatArray, kind: int) -> float:
    """The lowest price at which no job that is served wants more than its least width."""
    dearest: dict[int, float] = {}
    for j in np.flatnonzero(out > 0.0).tolist():
        i = int(jobs[j, CLASS])
        dearest[i] = max(dearest.get(i, 0.0), weight_of(jobs, table, j, i))
    return max(weight * _entry(table, i, kind) for i, weight in dearest.items())


def _entry(table: FloatArray, i: int, kind: int) -> float:
    """The same for a job of class i and weight 1: what a job wants depends on price over weight."""
    least = float(table[class_row(table, i) + WIDTHS.LEAST])
    wanted = demand if kind == WHAM else work_demand
    low, high = math.log(FREE), math.log(PROHIBITIVE)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if wanted(table, i, math.exp(middle), 1.0) > least:
            low = middle
        else:
            high = middle
    return math.exp(high)
