"""WHAM with a discounted premium as a rule on numbers: the procedure of `policies.wham_discounted`.

At price l a job of weight c would buy g(l) = argmin (c + l·k)/s(k) cores and pay φ(l) = (c + l·g)/s(g) for a
unit of work. Its last unit is done in x/s(g), when the premium l − l* has shrunk by e^{−αx/s(g)}, so that to
the job a unit of work is worth

    w(l) = φ(l*) + e^{−αx/s(g(l))}·(φ(l) − φ(l*))     for l > l*,        w(l) = φ(l)     for l ≤ l*.

It buys argmax_k w·s(k) − l·k, or nothing if w·s(k_e)/k_e ≤ l (k_e: its most efficient width). Today g is at
most n; in the long run, at l*, it may be more, as in the mean field. w(l)/l falls with l, so demand does, and
a job is worth serving below one price, its *index*.

Jobs are served in the order of the index, as long as those before leave a job its k_e cores at the price of
its own index. On few cores a job may well drive up the price by itself, and when it is done its cores are
worth less. So, for this question, the work of those before is worth w at no more than the price that WHAM
would have without them. The cores are then shared at one price among those who are served.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.engine.speedup_table import demand, speed, work_demand
from malleable.policies.rules.market_clearing import clear_groups
from malleable.policies.rules.market_groups import (
    COUNT,
    GROUP_CLASS,
    HEADER,
    LEAST,
    LEAST_SPEED,
    LINES,
    MOST,
    WHAM,
    WIDTH_COLUMNS,
    class_row,
    group_jobs,
    market_jobs_table,
)
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.price_search import next_log_price, secant_slope
from malleable.policies.rules.tolerances import DUST, FREE, PROHIBITIVE, TINY
from malleable.policies.rules.wham_job_rules import wham_jobs_rule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray

# What the table says after WHAM's own numbers.
DISCOUNT, PRICE, SPARE, LIMIT, LAST = range(5)
"""α while nobody has to wait, l*, the cores that arrivals leave over, all cores, the last log price."""
# Lines of the arms, one column a job.
KIND, COST, SPAN, FAIR, AFTER, INDEX, WIDTH, DEAR, CHEAP = range(9)
ARM_LINES = 9
"""Class, c, αx, φ(l*), price without the job, index, cores at the last price, and on both sides of it."""
# Lines of the quotes, one column a class.
QUOTED, PAYS, SPEED, WISH = range(4)
QUOTE_LINES = 4
"""The weight that the quote is for, φ(l), s(g(l)) and g(l)."""

TIGHTER, SETTLED, JUMP = 1e-13, 1e-14, 1e-6
"""Share of the cores up to which this market clears, difference of log prices at which a search ends, and the
part of its width up to which a job does not jump."""
STEEP = 600.0
LOWEST, HIGHEST = math.log(FREE), math.log(PROHIBITIVE)
"""Logarithms of the prices between which a search stays."""
MANY = 64
"""With more groups of jobs than this no single one moves the price enough to be asked without it."""


def discounted_table(
    workload: Workload, cores: float, discount: float, price: float, spare: float
) -> FloatArray:
    """The table of `discounted_rule`; with a discount of 0 it is WHAM."""
    price = min(max(price, FREE), PROHIBITIVE)
    own = [discount, price, spare, cores, math.log(price)]
    return np.concatenate([market_jobs_table(workload, cores), own])


def own_numbers(table: FloatArray) -> int:
    """Where the rule's own numbers begin."""
    return int(table[1]) + HEADER + WIDTH_COLUMNS * int(table[0])


