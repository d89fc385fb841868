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
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, HELD, REMAINING
from malleable.policies.rules.gears import GEAR, GEAR_TABLE, class_number, job_weight, narrow_width
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.steady_demand import (
    ANY,
    CHEAPEST,
    CLOSE,
    DEAREST,
    STAYS,
    USUAL,
    best_width,
    clearing_price,
    least_width,
    move_time,
    next_width,
    speed_of,
    state,
    usual,
    wish,
)
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import BoolArray, FloatArray, IntArray


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
        # Who may run at all is decided once: later on, the cores of those sent back are given to others.
        price = settle(jobs, served, states, forced, turn == 0, cores, table, out)
        cleared = price if turn == 0 else cleared
        fixed = fix_blocked(jobs, served, states, forced, price, cores, table, out)
        if fixed == 0.0:
            break
        cores -= fixed
    table[GEAR_TABLE.PRICE] = np.nan if crowded else cleared


def settle(
    jobs: FloatArray,
    served: BoolArray,
    states: IntArray,
    forced: BoolArray,
    may_wait: bool,
    cores: float,
    table: FloatArray,
    out: FloatArray,
) -> float:
    """One price for the served, who stay or move, and their cores."""
    make_room(jobs, served, forced, may_wait, cores, table)
    price = clearing_price(jobs, served, states, forced, cores, table, False)
    if CHEAPEST < price < DEAREST:
        table[GEAR_TABLE.GUESS] = price
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
    jobs: FloatArray, served: BoolArray, forced: BoolArray, may_wait: bool, cores: float, table: FloatArray
) -> None:
    """Have jobs move that would stay wide at any price, the cheapest per core first, until all fit.

    Where it costs less to wait for the next job to leave, newcomers that `may_wait` do, the latest first.
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
            rent = usual(table, USUAL.PRICE) * least
            keys[j] = (c + rent) * move_time(jobs, j, least, table) / (wide - least)
    patient = may_wait and waiting > 0.0
    for j in ascending(keys):
        if need <= cores + DUST or keys[j] == math.inf:
            break
        freed = jobs[j, HELD] - least_width(int(jobs[j, CLASS]), table)
        if patient and keys[j] * freed > waiting * soonest:
            need, patient = need - send_back(jobs, served, need - cores, table), False
        if need > cores + DUST:
            forced[j] = True
            need -= freed


def send_back(jobs: FloatArray, served: BoolArray, excess: float, table: FloatArray) -> float:
    """Let newcomers wait, the latest first, until so many cores are not needed; how many that saves."""
    saved = 0.0
    for j in range(jobs.shape[0] - 1, -1, -1):
        if saved < excess - DUST and served[j] and jobs[j, HELD] <= 0.0:
            served[j] = False
            saved += least_width(int(jobs[j, CLASS]), table)
    return saved


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
    own = clearing_price(jobs, served, states, forced, left, table, True)
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
            if out[j] < wider <= out[j] + spare + DUST and class_number(table, i, GEAR.COUNT) != ANY:
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
            left += class_number(table, i, GEAR.PAUSE) + class_number(table, i, GEAR.LOST)
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
    k = narrow_width(table, i, cores) if class_number(table, i, GEAR.COUNT) != ANY else cores
    if not 0.0 < held <= cores or k <= 0.0:
        return k
    gain = float(jobs[j, REMAINING]) * (1.0 / speed_of(i, held, table) - 1.0 / speed_of(i, k, table))
    return k if gain > move_time(jobs, j, k, table) else held
