"""The clearing price of a market of groups (see `market_groups`), found from the last one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from malleable.engine.speedup_table import demand, work_demand
from malleable.policies.rules.market_groups import (
    COUNT,
    GROUP_CLASS,
    GROUP_WEIGHT,
    HIGH,
    LEAST,
    LOW,
    MOST,
    PRICE,
    SLOPE,
    WHAM,
    WIDTH_COLUMNS,
    class_row,
)
from malleable.policies.rules.price_search import next_log_price, secant_slope
from malleable.policies.rules.tolerances import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

FARTHEST = 644.7
"""The logarithm of a price that is prohibitive."""
NEAREST = 1e-6
"""The shortest step of the search for a bracket, as a share of the longest; both grow."""


def excess(
    table: FloatArray, market: FloatArray, groups: int, cores: float, kind: int, price: float
) -> float:
    """Total demand at a price, less the cores; the demand of each group is left in the market's line LOW."""
    rows = class_row(table, 0)
    total = -cores
    for g in range(groups):
        count = float(market[COUNT, g])
        if count > 0.0:
            i, weight = int(market[GROUP_CLASS, g]), float(market[GROUP_WEIGHT, g])
            wish = demand(table, i, price, weight) if kind == WHAM else work_demand(table, i, price, weight)
            row = rows + WIDTH_COLUMNS * i
            wish = min(max(wish, float(table[row + LEAST])), float(table[row + MOST]))
            market[LOW, g] = wish
            total += count * wish
    return total


def clear_groups(
    table: FloatArray, market: FloatArray, groups: int, cores: float, slack: float, kind: int
) -> float:
    """Find the price at which the jobs counted want the cores, up to `slack`.

    The quantities at the price found are left in the line LOW, those at its lower neighbour in HIGH. Where no
    price has that total these differ by a jump; otherwise they are the same.
    """
    rows = class_row(table, 0)
    needed = most = 0.0
    for g in range(groups):
        if market[COUNT, g] > 0.0:
            row = rows + WIDTH_COLUMNS * int(market[GROUP_CLASS, g])
            needed += market[COUNT, g] * table[row + LEAST]
            most += market[COUNT, g] * table[row + MOST]
    if needed >= cores - slack or most <= cores:
        limit = LEAST if needed >= cores - slack else MOST
        _demand_limit(table, market, groups, limit, LOW)
        _demand_limit(table, market, groups, limit, HIGH)
        return PROHIBITIVE if limit == LEAST else FREE
    low, high = _bracket(table, market, groups, cores, slack, kind)
    if low < high:
        excess(table, market, groups, cores, kind, low)
        for g in range(groups):
            market[HIGH, g] = market[LOW, g]
        if high < math.inf:
            excess(table, market, groups, cores, kind, high)
        else:
            _demand_limit(table, market, groups, LEAST, LOW)
    else:
        for g in range(groups):
            market[HIGH, g] = market[LOW, g]
    return min(high, PROHIBITIVE)


def _demand_limit(table: FloatArray, market: FloatArray, groups: int, limit: int, line: int) -> None:
    """Let all groups want the least or the most that their classes can use."""
    for g in range(groups):
        market[line, g] = table[class_row(table, int(market[GROUP_CLASS, g])) + limit]


def _bracket(
    table: FloatArray, market: FloatArray, groups: int, cores: float, slack: float, kind: int
) -> tuple[float, float]:
    """Two neighbouring prices around the clearing one, or twice one that clears up to `slack`.

    The upper one is infinite where jobs want too much at the highest price that is looked at. The secant
    method on log demand over log price (`price_search`), from the last price and slope.
    """
    own = int(table[1])
    u, slope = math.log(float(table[own + PRICE])), float(table[own + SLOPE])
    low, high, reach = -math.inf, math.inf, 1.0
    before, last = math.nan, math.inf
    for _ in range(400):
        more = excess(table, market, groups, cores, kind, math.exp(u))
        if abs(more) <= slack:
            table[own + PRICE], table[own + SLOPE] = math.exp(u), slope
            return math.exp(u), math.exp(u)
        f = math.log(min(max(1.0 + more / cores, 1e-300), 1e300))
        if f > 0.0:
            low = u
        else:
            high = u
        slope = secant_slope(slope, u, f, before, last)
        following = next_log_price(
            u, -f / slope, f, last, low, high, 0.0, NEAREST * reach, reach, -FARTHEST, FARTHEST
        )
        if following == u:
            break
        if low == -math.inf or high == math.inf:
            reach *= 4.0
        before, last, u = u, f, following
    table[own + PRICE], table[own + SLOPE] = math.exp(min(high, FARTHEST)), -1.0
    return math.exp(max(low, -FARTHEST)), math.exp(high) if high < math.inf else math.inf
