"""The price below which a job is worth serving while a premium shrinks, and the queue in that order.

Plain functions that the engine compiles, on the arms and quotes of `discounted_demand`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.speedup_table import demand
from malleable.policies.rules.discounted_demand import (
    COST,
    FAIR,
    INDEX,
    KIND,
    PRICE,
    QUOTED,
    SPAN,
    forget_quotes,
    own_numbers,
    work_value,
)
from malleable.policies.rules.market_groups import LEAST, LEAST_SPEED, class_row
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.price_search import next_log_price, secant_slope
from malleable.policies.rules.tolerances import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

SETTLED = 1e-14
"""Difference of log prices at which the search ends."""
STEEP = 600.0
"""The largest exponent that is taken as it is."""


def mark_worthy(table: FloatArray, arms: FloatArray, quotes: FloatArray, price: float) -> int:
    """Give the highest index to those worth serving at the price that clears with all jobs; how many.

    Without the others the price is lower still, so they are served in the end, whatever their order.
    """
    forget_quotes(quotes)
    worthy = 0
    for j in range(arms.shape[1]):
        row = class_row(table, int(arms[KIND, j]))
        worth = work_value(table, arms, quotes, j, price)
        if worth * table[row + LEAST_SPEED] > price * table[row + LEAST]:
            arms[INDEX, j] = PROHIBITIVE
            worthy += 1
    return worthy


def by_index(table: FloatArray, arms: FloatArray, quotes: FloatArray) -> IntArray:
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
    low, high = math.log(max(float(table[own_numbers(table) + PRICE]), FREE)), math.log(PROHIBITIVE)
    slope, before, last = -1.0, 0.0, math.inf
    for _ in range(200):
        quotes[QUOTED, i] = -1.0
        worth = work_value(table, arms, quotes, j, math.exp(u))
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
