"""The class rule of `wham-improved`: GREEDY at the weights that a fitted value function gives now.

One step of policy improvement takes, in every state, the allocation that maximises Σ_i w_i · (speed of class
i) with w_i = μ_i [h(x) − h(x − e_i)]. That is a market: at price ν a job buys the width that maximises
w_i s_i(k) − ν k, and nothing at all if ν exceeds w_i s_i(k_e)/k_e, its *value*. So classes enter by falling
value. Either the market clears between two values, where demand is continuous but for corners, or at a value,
and then that class shares in time what the others leave.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from malleable.engine.speedup_table import peak, work_demand
from malleable.policies.improved.count_value import COUNT_VALUE, NOW, write_weights
from malleable.policies.rules.price_search import HIGHEST, LOWEST, clearing
from malleable.policies.rules.tolerances import TIGHT

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def improved_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Cores per job of each class; below its most efficient width a class shares its cores in time."""
    m = len(counts)
    write_weights(counts, cores, table)
    most = 0.0
    for i in range(m):
        out[i] = peak(table, i) if counts[i] > 0.0 else 0.0
        most += counts[i] * out[i] if counts[i] > 0.0 else 0.0
    table[int(table[1]) + COUNT_VALUE.CLEARED] = 0.0
    if most <= cores:
        return
    present = _rank(counts, table)
    _enter(counts, cores, table, out, present)


def _rank(counts: FloatArray, table: FloatArray) -> int:
    """Classes that are present by falling value, into the row RANK; how many there are."""
    m = len(counts)
    rows = int(table[1]) + len(COUNT_VALUE)
    present = 0
    for i in range(m):
        if counts[i] > 0.0:
            value = table[rows + NOW.WEIGHT * m + i] * table[rows + NOW.ENTRY * m + i]
            place = present
            while place > 0:
                before = int(table[rows + NOW.RANK * m + place - 1])
                if table[rows + NOW.WEIGHT * m + before] * table[rows + NOW.ENTRY * m + before] >= value:
                    break
                table[rows + NOW.RANK * m + place] = float(before)
                place -= 1
            table[rows + NOW.RANK * m + place] = float(i)
            present += 1
    return present


def _enter(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray, present: int) -> None:
    """Let classes in by falling value until the cores are spent, then find the price among those in."""
    m = len(counts)
    rows = int(table[1]) + len(COUNT_VALUE)
    above = math.inf
    for place in range(present):
        i = int(table[rows + NOW.RANK * m + place])
        value = table[rows + NOW.WEIGHT * m + i] * table[rows + NOW.ENTRY * m + i]
        used = _excess((counts, cores, table, out, place), value) + cores
        least = table[rows + NOW.LEAST * m + i]
        if used < cores and used + counts[i] * least >= cores:
            for later in range(place, present):
                out[int(table[rows + NOW.RANK * m + later])] = 0.0
            out[i] = (cores - used) / counts[i]
            table[int(table[1]) + COUNT_VALUE.CLEARED] = value
            return
        if used >= cores:
            for later in range(place, present):
                out[int(table[rows + NOW.RANK * m + later])] = 0.0
            _clear(counts, cores, table, out, place, math.log(value), math.log(above))
            return
        above = value
    _clear(counts, cores, table, out, present, -math.inf, math.log(above))


def _excess(market: Any, price: float) -> float:
    """Cores that the first classes want at a price, less those there are; each demand is left in `out`."""
    counts, cores, table, out, entered = market
    m = len(counts)
    rows = int(table[1]) + len(COUNT_VALUE)
    total = -cores
    for place in range(entered):
        i = int(table[rows + NOW.RANK * m + place])
        out[i] = work_demand(table, i, price, table[rows + NOW.WEIGHT * m + i])
        total += counts[i] * out[i]
    return float(total)


_price = clearing(_excess)


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

    Where demand jumps, the two neighbouring prices are mixed.
    """
    own, market = int(table[1]), (counts, cores, table, out, entered)
    start = min(max(math.log(float(table[own + COUNT_VALUE.PRICE])), low), high)
    low, high, _ = _price(market, cores, TIGHT * cores, start, -1.0, low, high)
    high = min(high, HIGHEST)
    table[own + COUNT_VALUE.PRICE] = table[own + COUNT_VALUE.CLEARED] = math.exp(high)
    if low < high:
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
    rows = int(table[1]) + len(COUNT_VALUE)
    market = (counts, cores, table, out, entered)
    gap = _excess(market, low)
    missing = -_excess(market, high)
    gap += missing
    share = min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0
    for place in range(entered):
        i = int(table[rows + NOW.RANK * m + place])
        out[i] += share * (work_demand(table, i, low, table[rows + NOW.WEIGHT * m + i]) - out[i])
