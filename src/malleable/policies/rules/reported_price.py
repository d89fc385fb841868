"""The price at which a rule of WHAM or GREEDY shared the cores, read back from the table that it had."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS
from malleable.engine.speedup_table import demand, work_demand
from malleable.policies.rules.market_groups import CLEARED, LEAST, WHAM, class_row, weight_of
from malleable.policies.rules.tolerances import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

STEPS = 100
"""Bisections of the logarithm of a price: more than its digits need."""


def reported_price(jobs: FloatArray, table: FloatArray, out: FloatArray, kind: int) -> float | None:
    """The price of the last decision: None where jobs wait in line, 0 where every job has all that helps.

    A market whose least widths use up the cores clears at many prices; the lowest of them counts.
    """
    price = float(table[int(table[1]) + CLEARED])
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
    least = float(table[class_row(table, i) + LEAST])
    wanted = demand if kind == WHAM else work_demand
    low, high = math.log(FREE), math.log(PROHIBITIVE)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if wanted(table, i, math.exp(middle), 1.0) > least:
            low = middle
        else:
            high = middle
    return math.exp(high)
