"""What jobs want at a price where moves cost something, and the price that clears their market.

See `steady_rule` for the inequality behind it. `gears` describes restricted widths; behind them stand the
numbers of `Usual` and the encoded speedups of all classes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.engine.rule_interface import CLASS, HELD, REMAINING, SIZE
from malleable.engine.speedup_table import demand, most_efficient, peak, speed
from malleable.numerics.places import places
from malleable.policies.rules.gears import (
    GEAR,
    GEAR_TABLE,
    class_number,
    gear_at,
    gear_width,
    job_weight,
)
from malleable.policies.rules.price_search import lowest_price
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import BoolArray, FloatArray, IntArray


class Usual(NamedTuple):
    """What is usual in the long run."""

    RATE: int
    """α, at which a price returns to it."""
    PRICE: int
    """l*."""


USUAL = places(Usual)
DEAREST = 1e60
"""A price, in weights per core, at which no job wants more than its least width."""
CHEAPEST = 1e-60
CLOSE = 1e-13
SHORT = 1e-6
"""Lives, in times that a price takes to return, during which it does not."""
NEWCOMER, STAYS, MOVES = range(3)
ANY = 0.0
"""The number of gears of a class of any width."""


def fits(market: Any, price: float) -> bool:
    """Whether there are the cores that the served (those who move, if `frozen`) want at a price."""
    jobs, served, states, forced, cores, table, frozen = market
    total = 0.0
    for j in range(jobs.shape[0]):
        if served[j] and not frozen:
            total += wish(jobs, j, price, forced, cores, table)
        elif served[j] and states[j] != STAYS:
            total += best_width(jobs, j, price, cores, table)
    return bool(total <= cores + DUST)


_lowest_price = lowest_price(fits)


def clearing_price(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    forced: BoolArray,
    cores: float,
    table: FloatArray,
    frozen: bool,
) -> float:
    """The lowest price at which the served (those who move, if `frozen`) fit; DEAREST if there is none."""
    market = (jobs, served, states, forced, cores, table, frozen)
    return _lowest_price(market, float(table[GEAR_TABLE.GUESS]), CHEAPEST, DEAREST, CLOSE)[1]


def wish(jobs: FloatArray, j: int, price: float, forced: BoolArray, cores: float, table: FloatArray) -> float:
    """What job j wants at a price: the width it holds, or a better one if the move pays."""
    if jobs[j, HELD] > 0.0 and state(jobs, j, price, forced, table) == STAYS:
        return float(jobs[j, HELD])
    return best_width(jobs, j, price, cores, table)


def state(jobs: FloatArray, j: int, price: float, forced: BoolArray, table: FloatArray) -> int:
    """Whether job j stays at its width at this price, moves, or has none yet."""
    held, i = float(jobs[j, HELD]), int(jobs[j, CLASS])
    if held <= 0.0:
        return NEWCOMER
    if forced[j]:
        return MOVES
    k = best_width(jobs, j, price, math.inf, table)
    if k == held:
        return STAYS
    c, x, long_run = job_weight(jobs, j, i, table), float(jobs[j, REMAINING]), usual(table, USUAL.PRICE)
    here, there = speed_of(i, held, table), speed_of(i, k, table)
    now = (c + price * held) / here - (c + price * k) / there
    later = (c + long_run * held) / here - (c + long_run * k) / there
    share = lasting(x / here, table)
    cost = move_time(jobs, j, k, table) * (c + price * k)
    gain = x * share * now + max(x * (1.0 - share) * later, -cost)
    return MOVES if gain > cost else STAYS


def move_time(jobs: FloatArray, j: int, k: float, table: FloatArray) -> float:
    """What a move to k cores takes: the pause, and the work to be done again, never more than was done."""
    i = int(jobs[j, CLASS])
    lost = min(class_number(table, i, GEAR.LOST), max(float(jobs[j, SIZE] - jobs[j, REMAINING]), 0.0))
    return class_number(table, i, GEAR.PAUSE) + lost / speed_of(i, k, table)


def lasting(time: float, table: FloatArray) -> float:
    """The share of a time that a price of now lasts, before it is back at its usual value."""
    waits = usual(table, USUAL.RATE) * time
    return (1.0 - math.exp(-waits)) / waits if waits > SHORT else 1.0


def best_width(jobs: FloatArray, j: int, price: float, cores: float, table: FloatArray) -> float:
    """The width that WHAM gives job j at a price; one that is kept for life, at the price over that life."""
    i = int(jobs[j, CLASS])
    weight = job_weight(jobs, j, i, table)
    if class_number(table, i, GEAR.KEPT) == 1.0:
        long_run = usual(table, USUAL.PRICE)
        slow = speed_of(i, gear_width(table, i, gear_at(table, i, long_run, weight)), table)
        price = long_run + lasting(float(jobs[j, REMAINING]) / slow, table) * (price - long_run)
    if class_number(table, i, GEAR.COUNT) != ANY:
        return gear_width(table, i, gear_at(table, i, price, weight))
    encoded = speedups_behind(table)
    k = demand(encoded, i, price, weight)
    return max(min(k, peak(encoded, i), cores), most_efficient(encoded, i))


def least_width(i: int, table: FloatArray) -> float:
    """The narrowest width that is worth having."""
    if class_number(table, i, GEAR.COUNT) != ANY:
        return gear_width(table, i, 0)
    return most_efficient(speedups_behind(table), i)


def speed_of(i: int, k: float, table: FloatArray) -> float:
    """s(k) of class i, at any width that it may be found on."""
    return speed(speedups_behind(table), i, k)


def usual(table: FloatArray, what: int) -> float:
    """One of the numbers that stand behind the gears."""
    return float(table[int(table[GEAR_TABLE.END]) - len(USUAL) + what])


def speedups_behind(table: FloatArray) -> FloatArray:
    """The encoded speedups, which stand behind that."""
    return table[int(table[GEAR_TABLE.END]) :]


def next_width(
    jobs: FloatArray,
    j: int,
    its_state: int,
    forced: BoolArray,
    price: float,
    cores: float,
    table: FloatArray,
) -> float:
    """What job j would have at a price that is a little lower."""
    below = price * (1.0 - 4.0 * CLOSE)
    if its_state == STAYS:
        return wish(jobs, j, below, forced, cores, table)
    return best_width(jobs, j, below, cores, table)
