"""What a unit of a job's work is worth while a premium shrinks, and the cores that jobs want for it.

At price l a job of weight c would buy g(l) = argmin (c + l·k)/s(k) cores and pay φ(l) = (c + l·g)/s(g) for a
unit of work. Its last unit is done in x/s(g), when the premium l − l* has shrunk by e^{−αx/s(g)}, so that to
the job a unit of work is worth

    w(l) = φ(l*) + e^{−αx/s(g(l))}·(φ(l) − φ(l*))     for l > l*,        w(l) = φ(l)     for l ≤ l*.

It buys argmax_k w·s(k) − l·k, or nothing if w·s(k_e)/k_e ≤ l (k_e: its most efficient width). Today g is at
most n; in the long run, at l*, it may be more, as in the mean field. w(l)/l falls with l, so demand does, and
a job is worth serving below one price, its *index*.

Plain functions that the engine compiles; `discounted_rule` says who is served.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.speedup_table import demand, speed, work_demand
from malleable.numerics.places import places
from malleable.policies.rules.market import WIDTHS, class_row, end_of_market, market_jobs_table
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.price_search import HIGHEST, LOWEST, clearing
from malleable.policies.rules.tolerances import TIGHT
from malleable.theory.market import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray


class Discounted(NamedTuple):
    """What the table says after WHAM's own numbers."""

    DISCOUNT: int
    """α while no job has to wait."""
    PRICE: int
    """l*."""
    SPARE: int
    """The cores that arrivals leave over."""
    LIMIT: int
    """All cores."""
    LAST: int
    """The last log price."""


class Arm(NamedTuple):
    """The lines of the arms, one column per job."""

    CLASS: int
    COST: int
    """c."""
    SPAN: int
    """αx."""
    FAIR: int
    """φ(l*)."""
    AFTER: int
    """The price without the job."""
    INDEX: int
    WIDTH: int
    """Cores at the last price."""
    DEAR: int
    CHEAP: int
    """Cores on both sides of the clearing price."""


class Quote(NamedTuple):
    """The lines of the quotes, one column per class."""

    COST: int
    """The weight that the quote is for."""
    PAYS: int
    """φ(l)."""
    SPEED: int
    """s(g(l))."""
    WISH: int
    """g(l)."""


DISCOUNTED, ARM, QUOTE = places(Discounted), places(Arm), places(Quote)
JUMP = 1e-6
"""The part of its width up to which a job does not jump."""
SETTLED = 1e-14
"""Difference of log prices that is rounding."""
STEEP = 600.0
"""The largest exponent that is taken as it is."""


def discounted_table(
    workload: Workload, cores: float, discount: float, price: float, spare: float
) -> FloatArray:
    """The table of `discounted_rule`; with a discount of 0 it is WHAM."""
    price = min(max(price, FREE), PROHIBITIVE)
    own = [discount, price, spare, cores, math.log(price)]
    return np.concatenate([market_jobs_table(workload, cores), own])


def forget_quotes(quotes: FloatArray) -> None:
    """Blank all quotes, because the price changes."""
    for i in range(quotes.shape[1]):
        quotes[QUOTE.COST, i] = -1.0


def _clipped(table: FloatArray, i: int, width: float) -> float:
    row = class_row(table, i)
    return min(max(width, float(table[row + WIDTHS.LEAST])), float(table[row + WIDTHS.MOST]))


def quote(table: FloatArray, quotes: FloatArray, i: int, c: float, price: float, limit: float) -> None:
    """What a class pays for a unit of work at a price, at which speed and width, up to a limit."""
    k = min(_clipped(table, i, demand(table, i, price, c)), limit)
    s = speed(table, i, k)
    quotes[QUOTE.COST, i], quotes[QUOTE.PAYS, i] = c, (c + price * k) / s
    quotes[QUOTE.SPEED, i], quotes[QUOTE.WISH, i] = s, k


def work_value(table: FloatArray, arms: FloatArray, quotes: FloatArray, j: int, price: float) -> float:
    """w(l): what a unit of the job's work is worth. Its class's quote must be for this price, or blank."""
    i, c, own = int(arms[ARM.CLASS, j]), float(arms[ARM.COST, j]), end_of_market(table)
    if quotes[QUOTE.COST, i] != c:
        quote(table, quotes, i, c, price, float(table[own + DISCOUNTED.LIMIT]))
    if price <= table[own + DISCOUNTED.PRICE]:
        return float(quotes[QUOTE.PAYS, i])
    fair = float(arms[ARM.FAIR, j])
    lasts = math.exp(-arms[ARM.SPAN, j] / quotes[QUOTE.SPEED, i])
    return fair + lasts * (float(quotes[QUOTE.PAYS, i]) - fair)


