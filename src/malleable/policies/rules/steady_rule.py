"""WHAM where moves cost something: one price for all, and a job moves only if that pays.

At price l a job of weight c and remaining work x pays x·(c + l·k)/s(k) for the rest of its life on k cores:
its holding cost and the rent of its cores. WHAM's width k(l) makes that least. A job that runs on h cores
stays there unless the move earns what it costs, a pause δ on the new cores and work w to be done again:

    x·[(c + l·h)/s(h) − (c + l·k)/s(k)]  >  (δ + w/s(k))·(c + l·k)        with k = k(l).

A price that is out of the ordinary does not last for the rest of a long life: it returns to its long-run
value l* at the rate α of the fluid equation (as in `wham-discounted`). So of the time T = x/s(h) that is left
the share (1 − e^(−αT))/(αT) counts at the price of now, the rest at l*, where a width that is wrong by then
costs no more than a second move. A moldable job, which keeps what it starts with, chooses by the price over
its life in the same sense.

What a job wants still falls with the price, so one price clears the market: the lowest at which all fit.
Those who stay keep their cores; among the others the rest is cleared again, to the last core. Jobs whose next
width is more than what is left then keep what they have, and the market is cleared again without them, until
no cores are left that a job wants. Jobs that would rather stay wide than make room at any price are made to
move, those first whose move costs least per core, until all fit; or newcomers wait, where the wait for the
next job to leave costs less. When jobs outnumber cores those with the
largest c·s/(k·x) run; a job that would have to be resumed counts δ more work. Cores that this leaves over go
to those who wait, in the same order, on the widest width that fits.

`gear_table` describes restricted widths; α, l* and the encoded speedups of all classes stand behind it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, HELD, REMAINING, SIZE
from malleable.engine.speedup_table import demand, most_efficient, peak, speed
from malleable.policies.rules.gear_table import (
    END,
    GEARS,
    GUESS,
    KEPT,
    LOST,
    PAUSE,
    PRICE,
    class_number,
    gear_at,
    gear_width,
    job_weight,
    narrow_width,
)
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import BoolArray, FloatArray, IntArray

DEAREST = 1e60
"""A price, in weights per core, at which no job wants more than its least width."""
CHEAPEST = 1e-60
STEPS = 200
CLOSE = 1e-13
SHORT = 1e-6
"""Lives, in times that a price takes to return, during which it does not."""
NEWCOMER, STAYS, MOVES = range(3)
ANY = 0.0
"""The number of gears of a class of any width."""


def steady_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM with moves that must pay."""
    size = jobs.shape[0]
    served, states = np.ones(size, np.bool_), np.zeros(size, np.int64)
    out[:] = 0.0
    crowded = not admit_steadily(jobs, cores, table, served, out)
    for j in range(size):
        cores -= out[j]
    cleared = np.nan
    for turn in range(size):
        forced = np.zeros(size, np.bool_)
        price = settle(jobs, served, states, forced, cores, table, out)
        cleared = price if turn == 0 else cleared
        fixed = fix_blocked(jobs, served, states, forced, price, cores, table, out)
        if fixed == 0.0:
            break
        cores -= fixed
    table[PRICE] = np.nan if crowded else cleared


def settle(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    forced: BoolArray,
    cores: float,
    table: FloatArray,
    out: FloatArray,
) -> float:
    """One price for the served, who stay or move, and their cores."""
    make_room(jobs, served, forced, cores, table)
    price = clearing(jobs, served, states, forced, cores, table, False)
    if CHEAPEST < price < DEAREST:
        table[GUESS] = price
    for j in range(jobs.shape[0]):
        if served[j]:
            states[j] = state(jobs, j, price, forced, table)
            out[j] = wish(jobs, j, price, forced, cores, table)
    share_rest(jobs, served, states, forced, cores, table, out, price)
    widen(jobs, served, states, forced, price, cores, table, out)
    return price


def widen(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    forced: BoolArray,
    price: float,
    cores: float,
    table: FloatArray,
    out: FloatArray,
) -> None:
    """Let those who stay have what is left, in order of arrival, where it fits and the move pays."""
    spare = cores
    for j in range(jobs.shape[0]):
        spare -= out[j] if served[j] else 0.0
    for j in range(jobs.shape[0]):
        if served[j] and states[j] == STAYS and spare >= 1.0 - DUST and price > CHEAPEST:
            k = next_width(jobs, j, STAYS, forced, price, cores, table)
            if out[j] < k <= out[j] + spare + DUST:
                spare -= k - out[j]
                out[j] = k


