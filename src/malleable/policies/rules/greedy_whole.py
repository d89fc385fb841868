"""GREEDY on whole cores, job by job: a plain function that the engine compiles, and a better division.

The same as `greedy_jobs_rule` with the whole number of cores that a job prefers at a price; what does not
divide evenly goes to the steps of highest value. Where speedups have dents steps may miss the optimum;
`improved_whole` looks for it among all widths.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import AGE, CLASS, REMAINING
from malleable.engine.speedup_table import speed
from malleable.policies.rules.market_clearing import clear_groups, excess
from malleable.policies.rules.market_groups import (
    CLEARED,
    CONCAVE,
    COUNT,
    LEAST,
    LINES,
    LOW,
    MOST,
    TWIN,
    WORK,
    class_row,
    cores_needed,
    count_served,
    group_jobs,
    value_of,
    weight_of,
)
from malleable.policies.rules.market_jobs import (
    blocks_that_fit,
    by_value,
    dented,
    whole_wish,
)
from malleable.policies.rules.market_steps import spend
from malleable.policies.rules.tolerances import DUST
from malleable.policies.rules.whole_cores import best_widths

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

MOST_VALUES = 2e5
"""Speeds that may be tabulated to improve on the steps."""


def greedy_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """GREEDY with any weights on whole cores: the longest prefix whose last job is worth its cores."""
    size, whole = jobs.shape[0], float(math.floor(cores))
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    if cores_needed(table, market, groups) <= whole + DUST:
        least_value = math.inf
        for g in range(groups):
            if market[COUNT, g] > 0.0:
                least_value = min(least_value, value_of(table, market, g))
        if _whole_excess(table, market, groups, whole, least_value * (1.0 + DUST)) <= DUST:
            _share_whole(jobs, table, market, groups, member, queue, size, size, whole, out)
            return
    queue = by_value(table, market, member)
    few, many = 0, min(blocks_that_fit(jobs, table, queue, whole)[0], size) + 1
    trial = many - 1
    while many - few > 1:
        value = value_of(table, market, member[queue[trial - 1]])
        count_served(market, groups, member, queue, trial)
        if _whole_excess(table, market, groups, whole, value * (1.0 + DUST)) <= DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    _share_whole_with_rest(jobs, table, market, groups, member, queue, few, whole, out)


def _share_whole_with_rest(
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
    """Serve the first few; give the next a part of its block if, at its own value, they leave a core."""
    size = jobs.shape[0]
    present = size if few < size and dented(jobs, table) else few
    if few < size:
        following = queue[few]
        count_served(market, groups, member, queue, few)
        value = value_of(table, market, member[following])
        left = -_whole_excess(table, market, groups, cores, value)
        spare = math.floor(
            min(left, float(table[class_row(table, int(jobs[following, CLASS])) + LEAST])) + DUST
        )
        if spare >= 1.0:
            table[int(table[1]) + CLEARED] = value
            if present > few:
                spend(jobs, table, market, groups, member, queue, few, present, left, WORK, out)
                return
            for position in range(few):
                out[queue[position]] = market[LOW, member[queue[position]]]
            out[following] = spare
            return
    _share_whole(jobs, table, market, groups, member, queue, few, present, cores, out)


def _whole_excess(table: FloatArray, market: FloatArray, groups: int, cores: float, price: float) -> float:
    """Total whole cores wanted at a price, less the cores; what each group wants is left in the line LOW."""
    excess(table, market, groups, cores, WORK, price)
    total = -cores
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            market[LOW, g] = whole_wish(table, market, g, price, WORK)
            total += market[COUNT, g] * market[LOW, g]
    return total


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
    out: FloatArray,
) -> None:
    """Steps in order of their value, from the demand at a price at which all certainly fit."""
    count_served(market, groups, member, queue, served)
    price = clear_groups(table, market, groups, cores - 2.0 * served, float(served), WORK)
    left = -_whole_excess(table, market, groups, cores, price)
    price = spend(jobs, table, market, groups, member, queue, served, present, left, WORK, out)
    table[int(table[1]) + CLEARED] = price if served > 0 else np.nan


def improved_whole(jobs: FloatArray, table: FloatArray, found: FloatArray, cores: float) -> FloatArray:
    """Whole cores that maximise Σ w·s(k), where dents keep steps from it; the earliest have the widest."""
    rows = [class_row(table, i) for i in range(int(table[0]))]
    twins = [int(table[rows[int(i)] + TWIN]) for i in jobs[:, CLASS]]
    sets: dict[tuple[int, float], list[int]] = {}
    for j in np.lexsort((jobs[:, REMAINING], -jobs[:, AGE])).tolist():
        sets.setdefault((twins[j], weight_of(jobs, table, j, twins[j])), []).append(j)
    limits = {i: int(min(float(table[rows[i] + MOST]), cores)) for i in twins}
    if all(table[rows[i] + CONCAVE] for i in twins) or sum(limits[i] for i, _ in sets) > MOST_VALUES:
        return found
    speeds = {i: np.array([speed(table, i, float(k)) for k in range(limits[i] + 1)]) for i in limits}
    values = [weight * speeds[i] for i, weight in sets]
    counts = np.array([len(members) for members in sets.values()])
    given = [found[members].astype(np.int64) for members in sets.values()]
    widths = best_widths(values, counts, int(cores), given)
    if widths is None:
        return found
    out = np.zeros(len(jobs))
    for members, own in zip(sets.values(), widths, strict=True):
        out[members] = own
    return out
