"""The class rule of `wham-improved`: GREEDY at the weights that a fitted value function gives now.

One step of policy improvement takes, in every state, the allocation that maximises Σ_i w_i · (speed of class
i) with w_i = μ_i [h(x) − h(x − e_i)]. That is a market: at price ν a job buys the width that maximises
w_i s_i(k) − ν k, and nothing at all if ν exceeds w_i s_i(k_e)/k_e, its *value*. So classes enter by falling
value. Either the market clears between two values, where demand is continuous but for corners, or at a value,
and then that class shares in time what the others leave.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from malleable.engine.speedup_table import peak, work_demand
from malleable.policies.rules.price_search import next_log_price, secant_slope
from malleable.policies.rules.value_table import (
    CLEARED,
    ENTRY,
    HEADER,
    LEAST,
    PRICE,
    RANK,
    WEIGHT,
    write_weights,
)

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

SLACK = 1e-12
"""Share of the cores that may be missing or left over."""
STEPS = 200
SHORT, LONG = 1e-6, 3.0
"""The shortest and the longest step of the search in the log price while it has no bracket."""
LOWEST = -644.0
"""The logarithm of a price that is free."""


def improved_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Cores per job of each class; below its most efficient width a class shares its cores in time."""
    m = len(counts)
    write_weights(counts, cores, table)
    most = 0.0
    for i in range(m):
        out[i] = peak(table, i) if counts[i] > 0.0 else 0.0
        most += counts[i] * out[i] if counts[i] > 0.0 else 0.0
    table[int(table[1]) + CLEARED] = 0.0
    if most <= cores:
        return
    present = _rank(counts, table)
    _enter(counts, cores, table, out, present)


def _rank(counts: FloatArray, table: FloatArray) -> int:
    """Classes that are present by falling value, into the row RANK; how many there are."""
    m = len(counts)
    rows = int(table[1]) + HEADER
    present = 0
    for i in range(m):
        if counts[i] > 0.0:
            value = table[rows + WEIGHT * m + i] * table[rows + ENTRY * m + i]
            place = present
            while place > 0:
                before = int(table[rows + RANK * m + place - 1])
                if table[rows + WEIGHT * m + before] * table[rows + ENTRY * m + before] >= value:
                    break
                table[rows + RANK * m + place] = float(before)
                place -= 1
            table[rows + RANK * m + place] = float(i)
            present += 1
    return present


def _enter(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray, present: int) -> None:
    """Let classes in by falling value until the cores are spent, then find the price among those in."""
    m = len(counts)
    rows = int(table[1]) + HEADER
    above = math.inf
    for place in range(present):
        i = int(table[rows + RANK * m + place])
        value = table[rows + WEIGHT * m + i] * table[rows + ENTRY * m + i]
        used = _demanded(counts, table, out, place, value)
        least = table[rows + LEAST * m + i]
        if used < cores and used + counts[i] * least >= cores:
            for later in range(place, present):
                out[int(table[rows + RANK * m + later])] = 0.0
            out[i] = (cores - used) / counts[i]
            table[int(table[1]) + CLEARED] = value
            return
        if used >= cores:
            for later in range(place, present):
                out[int(table[rows + RANK * m + later])] = 0.0
            _clear(counts, cores, table, out, place, math.log(value), math.log(above))
            return
        above = value
    _clear(counts, cores, table, out, present, -math.inf, math.log(above))


def _demanded(counts: FloatArray, table: FloatArray, out: FloatArray, entered: int, price: float) -> float:
    """Cores that the first classes want at a price; the demand of each is left in `out`."""
    m = len(counts)
    rows = int(table[1]) + HEADER
    total = 0.0
    for place in range(entered):
        i = int(table[rows + RANK * m + place])
        out[i] = work_demand(table, i, price, table[rows + WEIGHT * m + i])
        total += counts[i] * out[i]
    return total


def _clear(
    counts: FloatArray,
    cores: float,
    table: FloatArray,
    out: FloatArray,
    entered: int,
    low: float,
    high: float,
) -> None:
    """The price between two logarithms at which the classes that are in want the cores.

    The secant method from the last price; where demand jumps, the two neighbouring prices are mixed.
    """
    own = int(table[1])
    u, slope = min(max(math.log(table[own + PRICE]), low), high), -1.0
    before, last, top = math.nan, math.inf, high
    for _ in range(STEPS):
        more = _demanded(counts, table, out, entered, math.exp(u)) - cores
        if abs(more) <= SLACK * cores:
            table[own + PRICE] = table[own + CLEARED] = math.exp(u)
            return
        f = math.log(min(max(1.0 + more / cores, 1e-300), 1e300))
        if f > 0.0:
            low = u
        else:
            high = u
        slope = secant_slope(slope, u, f, before, last)
        following = next_log_price(u, -f / slope, f, last, low, high, 0.0, SHORT, LONG, LOWEST, top)
        if following == u:
            break
        before, last, u = u, f, following
    table[own + PRICE] = table[own + CLEARED] = math.exp(high)
    _mix(counts, cores, table, out, entered, math.exp(max(low, LOWEST)), math.exp(high))


def _mix(
    counts: FloatArray,
    cores: float,
    table: FloatArray,
    out: FloatArray,
    entered: int,
    low: float,
    high: float,
) -> None:
    """Demand at the higher price, plus the share of the step to the lower one that the cores allow."""
    m = len(counts)
    rows = int(table[1]) + HEADER
    wanted = _demanded(counts, table, out, entered, low)
    missing = cores - _demanded(counts, table, out, entered, high)
    gap = wanted + missing - cores
    share = min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0
    for place in range(entered):
        i = int(table[rows + RANK * m + place])
        out[i] += share * (work_demand(table, i, low, table[rows + WEIGHT * m + i]) - out[i])
