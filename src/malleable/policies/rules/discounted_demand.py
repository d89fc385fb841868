"""What a unit of a job's work is worth while a premium shrinks, and the cores that the job wants for it.

At price l a job of weight c would buy g(l) = argmin (c + l·k)/s(k) cores and pay φ(l) = (c + l·g)/s(g) for a
unit of work. Its last unit is done in x/s(g), when the premium l − l* has shrunk by e^{−αx/s(g)}, so that to
the job a unit of work is worth

    w(l) = φ(l*) + e^{−αx/s(g(l))}·(φ(l) − φ(l*))     for l > l*,        w(l) = φ(l)     for l ≤ l*.

It buys argmax_k w·s(k) − l·k, or nothing if w·s(k_e)/k_e ≤ l (k_e: its most efficient width). Today g is at
most n; in the long run, at l*, it may be more, as in the mean field. w(l)/l falls with l, so demand does, and
a job is worth serving below one price, its *index*.

Plain functions that the engine compiles; `discounted_job_rule` says who is served.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.speedup_table import demand, speed, work_demand
from malleable.policies.rules.market_groups import (
    HEADER,
    LEAST,
    MOST,
    WIDTH_COLUMNS,
    class_row,
    market_jobs_table,
)
from malleable.policies.rules.tolerances import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray

# What the table says after WHAM's own numbers.
DISCOUNT, PRICE, SPARE, LIMIT, LAST = range(5)
"""α while no job has to wait, l*, the cores that arrivals leave over, all cores, the last log price."""
# Lines of the arms, one column per job.
KIND, COST, SPAN, FAIR, AFTER, INDEX, WIDTH, DEAR, CHEAP = range(9)
ARM_LINES = 9
"""Class, c, αx, φ(l*), price without the job, index, cores at the last price, and on both sides of it."""
# Lines of the quotes, one column per class.
QUOTED, PAYS, SPEED, WISH = range(4)
QUOTE_LINES = 4
"""The weight that the quote is for, φ(l), s(g(l)) and g(l)."""


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


def forget_quotes(quotes: FloatArray) -> None:
    """Blank all quotes, because the price changes."""
    for i in range(quotes.shape[1]):
        quotes[QUOTED, i] = -1.0


def _clipped(table: FloatArray, i: int, width: float) -> float:
    row = class_row(table, i)
    return min(max(width, float(table[row + LEAST])), float(table[row + MOST]))


def quote(table: FloatArray, quotes: FloatArray, i: int, c: float, price: float, limit: float) -> None:
    """What a class pays for a unit of work at a price, at which speed and width, up to a limit."""
    k = min(_clipped(table, i, demand(table, i, price, c)), limit)
    s = speed(table, i, k)
    quotes[QUOTED, i], quotes[PAYS, i], quotes[SPEED, i], quotes[WISH, i] = c, (c + price * k) / s, s, k


def work_value(table: FloatArray, arms: FloatArray, quotes: FloatArray, j: int, price: float) -> float:
    """w(l): what a unit of the job's work is worth. Its class's quote must be for this price, or blank."""
    i, c, own = int(arms[KIND, j]), float(arms[COST, j]), own_numbers(table)
    if quotes[QUOTED, i] != c:
        quote(table, quotes, i, c, price, float(table[own + LIMIT]))
    if price <= table[own + PRICE]:
        return float(quotes[PAYS, i])
    fair = float(arms[FAIR, j])
    return fair + math.exp(-arms[SPAN, j] / quotes[SPEED, i]) * (float(quotes[PAYS, i]) - fair)


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
    own = own_numbers(table)
    cheap, limit = price <= table[own + PRICE], float(table[own + LIMIT])
    total = 0.0
    for position in range(served):
        j = queue[position]
        i = int(arms[KIND, j])
        worth = work_value(table, arms, quotes, j, min(price, float(arms[AFTER, j])) if modest else price)
        k = float(quotes[WISH, i]) if cheap else _clipped(table, i, work_demand(table, i, price, worth))
        arms[WIDTH, j] = min(k, limit)
        total += arms[WIDTH, j]
    return total
