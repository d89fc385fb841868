"""What each job has at the price that clears a market of groups (see `market_groups`), real or whole cores.

Plain functions that the engine compiles. What jobs want at a price divides evenly among real cores, unless a
speedup has a dent; whole cores that do not divide evenly are given out in steps (`width_steps`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import inlined
from malleable.engine.speedup_table import speed
from malleable.policies.rules.market_clearing import clear_groups, excess
from malleable.policies.rules.market_groups import (
    CLEARED,
    COUNT,
    GROUP_CLASS,
    GROUP_WEIGHT,
    HIGH,
    LOW,
    MOST,
    WHAM,
    class_row,
    count_served,
)
from malleable.policies.rules.tolerances import TIGHT
from malleable.policies.rules.width_steps import is_straight, spend

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

ALL_WHOLE = 2.0**52
"""From here on every float is a whole number, and soon too large for an integer."""


@inlined
def share(
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
    table[int(table[1]) + CLEARED] = price if served > 0 else np.nan


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
    table[int(table[1]) + CLEARED] = price if served > 0 else np.nan
    missing, gap, pieces = cores, 0.0, False
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            step = market[HIGH, g] - market[LOW, g]
            missing -= market[COUNT, g] * market[LOW, g]
            gap += market[COUNT, g] * step
            straight = is_straight(table, int(market[GROUP_CLASS, g]), market[LOW, g], market[HIGH, g])
            pieces = pieces or not straight
    if pieces:
        spend(jobs, table, market, groups, member, queue, served, present, missing, kind, out)
        return
    part = min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0
    for position in range(served):
        g = member[queue[position]]
        out[queue[position]] = market[LOW, g] + part * (market[HIGH, g] - market[LOW, g])


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
    more = excess(table, market, groups, cores, kind, price)
    return _round_wishes(table, market, groups, cores, kind, price) if integer else more


def _round_wishes(
    table: FloatArray, market: FloatArray, groups: int, cores: float, kind: int, price: float
) -> float:
    """Make what the line LOW says whole, as the jobs like it at the price; the total, less the cores."""
    total = -cores
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            market[LOW, g] = _whole_wish(table, market, g, price, kind)
            total += float(market[COUNT, g]) * float(market[LOW, g])  # of Python's, which overflow in silence
    return total


def _whole_wish(table: FloatArray, market: FloatArray, g: int, price: float, kind: int) -> float:
    """The neighbouring integer of the group's quantity that its jobs like better at the price."""
    i, weight, wish = int(market[GROUP_CLASS, g]), float(market[GROUP_WEIGHT, g]), float(market[LOW, g])
    if wish >= ALL_WHOLE:  # what a job about to finish wants may be infinite
        return wish
    down, up = math.floor(wish), min(math.ceil(wish), float(table[class_row(table, i) + MOST]))
    if up <= down:
        return float(down)
    slow, fast = speed(table, i, down), speed(table, i, up)
    if kind == WHAM:
        cheaper = (weight + price * up) / fast < (weight + price * down) / slow
    else:
        cheaper = price * up - weight * fast < price * down - weight * slow
    return float(up) if cheaper else float(down)
