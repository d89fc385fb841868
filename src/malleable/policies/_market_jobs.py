"""The market policies job by job: what class rules cannot express, as plain functions that the engine compiles.

`wham_jobs_rule`, `wham_integer_rule` and `greedy_jobs_rule` do what `_purchase` does, for any speedups and any
weights: serve by index or by price, then share the cores at one price. Jobs of one class and weight form a
group; if weights differ within a class, every job is a group of its own.

A table starts with the encoded speedups. What follows, from table[1] on, is the last clearing price with the
slope of demand there (the next search starts from these), what weights depend on, and one row a class. A market is a small array with one column a
group: class, weight, jobs served, and the quantities on both sides of the clearing price.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.abi import CLASS, REMAINING, WEIGHT
from malleable.policies._market_steps import (
    CONCAVE,
    COUNT,
    GROUP_CLASS,
    GROUP_WEIGHT,
    HIGH,
    LEAST,
    LEAST_SPEED,
    LINES,
    LOW,
    MOST,
    RATE,
    TIES,
    WHAM,
    WIDTH_COLUMNS,
    WORK,
    class_row,
    spend,
)
from malleable.policies._rules import TINY, ascending
from malleable.speedups._encoded import demand, encode, most_efficient, peak, speed, work_demand

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.jobs import IntArray
    from malleable.model import Workload
    from malleable.theory.market import Buyers

SLOPE, BY_COST, BY_SIZE = 1, 2, 3
"""What follows the last price: the slope of demand there, and whether weights grow with c, and with 1/x."""
DUST = 1e-9
"""Cores below this are rounding, not capacity."""
TIGHT = 1e-12
"""Share of the cores that may be left over or lacking when the market counts as cleared."""
FREE, PROHIBITIVE, FARTHEST = 1e-280, 1e280, 644.7
"""Prices beyond which demand is taken to have reached its limits, and the logarithm of the latter."""
FLATTEST = -1e-3
"""The least slope of log demand over log price that the search relies on."""


def market_jobs_table(
    workload: Workload,
    cores: float,
    weight: str = "c",
    *,
    shy: bool = False,
    buyers: Buyers | None = None,
) -> FloatArray:
    """The table of the rules below, for weights 1, mu, c, cmu or c/x.

    `shy`: ties go to the less parallelizable job; on whole cores the `buyers` say which widths are of use.
    """
    members = workload.speedups if buyers is None else buyers.speedups.members
    encoded = encode(members, widest=max(cores, 2.0))
    rows = np.zeros((len(members), WIDTH_COLUMNS))
    rows[:, RATE] = 1.0 / workload.mean_sizes if weight in {"mu", "cmu"} else 1.0
    for i, speedup in enumerate(members):
        least = most_efficient(encoded, i) if buyers is None else float(buyers.least[i])
        rows[i, LEAST], rows[i, LEAST_SPEED] = least, speed(encoded, i, least)
        rows[i, MOST] = peak(encoded, i) if buyers is None else float(buyers.most[i])
        rows[i, CONCAVE] = float(speedup.concave)
        rows[i, TIES] = speed(encoded, i, 2.0) if shy else 0.0
    return np.concatenate([encoded, [1.0, -1.0, float("c" in weight), float(weight == "c/x")], rows.ravel()])


def wham_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM: blocks of the most efficient width by c·s/(k·x), then one price for all who are served."""
    size = jobs.shape[0]
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = _grouped(jobs, table, market, member, queue, out)
    if _needed(table, market, groups) <= cores + DUST:
        _share(jobs, table, market, groups, member, queue, size, cores, WHAM, out)
        return
    queue = _by_index(jobs, table, member, market)
    fit, spare = _blocks(jobs, table, queue, cores)
    if spare < 1.0:
        _share(jobs, table, market, groups, member, queue, fit, cores, WHAM, out)
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
    groups = _grouped(jobs, table, market, member, queue, out)
    fit, spare = size, 0.0
    if _needed(table, market, groups) > whole + DUST:
        queue = _by_index(jobs, table, member, market)
        fit, spare = _blocks(jobs, table, queue, whole)
    if spare >= 1.0:
        _give_blocks(jobs, table, queue, fit, math.floor(spare), out)
        return
    _count(market, groups, member, queue, fit)
    price = clear_groups(table, market, groups, whole - 2.0 * fit, float(fit), WHAM)
    left = whole
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            market[LOW, g] = _whole_wish(table, market, g, price)
            left -= market[COUNT, g] * market[LOW, g]
    spend(jobs, table, market, groups, member, queue, fit, left, WHAM, out)