def make_room(
    jobs: FloatArray, served: BoolArray, forced: BoolArray, cores: float, table: FloatArray
) -> None:
    """Have jobs move that would stay wide at any price, the cheapest per core first, until all fit.

    Where it costs less to wait for the next job to leave, newcomers wait instead, the latest first.
    """
    size, need, soonest, waiting = jobs.shape[0], 0.0, math.inf, 0.0
    keys = np.full(size, math.inf)
    for j in range(size):
        if not served[j]:
            continue
        i, held = int(jobs[j, CLASS]), float(jobs[j, HELD])
        c, least = job_weight(jobs, j, i, table), least_width(i, table)
        wide = wish(jobs, j, DEAREST, forced, cores, table)
        need += wide
        if held > 0.0:
            soonest = min(soonest, float(jobs[j, REMAINING]) / speed_of(i, held, table))
        else:
            waiting += c
        if wide > least:
            rent = float(table[int(table[END]) - 1]) * least
            keys[j] = (c + rent) * move_time(jobs, j, least, table) / (wide - least)
    for j in ascending(keys):
        if need <= cores + DUST or keys[j] == math.inf:
            return
        freed = jobs[j, HELD] - least_width(int(jobs[j, CLASS]), table)
        if waiting > 0.0 and keys[j] * freed > waiting * soonest:
            break
        forced[j] = True
        need -= freed
    for j in range(size - 1, -1, -1):
        if need > cores + DUST and served[j] and jobs[j, HELD] <= 0.0:
            served[j] = False
            need -= least_width(int(jobs[j, CLASS]), table)


def fix_blocked(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    forced: BoolArray,
    price: float,
    cores: float,
    table: FloatArray,
    out: FloatArray,
) -> float:
    """Leave those out of the market whose next width does not fit into what is left; their cores.

    A price that waits for them would leave cores idle that others can use.
    """
    spare, fixed = cores, 0.0
    for j in range(jobs.shape[0]):
        spare -= out[j] if served[j] else 0.0
    if spare <= DUST or price <= CHEAPEST:
        return 0.0
    for j in range(jobs.shape[0]):
        if served[j] and next_width(jobs, j, states[j], forced, price, cores, table) > out[j] + spare + DUST:
            served[j] = False
            fixed += out[j]
    return fixed


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


def share_rest(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    forced: BoolArray,
    cores: float,
    table: FloatArray,
    out: FloatArray,
    price: float,
) -> None:
    """Clear the market again among those who move, on the cores that the others leave."""
    size, left = jobs.shape[0], cores
    for j in range(size):
        if states[j] == STAYS and served[j]:
            left -= out[j]
    own = clearing(jobs, served, states, forced, left, table, True)
    if own >= DEAREST:
        own = price
    spare = left
    for j in range(size):
        if served[j] and states[j] != STAYS:
            out[j] = best_width(jobs, j, own, left, table)
            spare -= out[j]
    # Several may want their next gear at this very price: as many as fit, in order of arrival.
    for j in range(size):
        if served[j] and states[j] != STAYS and spare > DUST:
            i = int(jobs[j, CLASS])
            wider = best_width(jobs, j, own * (1.0 - 4.0 * CLOSE), left, table)
            if out[j] < wider <= out[j] + spare + DUST and class_number(table, i, GEARS) != ANY:
                spare -= wider - out[j]
                out[j] = wider


def admit_steadily(
    jobs: FloatArray, cores: float, table: FloatArray, served: BoolArray, out: FloatArray
) -> bool:
    """Whether the least widths of all jobs fit; if not, mark the served: by index, while they fit.

    Those who are not served may have the cores that are left over, which are written into `out`.
    """
    size, need = jobs.shape[0], 0.0
    for j in range(size):
        need += least_width(int(jobs[j, CLASS]), table)
    if need <= cores + DUST:
        return True
    keys = np.empty(size)
    for j in range(size):
        i = int(jobs[j, CLASS])
        left = float(jobs[j, REMAINING])
        if jobs[j, HELD] <= 0.0:
            left += class_number(table, i, PAUSE) + class_number(table, i, LOST)
        k = least_width(i, table)
        value = job_weight(jobs, j, i, table) * speed_of(i, k, table) / k
        keys[j] = -value / left if left > 0.0 else -math.inf
    order = ascending(keys)
    for j in order:
        k = least_width(int(jobs[j, CLASS]), table)
        served[j] = k <= cores + DUST
        if served[j]:
            cores -= k
    for j in order:
        if not served[j] and cores >= 1.0 - DUST:
            out[j] = left_over(jobs, j, cores, table)
            cores -= out[j]
    return False


