"""The price at which the served jobs want all cores while a premium shrinks, and the widths that use them.

Plain functions that the engine compiles, on the arms and quotes of `discounted_demand`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from malleable.policies.rules.discounted_demand import (
    CHEAP,
    DEAR,
    KIND,
    LAST,
    WIDTH,
    own_numbers,
    total_demand,
)
from malleable.policies.rules.market_groups import LEAST, MOST, class_row
from malleable.policies.rules.price_search import next_log_price, secant_slope
from malleable.policies.rules.tolerances import FREE, PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

TIGHTER, SETTLED, JUMP = 1e-13, 1e-14, 1e-6
"""Share of the cores up to which this market clears, difference of log prices at which the search ends, and
the part of its width up to which a job does not jump."""
LOWEST, HIGHEST = math.log(FREE), math.log(PROHIBITIVE)
"""Logarithms of the prices between which the search stays."""


def widen(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, served: int, cores: float
) -> float:
    """Widths that use all cores the first jobs can use, into WIDTH, and the price; their least widths fit."""
    most = 0.0
    for position in range(served):
        j = queue[position]
        row = class_row(table, int(arms[KIND, j]))
        arms[CHEAP, j], arms[DEAR, j] = min(float(table[row + MOST]), cores), table[row + LEAST]
        arms[WIDTH, j] = arms[CHEAP, j]
        most += arms[CHEAP, j]
    if most <= cores:
        return 0.0
    price = _clear(table, arms, quotes, queue, served, cores)
    _between(arms, queue, served, cores)
    return price


def _between(arms: FloatArray, queue: IntArray, served: int, cores: float) -> None:
    """Widths between DEAR and CHEAP that use all cores, into WIDTH.

    Where the two differ by rounding all jobs move by the same part, so that equal jobs stay equal. Where
    they differ by a jump, who jumps first is decided by the order of the queue.
    """
    left, even = cores, 0.0
    for position in range(served):
        j = queue[position]
        gap = max(arms[CHEAP, j] - arms[DEAR, j], 0.0)
        left -= arms[DEAR, j]
        even += gap if gap <= JUMP * arms[DEAR, j] else 0.0
    part = min(max(left / even, 0.0), 1.0) if even > 0.0 else 0.0
    left -= part * even
    widest = queue[0]
    for position in range(served):
        j = queue[position]
        gap = max(arms[CHEAP, j] - arms[DEAR, j], 0.0)
        if gap <= JUMP * arms[DEAR, j]:
            gap *= part
        else:
            gap = min(gap, max(left, 0.0))
            left -= gap
        arms[WIDTH, j] = arms[DEAR, j] + gap
        if arms[WIDTH, j] > arms[WIDTH, widest]:
            widest = j
    if left < -2.0 * TIGHTER * cores:
        arms[WIDTH, widest] = max(arms[WIDTH, widest] + left, 1.0)


def _keep(arms: FloatArray, queue: IntArray, served: int, cheap: bool, dear: bool) -> None:
    """Note the widths just found as those below the clearing price, above it, or both."""
    for position in range(served):
        j = queue[position]
        if cheap:
            arms[CHEAP, j] = arms[WIDTH, j]
        if dear:
            arms[DEAR, j] = arms[WIDTH, j]


def _clear(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, served: int, cores: float
) -> float:
    """The price at which the first jobs want all cores.

    The secant method on log demand over log price (`price_search`), from the last price. DEAR and CHEAP are
    left with the widths on both sides, which differ where demand jumps.
    """
    own = own_numbers(table)
    low, high, reach = -math.inf, math.inf, 1.0
    u, slope, before, last = float(table[own + LAST]), -1.0, 0.0, math.inf
    for _ in range(400):
        total = total_demand(table, arms, quotes, queue, served, math.exp(u), False)
        f = math.log(total / cores)
        close = abs(total - cores) <= TIGHTER * cores
        _keep(arms, queue, served, f > 0.0 or close, f <= 0.0 or close)
        if close:
            break
        low, high = (u, high) if f > 0.0 else (low, u)
        slope = secant_slope(slope, u, f, before, last)
        following = next_log_price(u, -f / slope, f, last, low, high, SETTLED, 0.0, reach, LOWEST, HIGHEST)
        if following == u:
            break
        if low == -math.inf or high == math.inf:
            reach *= 4.0
        before, last, u = u, f, following
    table[own + LAST] = u
    return math.exp(u)
