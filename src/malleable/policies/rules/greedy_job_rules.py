"""GREEDY job by job, on real or whole cores: plain functions that the engine compiles.

Serve by value, then share the cores at one price, which is left in the table. The table, and the market that
the rules build from it, are described in `market_groups`. Where speedups have dents, whole steps may miss the
optimum; `greedy_knapsack` looks for it among all widths. `allocate` and the simulator run these functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, inlined
from malleable.policies.rules.clearing_shares import excess_of, share
from malleable.policies.rules.market_groups import (
    CLEARED,
    CONCAVE,
    COUNT,
    GROUP_CLASS,
    LEAST,
    LINES,
    LOW,
    TIES,
    WORK,
    class_row,
    cores_needed,
    count_served,
    group_jobs,
    least_widths_that_fit,
    value_of,
)
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST
from malleable.policies.rules.width_steps import spend

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray


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
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    if cores_needed(table, market, groups) <= cores + DUST:
        least_value = math.inf
        for g in range(groups):
            if market[COUNT, g] > 0.0:
                least_value = min(least_value, value_of(table, market, g))
        if excess_of(table, market, groups, cores, WORK, least_value * (1.0 + DUST), integer) <= DUST:
            share(jobs, table, market, groups, member, queue, size, size, cores, WORK, integer, out)
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
        spare = min(left, float(table[class_row(table, int(jobs[following, CLASS])) + LEAST]))
        if integer and spare > 0.0:
            spare = float(math.floor(spare + DUST))
        if spare >= 1.0:
            table[int(table[1]) + CLEARED] = value
            if present > few:
                spend(jobs, table, market, groups, member, queue, few, present, left, WORK, out)
                return
            for position in range(few):
                out[queue[position]] = market[LOW, member[queue[position]]]
            out[following] = spare
            return
    share(jobs, table, market, groups, member, queue, few, present, cores, WORK, integer, out)


def _dented(jobs: FloatArray, table: FloatArray) -> bool:
    """Whether some job's speedup is not concave."""
    dented = False
    for j in range(jobs.shape[0]):
        dented = dented or table[class_row(table, int(jobs[j, CLASS])) + CONCAVE] == 0.0
    return dented


def _by_value(table: FloatArray, market: FloatArray, member: IntArray) -> IntArray:
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