def left_over(jobs: FloatArray, j: int, cores: float, table: FloatArray) -> float:
    """What job j has of so many cores, less than its least width worth having: all it can, if that pays."""
    i, held = int(jobs[j, CLASS]), float(jobs[j, HELD])
    k = narrow_width(table, i, cores) if class_number(table, i, GEARS) != ANY else cores
    if not 0.0 < held <= cores or k <= 0.0:
        return k
    gain = float(jobs[j, REMAINING]) * (1.0 / speed_of(i, held, table) - 1.0 / speed_of(i, k, table))
    return k if gain > move_time(jobs, j, k, table) else held


def clearing(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    forced: BoolArray,
    cores: float,
    table: FloatArray,
    frozen: bool,
) -> float:
    """The lowest price at which the served (those who move, if `frozen`) fit; DEAREST if there is none."""
    high = float(table[GUESS])
    low, factor = high, 1.5
    if wanted(jobs, served, states, high, forced, cores, table, frozen) > cores + DUST:
        while wanted(jobs, served, states, high, forced, cores, table, frozen) > cores + DUST:
            if high >= DEAREST:
                return DEAREST
            low, high, factor = high, min(high * factor, DEAREST), factor * factor
    else:
        while wanted(jobs, served, states, low, forced, cores, table, frozen) <= cores + DUST:
            if low <= CHEAPEST:
                return CHEAPEST
            low, high, factor = max(low / factor, CHEAPEST), low, factor * factor
    for _ in range(STEPS):
        middle = math.sqrt(low) * math.sqrt(high)
        if high <= low * (1.0 + CLOSE) or not low < middle < high:
            break
        if wanted(jobs, served, states, middle, forced, cores, table, frozen) > cores + DUST:
            low = middle
        else:
            high = middle
    return high


def wanted(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    price: float,
    forced: BoolArray,
    cores: float,
    table: FloatArray,
    frozen: bool,
) -> float:
    """Cores that jobs want at a price."""
    total = 0.0
    for j in range(jobs.shape[0]):
        if served[j] and not frozen:
            total += wish(jobs, j, price, forced, cores, table)
        elif served[j] and states[j] != STAYS:
            total += best_width(jobs, j, price, cores, table)
    return total


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
    c, x, usual = job_weight(jobs, j, i, table), float(jobs[j, REMAINING]), table[int(table[END]) - 1]
    here, there = speed_of(i, held, table), speed_of(i, k, table)
    now = (c + price * held) / here - (c + price * k) / there
    later = (c + usual * held) / here - (c + usual * k) / there
    share = lasting(x / here, table)
    cost = move_time(jobs, j, k, table) * (c + price * k)
    gain = x * share * now + max(x * (1.0 - share) * later, -cost)
    return MOVES if gain > cost else STAYS


def move_time(jobs: FloatArray, j: int, k: float, table: FloatArray) -> float:
    """What a move to k cores takes: the pause, and the work to be done again, never more than was done."""
    i = int(jobs[j, CLASS])
    lost = min(class_number(table, i, LOST), max(float(jobs[j, SIZE] - jobs[j, REMAINING]), 0.0))
    return class_number(table, i, PAUSE) + lost / speed_of(i, k, table)


def lasting(time: float, table: FloatArray) -> float:
    """The share of a time that a price of now lasts, before it is back at its usual value."""
    waits = float(table[int(table[END]) - 2]) * time
    return (1.0 - math.exp(-waits)) / waits if waits > SHORT else 1.0


def best_width(jobs: FloatArray, j: int, price: float, cores: float, table: FloatArray) -> float:
    """The width that WHAM gives job j at a price; one that is kept for life, at the price over that life."""
    i = int(jobs[j, CLASS])
    weight = job_weight(jobs, j, i, table)
    if class_number(table, i, KEPT) == 1.0:
        usual = float(table[int(table[END]) - 1])
        slow = speed_of(i, gear_width(table, i, gear_at(table, i, usual, weight)), table)
        price = usual + lasting(float(jobs[j, REMAINING]) / slow, table) * (price - usual)
    if class_number(table, i, GEARS) != ANY:
        return gear_width(table, i, gear_at(table, i, price, weight))
    encoded = speedups_behind(table)
    k = demand(encoded, i, price, weight)
    return max(min(k, peak(encoded, i), cores), most_efficient(encoded, i))


def least_width(i: int, table: FloatArray) -> float:
    """The narrowest width that is worth having."""
    if class_number(table, i, GEARS) != ANY:
        return gear_width(table, i, 0)
    return most_efficient(speedups_behind(table), i)


def speed_of(i: int, k: float, table: FloatArray) -> float:
    """s(k) of class i, at any width that it may be found on."""
    return speed(speedups_behind(table), i, k)


def speedups_behind(table: FloatArray) -> FloatArray:
    """The encoded speedups behind the gears."""
    return table[int(table[END]) :]