def greedy_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """GREEDY with any weights: the longest prefix of the queue whose last job is worth its cores.

    The prefix clears below a price if and only if, at that price, it wants at most the cores there are.
    """
    size = jobs.shape[0]
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = _grouped(jobs, table, market, member, queue, out)
    if _needed(table, market, groups) <= cores + DUST:
        least_value = math.inf
        for g in range(groups):
            if market[COUNT, g] > 0.0:
                least_value = min(least_value, _value(table, market, g))
        if excess(table, market, groups, cores, WORK, least_value * (1.0 + DUST)) <= 0.0:
            _share(jobs, table, market, groups, member, queue, size, cores, WORK, out)
            return
    queue = _by_value(table, market, member)
    few, many = 0, min(_blocks(jobs, table, queue, cores)[0], size) + 1
    trial = many - 1
    while many - few > 1:
        value = _value(table, market, member[queue[trial - 1]])
        _count(market, groups, member, queue, trial)
        if excess(table, market, groups, cores, WORK, value * (1.0 + DUST)) <= 0.0:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    if few < size:
        following = queue[few]
        _count(market, groups, member, queue, few)
        spare = -excess(table, market, groups, cores, WORK, _value(table, market, member[following]))
        spare = min(spare, table[class_row(table, int(jobs[following, CLASS])) + LEAST])
        if spare >= 1.0:
            for position in range(few):
                out[queue[position]] = market[LOW, member[queue[position]]]
            out[following] = spare
            return
    _share(jobs, table, market, groups, member, queue, few, cores, WORK, out)


def _grouped(
    jobs: FloatArray, table: FloatArray, market: FloatArray, member: IntArray, queue: IntArray, out: FloatArray
) -> int:
    """Group the jobs, the queue being the order of arrival; the number of groups. Widths start at 0."""
    size, groups, own = jobs.shape[0], int(table[0]), int(table[1])
    for g in range(groups):
        market[GROUP_CLASS, g], market[GROUP_WEIGHT, g], market[COUNT, g] = g, 0.0, 0.0
    alike = table[own + BY_SIZE] == 0.0
    for j in range(size):
        queue[j], out[j] = j, 0.0
        i = int(jobs[j, CLASS])
        member[j] = i
        weight = _weight(jobs, table, j, i)
        alike = alike and (market[COUNT, i] == 0.0 or market[GROUP_WEIGHT, i] == weight)
        market[GROUP_WEIGHT, i] = weight
        market[COUNT, i] += 1.0
    if alike:
        return groups
    for j in range(size):
        i = int(jobs[j, CLASS])
        market[GROUP_CLASS, j], market[GROUP_WEIGHT, j] = i, _weight(jobs, table, j, i)
        market[COUNT, j], member[j] = 1.0, j
    return size


def _weight(jobs: FloatArray, table: FloatArray, j: int, i: int) -> float:
    own = int(table[1])
    weight = float(jobs[j, WEIGHT]) if table[own + BY_COST] != 0.0 else 1.0
    weight *= float(table[class_row(table, i) + RATE])
    return weight / max(float(jobs[j, REMAINING]), TINY) if table[own + BY_SIZE] != 0.0 else weight


def _count(market: FloatArray, groups: int, member: IntArray, queue: IntArray, served: int) -> None:
    """How many of the first `served` jobs of the queue are in each group."""
    for g in range(groups):
        market[COUNT, g] = 0.0
    for position in range(served):
        market[COUNT, member[queue[position]]] += 1.0


def _needed(table: FloatArray, market: FloatArray, groups: int) -> float:
    """Cores for the least width of everybody counted."""
    total = 0.0
    for g in range(groups):
        total += market[COUNT, g] * table[class_row(table, int(market[GROUP_CLASS, g])) + LEAST]
    return total


def _value(table: FloatArray, market: FloatArray, g: int) -> float:
    """The price at which a job of the group is just worth serving: w·s(k_e)/k_e."""
    row = class_row(table, int(market[GROUP_CLASS, g]))
    return float(market[GROUP_WEIGHT, g] * table[row + LEAST_SPEED] / table[row + LEAST])


def _by_index(jobs: FloatArray, table: FloatArray, member: IntArray, market: FloatArray) -> IntArray:
    """Job positions by decreasing c·s(k_e)/(k_e·x), earlier arrivals first among equals."""
    keys = np.empty(jobs.shape[0])
    for j in range(jobs.shape[0]):
        remaining = float(jobs[j, REMAINING])
        keys[j] = -_value(table, market, member[j]) / remaining if remaining > 0.0 else -math.inf
    return ascending(keys)


def _by_value(table: FloatArray, market: FloatArray, member: IntArray) -> IntArray:
    """Job positions by decreasing value, then as the table says, earlier arrivals first among equals."""
    size = member.shape[0]
    keys, ties = np.empty(size), np.empty(size)
    different = False
    for j in range(size):
        keys[j] = -_value(table, market, member[j])
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


def _blocks(jobs: FloatArray, table: FloatArray, queue: IntArray, cores: float) -> tuple[int, float]:
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


def _whole_wish(table: FloatArray, market: FloatArray, g: int, price: float) -> float:
    """The neighbouring integer of the group's quantity with the lower cost of holding and rent."""
    i, weight, wish = int(market[GROUP_CLASS, g]), float(market[GROUP_WEIGHT, g]), float(market[LOW, g])
    down, up = math.floor(wish), min(math.ceil(wish), float(table[class_row(table, i) + MOST]))
    if up <= down:
        return float(down)
    cheaper = (weight + price * up) / speed(table, i, up) < (weight + price * down) / speed(table, i, down)
    return float(up) if cheaper else float(down)


