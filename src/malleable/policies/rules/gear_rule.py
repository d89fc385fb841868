"""WHAM and GREEDY where widths are restricted: the multi-gear index rule.

Every step from one gear to the next has a price (Whittle's index of that step, or the gain in speed per
core). Steps are taken from the highest price down while they fit; one that does not fit is passed over, so a
cheaper step of another job may take its place. WHAM first gives gear 0 to all jobs; where they do not fit
together, to those with the highest c·s(k)/(k·x), and passes over those that do not fit. What this division
lacks of the best collected index is less than the largest step that was passed over (measured in the tests).
Where cores are left over for which a job waits, it runs on the widest allowed width that fits: no machine is
idle because a job would rather have more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING
from malleable.policies.rules.gear_table import (
    GEARS,
    INDEX,
    MODE,
    PRICE,
    class_number,
    gear_at,
    gear_width,
    job_weight,
    narrow_width,
    step_price,
)
from malleable.policies.rules.market_groups import WHAM
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import BoolArray, FloatArray, IntArray

SEARCH_STEPS = 200
CLOSE = 1e-14
"""Relative distance of two prices between which no step lies but by rounding."""


def gear_price(rows: FloatArray, table: FloatArray, out: FloatArray) -> float | None:  # noqa: ARG001
    """The price of the last decision; None where jobs wait in line."""
    return None if math.isnan(table[PRICE]) else float(table[PRICE])


def gear_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Steps between gears in order of their price, as long as they fit."""
    size, whole = jobs.shape[0], float(math.floor(cores + DUST))
    kinds, weights = np.empty(size, np.int64), np.empty(size)
    gears, served = np.full(size, -1, np.int64), np.ones(size, np.bool_)
    for j in range(size):
        kinds[j] = int(jobs[j, CLASS])
        weights[j] = job_weight(jobs, j, kinds[j], table)
    keys = serving_order(jobs, kinds, weights, table)
    full = table[MODE] == WHAM and not admit(kinds, keys, whole, table, served, out)
    spare = whole
    for j in range(size):
        if full and not served[j]:
            spare -= out[j]
    low, high = bracket(kinds, weights, served, spare, table)
    for j in range(size):
        if served[j]:
            gears[j] = gear_at(table, kinds[j], high, weights[j])
            spare -= gear_width(table, kinds[j], gears[j])
    spare = take_steps(kinds, weights, served, gears, spare, low, table)
    for j in range(size):
        if served[j]:
            out[j] = gear_width(table, kinds[j], gears[j])
    if table[MODE] != WHAM:
        serve_narrowly(kinds, keys, spare, table, out)
    table[PRICE] = np.nan if full else high


def serving_order(jobs: FloatArray, kinds: IntArray, weights: FloatArray, table: FloatArray) -> FloatArray:
    """What jobs are served by when not all can be, least first: the index of gear 0, or its price."""
    size = kinds.shape[0]
    keys = np.empty(size)
    for j in range(size):
        left = float(jobs[j, REMAINING]) if table[MODE] == WHAM else 1.0
        value = weights[j] * class_number(table, kinds[j], INDEX)
        keys[j] = -value / left if left > 0.0 else -math.inf
    return keys


def admit(
    kinds: IntArray, keys: FloatArray, whole: float, table: FloatArray, served: BoolArray, out: FloatArray
) -> bool:
    """Whether gear 0 of all jobs fits; if not, mark those that are served: by index, while they fit."""
    size, need = kinds.shape[0], 0.0
    for j in range(size):
        need += gear_width(table, kinds[j], 0)
        out[j] = 0.0
    if need <= whole + DUST:
        return True
    for j in ascending(keys):
        out[j] = gear_width(table, kinds[j], 0)
        served[j] = out[j] <= whole + DUST
        if served[j]:
            whole -= out[j]
        else:
            out[j] = 0.0
    serve_narrowly(kinds, keys, whole, table, out)
    return False


def serve_narrowly(
    kinds: IntArray, keys: FloatArray, spare: float, table: FloatArray, out: FloatArray
) -> None:
    """Let jobs that have no cores run on what is left over, in order, below their gear 0."""
    if spare < 1.0 - DUST:
        return
    for j in ascending(keys):
        if out[j] == 0.0:
            out[j] = narrow_width(table, kinds[j], spare)
            spare -= out[j]


def bracket(
    kinds: IntArray, weights: FloatArray, served: BoolArray, whole: float, table: FloatArray
) -> tuple[float, float]:
    """Two neighbouring prices: at the lower one the served want more than there is, at the higher not."""
    high = 0.0
    for j in range(kinds.shape[0]):
        if served[j]:
            first = 1 if table[MODE] == WHAM else 0
            high = max(high, weights[j] * step_price(table, kinds[j], first))
    if high == 0.0 or wanted(kinds, weights, served, 0.0, table) <= whole + DUST:
        return 0.0, 0.0
    low = high
    while wanted(kinds, weights, served, low, table) <= whole + DUST:
        high, low = low, low * 0.25
    for _ in range(SEARCH_STEPS):
        middle = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.5 * high
        if high <= low * (1.0 + CLOSE) or not low < middle < high:
            break
        if wanted(kinds, weights, served, middle, table) <= whole + DUST:
            high = middle
        else:
            low = middle
    return low, high


def wanted(kinds: IntArray, weights: FloatArray, served: BoolArray, price: float, table: FloatArray) -> float:
    """Cores that the served jobs want at a price."""
    total = 0.0
    for j in range(kinds.shape[0]):
        if served[j]:
            total += gear_width(table, kinds[j], gear_at(table, kinds[j], price, weights[j]))
    return total


def take_steps(
    kinds: IntArray,
    weights: FloatArray,
    served: BoolArray,
    gears: IntArray,
    spare: float,
    price: float,
    table: FloatArray,
) -> float:
    """Spend what is left: steps of the clearing price in order of arrival, then the dearest that fits."""
    size = kinds.shape[0]
    for j in range(size):
        if served[j] and weights[j] * step_price(table, kinds[j], gears[j] + 1) >= price > 0.0:
            spare = step(kinds[j], gears, j, spare, table)
    while spare >= 1.0 - DUST:
        best, value = -1, 0.0
        for j in range(size):
            if served[j] and int(gears[j]) + 1 < int(class_number(table, kinds[j], GEARS)):
                i, gear = int(kinds[j]), int(gears[j])
                need = gear_width(table, i, gear + 1) - gear_width(table, i, gear)
                own = weights[j] * step_price(table, i, gear + 1)
                if need <= spare + DUST and own > value:
                    best, value = j, own
        if best < 0:
            break
        spare = step(kinds[best], gears, best, spare, table)
    return spare


def step(i: int, gears: IntArray, j: int, spare: float, table: FloatArray) -> float:
    """Let job j, of class i, have its next gear if it fits; what is left."""
    need = gear_width(table, i, gears[j] + 1) - gear_width(table, i, gears[j])
    if need <= spare + DUST:
        gears[j] += 1
        return spare - need
    return spare