def total_demand(
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
    forget_quotes(quotes)
    own = end_of_market(table)
    cheap, limit = price <= table[own + DISCOUNTED.PRICE], float(table[own + DISCOUNTED.LIMIT])
    total = 0.0
    for position in range(served):
        j = queue[position]
        i = int(arms[ARM.CLASS, j])
        seen = min(price, float(arms[ARM.AFTER, j])) if modest else price
        worth = work_value(table, arms, quotes, j, seen)
        k = float(quotes[QUOTE.WISH, i])
        if not cheap:
            k = _clipped(table, i, work_demand(table, i, price, worth))
        arms[ARM.WIDTH, j] = min(k, limit)
        total += arms[ARM.WIDTH, j]
    return total


def _excess(market: Any, price: float) -> float:
    """The same, less the cores."""
    table, arms, quotes, queue, served, cores = market
    return float(total_demand(table, arms, quotes, queue, served, price, False) - cores)


_clear = clearing(_excess, SETTLED)


def widen(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, served: int, cores: float
) -> float:
    """Widths that use all cores the first jobs can use, into WIDTH, and the price; their least widths fit."""
    own, market, most = end_of_market(table), (table, arms, quotes, queue, served, cores), 0.0
    for position in range(served):
        j = queue[position]
        widest = float(table[class_row(table, int(arms[ARM.CLASS, j])) + WIDTHS.MOST])
        arms[ARM.WIDTH, j] = min(widest, cores)
        most += arms[ARM.WIDTH, j]
    if most <= cores:
        return 0.0
    start = float(table[own + DISCOUNTED.LAST])
    low, high, _ = _clear(market, cores, TIGHT * cores, start, -1.0, -math.inf, math.inf)
    high = min(high, HIGHEST)
    table[own + DISCOUNTED.LAST] = high
    if low < high:
        _excess(market, math.exp(max(low, LOWEST)))
        _keep(arms, queue, served, ARM.CHEAP)
        _excess(market, math.exp(high))
        _keep(arms, queue, served, ARM.DEAR)
        _between(arms, queue, served, cores)
    return math.exp(high)


def _keep(arms: FloatArray, queue: IntArray, served: int, line: int) -> None:
    """Note the widths just found."""
    for position in range(served):
        arms[line, queue[position]] = arms[ARM.WIDTH, queue[position]]


def _between(arms: FloatArray, queue: IntArray, served: int, cores: float) -> None:
    """Widths between DEAR and CHEAP that use all cores, into WIDTH.

    Where the two differ by rounding all jobs move by the same part, so that equal jobs stay equal. Where
    they differ by a jump, who jumps first is decided by the order of the queue.
    """
    left, even = cores, 0.0
    for position in range(served):
        j = queue[position]
        gap = max(arms[ARM.CHEAP, j] - arms[ARM.DEAR, j], 0.0)
        left -= arms[ARM.DEAR, j]
        even += gap if gap <= JUMP * arms[ARM.DEAR, j] else 0.0
    part = min(max(left / even, 0.0), 1.0) if even > 0.0 else 0.0
    left -= part * even
    widest = queue[0]
    for position in range(served):
        j = queue[position]
        gap = max(arms[ARM.CHEAP, j] - arms[ARM.DEAR, j], 0.0)
        if gap <= JUMP * arms[ARM.DEAR, j]:
            gap *= part
        else:
            gap = min(gap, max(left, 0.0))
            left -= gap
        arms[ARM.WIDTH, j] = arms[ARM.DEAR, j] + gap
        if arms[ARM.WIDTH, j] > arms[ARM.WIDTH, widest]:
            widest = j
    if left < -2.0 * TIGHT * cores:
        arms[ARM.WIDTH, widest] = max(arms[ARM.WIDTH, widest] + left, 1.0)


def mark_worthy(table: FloatArray, arms: FloatArray, quotes: FloatArray, price: float) -> int:
    """Give the highest index to those worth serving at the price that clears with all jobs; how many.

    Without the others the price is lower still, so they are served in the end, whatever their order.
    """
    forget_quotes(quotes)
    worthy = 0
    for j in range(arms.shape[1]):
        row = class_row(table, int(arms[ARM.CLASS, j]))
        worth = work_value(table, arms, quotes, j, price)
        if worth * table[row + WIDTHS.LEAST_SPEED] > price * table[row + WIDTHS.LEAST]:
            arms[ARM.INDEX, j] = PROHIBITIVE
            worthy += 1
    return worthy


def by_index(table: FloatArray, arms: FloatArray, quotes: FloatArray) -> IntArray:
    """Jobs by decreasing index, computed where it is not known; earlier arrivals first among equals."""
    keys = np.empty(arms.shape[1])
    for j in range(arms.shape[1]):
        if arms[ARM.INDEX, j] == 0.0:
            arms[ARM.INDEX, j] = _index(table, arms, quotes, j)
        keys[j] = -arms[ARM.INDEX, j]
    return ascending(keys)


def _gain(market: Any, price: float) -> float:
    """What a core brings the job on its least width, as a share of the price, less 1."""
    table, arms, quotes, j = market
    i = int(arms[ARM.CLASS, j])
    row = class_row(table, i)
    quotes[QUOTE.COST, i] = -1.0
    worth = work_value(table, arms, quotes, j, price)
    return worth * float(table[row + WIDTHS.LEAST_SPEED]) / float(table[row + WIDTHS.LEAST]) / price - 1.0


_just_worth_it = clearing(_gain, SETTLED)


def _index(table: FloatArray, arms: FloatArray, quotes: FloatArray, j: int) -> float:
    """The price at which w(l)·s(k_e)/k_e = l.

    Where the job would buy k_e cores at that price, this is φ(l*)·s(k_e)/k_e + c/(k_e·(e^{αx/s(k_e)} − 1)).
    """
    i, c = int(arms[ARM.CLASS, j]), float(arms[ARM.COST, j])
    row = class_row(table, i)
    least, fast = float(table[row + WIDTHS.LEAST]), float(table[row + WIDTHS.LEAST_SPEED])
    grown = math.expm1(min(float(arms[ARM.SPAN, j]) / fast, STEEP))
    price = PROHIBITIVE
    if c < PROHIBITIVE * grown * least:
        price = min(float(arms[ARM.FAIR, j]) * fast / least + c / (least * grown), PROHIBITIVE)
    if demand(table, i, price, c) <= least:
        return price
    usual = math.log(max(float(table[end_of_market(table) + DISCOUNTED.PRICE]), FREE))
    market = (table, arms, quotes, j)
    return math.exp(_just_worth_it(market, 1.0, TIGHT, math.log(price), -1.0, usual, HIGHEST)[1])