def excess(
    table: FloatArray, market: FloatArray, groups: int, cores: float, kind: int, price: float
) -> float:
    """Total demand at a price, less the cores; the demand of each group is left in the market's line LOW."""
    rows = class_row(table, 0)
    total = -cores
    for g in range(groups):
        count = float(market[COUNT, g])
        if count > 0.0:
            i, weight = int(market[GROUP_CLASS, g]), float(market[GROUP_WEIGHT, g])
            wish = demand(table, i, price, weight) if kind == WHAM else work_demand(table, i, price, weight)
            row = rows + WIDTH_COLUMNS * i
            wish = min(max(wish, float(table[row + LEAST])), float(table[row + MOST]))
            market[LOW, g] = wish
            total += count * wish
    return total


def clear_groups(
    table: FloatArray, market: FloatArray, groups: int, cores: float, slack: float, kind: int
) -> float:
    """Find the price at which the jobs counted want the cores, up to `slack`.

    The quantities at the price found are left in the line LOW, those at its lower neighbour in HIGH. Where no
    price has that total these differ by a jump; otherwise they are the same.
    """
    rows = class_row(table, 0)
    needed = most = 0.0
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            row = rows + WIDTH_COLUMNS * int(market[GROUP_CLASS, g])
            needed += market[COUNT, g] * table[row + LEAST]
            most += market[COUNT, g] * table[row + MOST]
    if needed >= cores - slack or most <= cores:
        limit = LEAST if needed >= cores - slack else MOST
        for g in range(groups):
            row = rows + WIDTH_COLUMNS * int(market[GROUP_CLASS, g])
            market[LOW, g] = market[HIGH, g] = table[row + limit]
        return PROHIBITIVE if limit == LEAST else FREE
    low, high = _bracket(table, market, groups, cores, slack, kind)
    if low < high:
        excess(table, market, groups, cores, kind, low)
        for g in range(groups):
            market[HIGH, g] = market[LOW, g]
        excess(table, market, groups, cores, kind, high)
    else:
        for g in range(groups):
            market[HIGH, g] = market[LOW, g]
    return high


def _bracket(
    table: FloatArray, market: FloatArray, groups: int, cores: float, slack: float, kind: int
) -> tuple[float, float]:
    """Two neighbouring prices around the clearing one, or twice one that clears up to `slack`.

    The secant method on log demand over log price, nearly straight for most speedups, starts from the last
    price and slope; where that does not halve the error (a jump, a corner), the bracket is bisected.
    """
    own = int(table[1])
    u, slope = math.log(float(table[own])), float(table[own + SLOPE])
    low, high, reach = -math.inf, math.inf, 1.0
    before, last = math.nan, math.inf
    for _ in range(400):
        more = excess(table, market, groups, cores, kind, math.exp(u))
        if abs(more) <= slack:
            table[own], table[own + SLOPE] = math.exp(u), slope
            return math.exp(u), math.exp(u)
        f = math.log(min(max(1.0 + more / cores, 1e-300), 1e300))
        if f > 0.0:
            low = u
        else:
            high = u
        if u != before and abs(last) < math.inf:
            slope = min((f - last) / (u - before), FLATTEST)
        step = -f / slope
        if low > -math.inf and high < math.inf:
            following = u + step
            if abs(f) > 0.5 * abs(last) or not low < following < high:
                following = 0.5 * (low + high)
            if not low < following < high:
                break
        else:
            following = min(max(u + min(max(step, -reach), reach), -FARTHEST), FARTHEST)
            reach *= 4.0
            if following == u:
                break
        before, last, u = u, f, following
    high = min(high, FARTHEST)
    table[own], table[own + SLOPE] = math.exp(high), -1.0
    return math.exp(max(low, -FARTHEST)), math.exp(high)


def _share(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    groups: int,
    member: IntArray,
    queue: IntArray,
    served: int,
    cores: float,
    kind: int,
    out: FloatArray,
) -> None:
    """Cores for the first jobs of the queue at the price that clears their market."""
    _count(market, groups, member, queue, served)
    clear_groups(table, market, groups, cores, TIGHT * cores, kind)
    missing, gap, pieces = cores, 0.0, False
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            step = market[HIGH, g] - market[LOW, g]
            missing -= market[COUNT, g] * market[LOW, g]
            gap += market[COUNT, g] * step
            row = class_row(table, int(market[GROUP_CLASS, g]))
            pieces = pieces or (step > 0.0 and table[row + CONCAVE] == 0.0)
    if pieces:
        spend(jobs, table, market, groups, member, queue, served, missing, kind, out)
        return
    part = min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0
    for position in range(served):
        g = member[queue[position]]
        out[queue[position]] = market[LOW, g] + part * (market[HIGH, g] - market[LOW, g])