def discounted_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM if its price is at most l*; otherwise cores by what work is worth when the premium has shrunk."""
    size, own = jobs.shape[0], own_numbers(table)
    discount = float(table[own + DISCOUNT])
    arms, quotes = np.empty((ARM_LINES, size)), np.empty((QUOTE_LINES, int(table[0])))
    need, wish = _enter(jobs, table, arms, quotes)
    if discount <= 0.0 or wish <= cores:
        wham_jobs_rule(jobs, cores, table, out)
        return
    if need > cores - 1.0 + DUST:
        discount /= 1.0 + discount * _waiting(jobs, cores - 1.0, table) / float(table[own + SPARE])
    queue = np.empty(size, np.int64)
    for j in range(size):
        out[j], queue[j] = 0.0, j
        arms[SPAN, j], arms[INDEX, j] = discount * max(float(jobs[j, REMAINING]), 0.0), 0.0
    served = 0
    if need <= cores + DUST:
        price = _widen(table, arms, quotes, queue, size, cores)
        served = _mark_worthy(table, arms, quotes, price)
    if served < size:
        _look_after(jobs, table, arms, need, cores)
        queue = _by_index(table, arms, quotes)
        served = _served(table, arms, quotes, queue, served, cores)
        if served < size and _part_for_next(table, arms, quotes, queue, served, cores):
            served += 1
        else:
            _widen(table, arms, quotes, queue, served, cores)
    for position in range(served):
        out[queue[position]] = arms[WIDTH, queue[position]]


def _enter(jobs: FloatArray, table: FloatArray, arms: FloatArray, quotes: FloatArray) -> tuple[float, float]:
    """Note class, c and φ(l*) of each job; the cores for all least widths, and for what all want at l*."""
    price = float(table[own_numbers(table) + PRICE])
    _forget(quotes)
    need = wish = 0.0
    for j in range(jobs.shape[0]):
        i, c = int(jobs[j, CLASS]), float(jobs[j, WEIGHT])
        if quotes[QUOTED, i] != c:
            _quote(table, quotes, i, c, price, PROHIBITIVE)
        arms[KIND, j], arms[COST, j], arms[FAIR, j] = i, c, quotes[PAYS, i]
        need += table[class_row(table, i) + LEAST]
        wish += quotes[WISH, i]
    return need, wish


def _waiting(jobs: FloatArray, cores: float, table: FloatArray) -> float:
    """Core-time that the jobs need for whom WHAM would have none of so many cores."""
    size = jobs.shape[0]
    keys = np.empty(size)
    for j in range(size):
        row = class_row(table, int(jobs[j, CLASS]))
        gain = float(jobs[j, WEIGHT]) * table[row + LEAST_SPEED] / table[row + LEAST]
        keys[j] = -gain / max(float(jobs[j, REMAINING]), TINY)
    order = ascending(keys)
    free, waiting = cores, 0.0
    for position in range(size):
        j = order[position]
        row = class_row(table, int(jobs[j, CLASS]))
        free -= table[row + LEAST]
        if free < -DUST:
            left_out = min(-free / table[row + LEAST], 1.0)
            waiting += left_out * jobs[j, REMAINING] * table[row + LEAST] / table[row + LEAST_SPEED]
    return waiting


def _look_after(jobs: FloatArray, table: FloatArray, arms: FloatArray, need: float, cores: float) -> None:
    """The price that WHAM would have without the job, into AFTER: at least l*, the highest in overload."""
    size = jobs.shape[0]
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue, unused = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    groups = group_jobs(jobs, table, market, member, queue, unused)
    prices = np.full(groups, PROHIBITIVE)
    for g in range(groups if groups <= MANY else 0):
        rest = need - table[class_row(table, int(market[GROUP_CLASS, g])) + LEAST]
        if market[COUNT, g] > 0.0 and rest < cores - DUST:
            market[COUNT, g] -= 1.0
            prices[g] = clear_groups(table, market, groups, cores, TIGHTER * cores, WHAM)
            market[COUNT, g] += 1.0
    for j in range(size):
        arms[AFTER, j] = max(prices[member[j]], float(table[own_numbers(table) + PRICE]))


def _forget(quotes: FloatArray) -> None:
    """Blank all quotes, because the price changes."""
    for i in range(quotes.shape[1]):
        quotes[QUOTED, i] = -1.0


def _clipped(table: FloatArray, i: int, width: float) -> float:
    row = class_row(table, i)
    return min(max(width, float(table[row + LEAST])), float(table[row + MOST]))


def _quote(table: FloatArray, quotes: FloatArray, i: int, c: float, price: float, limit: float) -> None:
    """What a class pays for a unit of work at a price, at which speed and width, up to a limit."""
    k = min(_clipped(table, i, demand(table, i, price, c)), limit)
    s = speed(table, i, k)
    quotes[QUOTED, i], quotes[PAYS, i], quotes[SPEED, i], quotes[WISH, i] = c, (c + price * k) / s, s, k


def _worth(table: FloatArray, arms: FloatArray, quotes: FloatArray, j: int, price: float) -> float:
    """w(l): what a unit of the job's work is worth. Its class's quote must be for this price, or blank."""
    i, c, own = int(arms[KIND, j]), float(arms[COST, j]), own_numbers(table)
    if quotes[QUOTED, i] != c:
        _quote(table, quotes, i, c, price, float(table[own + LIMIT]))
    if price <= table[own + PRICE]:
        return float(quotes[PAYS, i])
    fair = float(arms[FAIR, j])
    return fair + math.exp(-arms[SPAN, j] / quotes[SPEED, i]) * (float(quotes[PAYS, i]) - fair)


def _wanted(
    table: FloatArray,
    arms: FloatArray,
    quotes: FloatArray,
    queue: IntArray,
    served: int,
    price: float,
    modest: bool,
) -> float:
    """What the first jobs of the queue together want at a price, each at least its least width.

    `modest`: their work is worth what it is at the price without them, where that is lower.
    """
    _forget(quotes)
    own = own_numbers(table)
    cheap, limit = price <= table[own + PRICE], float(table[own + LIMIT])
    total = 0.0
    for position in range(served):
        j = queue[position]
        i = int(arms[KIND, j])
        worth = _worth(table, arms, quotes, j, min(price, float(arms[AFTER, j])) if modest else price)
        k = float(quotes[WISH, i]) if cheap else _clipped(table, i, work_demand(table, i, price, worth))
        arms[WIDTH, j] = min(k, limit)
        total += arms[WIDTH, j]
    return total


def _mark_worthy(table: FloatArray, arms: FloatArray, quotes: FloatArray, price: float) -> int:
    """Give the highest index to those worth serving at the price that clears with everybody; how many.

    Without the others the price is lower still, so they are served in the end, whatever their order.
    """
    _forget(quotes)
    worthy = 0
    for j in range(arms.shape[1]):
        row = class_row(table, int(arms[KIND, j]))
        worth = _worth(table, arms, quotes, j, price)
        if worth * table[row + LEAST_SPEED] > price * table[row + LEAST]:
            arms[INDEX, j] = PROHIBITIVE
            worthy += 1
    return worthy


def _by_index(table: FloatArray, arms: FloatArray, quotes: FloatArray) -> IntArray:
    """Jobs by decreasing index, computed where it is not known; earlier arrivals first among equals."""
    keys = np.empty(arms.shape[1])
    for j in range(arms.shape[1]):
        if arms[INDEX, j] == 0.0:
            arms[INDEX, j] = _index(table, arms, quotes, j)
        keys[j] = -arms[INDEX, j]
    return ascending(keys)


def _index(table: FloatArray, arms: FloatArray, quotes: FloatArray, j: int) -> float:
    """The price at which w(l)·s(k_e)/k_e = l.

    Where the job would buy k_e cores at that price, this is φ(l*)·s(k_e)/k_e + c/(k_e·(e^{αx/s(k_e)} − 1)).
    """
    i, c = int(arms[KIND, j]), float(arms[COST, j])
    row = class_row(table, i)
    least, fast = float(table[row + LEAST]), float(table[row + LEAST_SPEED])
    grown = math.expm1(min(float(arms[SPAN, j]) / fast, STEEP))
    price = PROHIBITIVE
    if c < PROHIBITIVE * grown * least:
        price = min(float(arms[FAIR, j]) * fast / least + c / (least * grown), PROHIBITIVE)
    if demand(table, i, price, c) <= least:
        return price
    return math.exp(_root(table, arms, quotes, j, math.log(price)))


def _root(table: FloatArray, arms: FloatArray, quotes: FloatArray, j: int, u: float) -> float:
    """Where log w·s(k_e)/k_e − log l, which falls, is 0: the secant method (`price_search`)."""
    i = int(arms[KIND, j])
    row = class_row(table, i)
    low, high = math.log(max(float(table[own_numbers(table) + PRICE]), FREE)), HIGHEST
    slope, before, last = -1.0, 0.0, math.inf
    for _ in range(200):
        quotes[QUOTED, i] = -1.0
        worth = _worth(table, arms, quotes, j, math.exp(u))
        f = math.log(worth * table[row + LEAST_SPEED] / table[row + LEAST]) - u
        if f > 0.0:
            low = u
        else:
            high = u
        slope = secant_slope(slope, u, f, before, last)
        following = next_log_price(u, -f / slope, f, last, low, high, 0.0, 0.0, 0.0, low, high)
        if abs(following - u) <= SETTLED:
            break
        before, last, u = u, f, following
    return u


def _served(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, few: int, cores: float
) -> int:
    """The longest prefix whose last job is left its least width by the others, at the price of its index."""
    fit, used = 0, 0.0
    while fit < queue.shape[0]:
        used += table[class_row(table, int(arms[KIND, queue[fit]])) + LEAST]
        if used > cores + DUST:
            break
        fit += 1
    many = max(fit, few) + 1
    trial = many - 1
    while many - few > 1:
        j = queue[trial - 1]
        least = table[class_row(table, int(arms[KIND, j])) + LEAST]
        wanted = _wanted(table, arms, quotes, queue, trial - 1, float(arms[INDEX, j]), True)
        if wanted + least <= cores + DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    return few


def _part_for_next(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, served: int, cores: float
) -> bool:
    """Leave the first job left out a part of its least width, if that is one core or more."""
    following = queue[served]
    spare = cores - _wanted(table, arms, quotes, queue, served, float(arms[INDEX, following]), False)
    arms[WIDTH, following] = min(spare, float(table[class_row(table, int(arms[KIND, following])) + LEAST]))
    return spare >= 1.0


def _widen(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, served: int, cores: float
) -> float:
    """Widths that use all cores the first jobs can use, into WIDTH, and the price; their least widths fit."""
    most = 0.0
    for position in range(served):
        j = queue[position]
        row = class_row(table, int(arms[KIND, j]))
        arms[CHEAP, j], arms[DEAR, j] = min(float(table[row + MOST]), cores), table[row + LEAST]
        arms[WIDTH, j] = arms[CHEAP, j]
        most += arms[CHEAP, j]
    if most <= cores:
        return 0.0
    price = _clear(table, arms, quotes, queue, served, cores)
    _between(arms, queue, served, cores)
    return price


def _between(arms: FloatArray, queue: IntArray, served: int, cores: float) -> None:
    """Widths between DEAR and CHEAP that use all cores, into WIDTH.

    Where the two differ by rounding everybody moves by the same part, so that equal jobs stay equal. Where
    they differ by a jump, who jumps first is decided by the order of the queue.
    """
    left, even = cores, 0.0
    for position in range(served):
        j = queue[position]
        gap = max(arms[CHEAP, j] - arms[DEAR, j], 0.0)
        left -= arms[DEAR, j]
        even += gap if gap <= JUMP * arms[DEAR, j] else 0.0
    part = min(max(left / even, 0.0), 1.0) if even > 0.0 else 0.0
    left -= part * even
    widest = queue[0]
    for position in range(served):
        j = queue[position]
        gap = max(arms[CHEAP, j] - arms[DEAR, j], 0.0)
        if gap <= JUMP * arms[DEAR, j]:
            gap *= part
        else:
            gap = min(gap, max(left, 0.0))
            left -= gap
        arms[WIDTH, j] = arms[DEAR, j] + gap
        if arms[WIDTH, j] > arms[WIDTH, widest]:
            widest = j
    if left < -2.0 * TIGHTER * cores:
        arms[WIDTH, widest] = max(arms[WIDTH, widest] + left, 1.0)


def _keep(arms: FloatArray, queue: IntArray, served: int, cheap: bool, dear: bool) -> None:
    """Note the widths just found as those below the clearing price, above it, or both."""
    for position in range(served):
        j = queue[position]
        if cheap:
            arms[CHEAP, j] = arms[WIDTH, j]
        if dear:
            arms[DEAR, j] = arms[WIDTH, j]


def _clear(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, served: int, cores: float
) -> float:
    """The price at which the first jobs want all cores.

    The secant method on log demand over log price (`price_search`), from the last price. DEAR and CHEAP are
    left with the widths on both sides, which differ where demand jumps.
    """
    own = own_numbers(table)
    low, high, reach = -math.inf, math.inf, 1.0
    u, slope, before, last = float(table[own + LAST]), -1.0, 0.0, math.inf
    for _ in range(400):
        total = _wanted(table, arms, quotes, queue, served, math.exp(u), False)
        f = math.log(total / cores)
        close = abs(total - cores) <= TIGHTER * cores
        _keep(arms, queue, served, f > 0.0 or close, f <= 0.0 or close)
        if close:
            break
        low, high = (u, high) if f > 0.0 else (low, u)
        slope = secant_slope(slope, u, f, before, last)
        following = next_log_price(u, -f / slope, f, last, low, high, SETTLED, 0.0, reach, LOWEST, HIGHEST)
        if following == u:
            break
        if low == -math.inf or high == math.inf:
            reach *= 4.0
        before, last, u = u, f, following
    table[own + LAST] = u
    return math.exp(u)
