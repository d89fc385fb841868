"""What a unit of each job's work costs if nothing more arrives: the recursion of `theory.clearing`, compiled.

Jobs are numbered from the last to finish to the first. The costate of the k-th depends on those before it and
on nothing else, not on sizes. So what was found at the last event is kept in the table, by the jobs' own
numbers, and the recursion starts at the first job whose place has changed: when the job that finishes first
has left nothing is to be done.

The k-th costate does not change, to first order, when its price is a little off (its derivative is what
demand exceeds the cores by): a price with half of the digits gives all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from malleable.engine.rule_interface import CLASS, IDENTITY, WEIGHT
from malleable.engine.speedup_table import demand, speed, work_demand
from malleable.policies.rules.discounted_demand import own_numbers
from malleable.policies.rules.market_groups import LEAST, LEAST_SPEED, MOST, class_row
from malleable.policies.rules.price_search import next_log_price, secant_slope

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

KEPT_CORES, KEPT_JOBS, KEPT = range(3)
"""What the table keeps: for how many cores, how many jobs, and then number and costate of each."""
ROOM = 256
"""Jobs that are kept."""
SLACK, SETTLED, LITTLE = 1e-8, 1e-13, 1e-9
"""Share of the cores by which demand may be off, difference of log prices that ends a search, and the demand
that stands for none."""


def set_costates(
    jobs: FloatArray, table: FloatArray, order: IntArray, cores: float, costates: FloatArray
) -> None:
    """The costate of each job, for an order from the last to finish to the first."""
    own = own_numbers(table)
    known = int(table[own + KEPT_JOBS]) if table[own + KEPT_CORES] == cores else 0
    total, same = 0.0, True
    price = math.nan
    for position in range(order.shape[0]):
        j = order[position]
        total += float(jobs[j, WEIGHT])
        at = own + KEPT + 2 * position
        same = same and position < known and table[at] == jobs[j, IDENTITY]
        if same:
            costates[j] = table[at + 1]
            continue
        price = _next_costate(jobs, table, order, position, total, cores, price, costates)
        if position < ROOM:
            table[at], table[at + 1] = jobs[j, IDENTITY], costates[j]
    table[own + KEPT_CORES], table[own + KEPT_JOBS] = cores, min(order.shape[0], ROOM)


def _next_costate(
    jobs: FloatArray,
    table: FloatArray,
    order: IntArray,
    position: int,
    total: float,
    cores: float,
    guess: float,
    costates: FloatArray,
) -> float:
    """The costate of the job at this place of the order, and the price at which it clears the market."""
    if _wanted(jobs, table, order, position, total, cores, 0.0, costates) <= cores * (1.0 + SLACK):
        return math.nan
    high = math.log(total / cores)
    u = min(math.log(guess), high) if guess > 0.0 else high - 1.0
    low, above = -math.inf, math.inf
    slope, before, last = -1.5, math.nan, math.inf
    for _ in range(200):
        wanted = _wanted(jobs, table, order, position, total, cores, math.exp(u), costates)
        if abs(wanted - cores) <= SLACK * cores:
            break
        f = math.log(max(wanted, LITTLE) / cores)
        if f > 0.0:
            low = u
        else:
            above = u
        slope = secant_slope(slope, u, f, before, last)
        following = next_log_price(u, -f / slope, f, last, low, above, SETTLED, 0.0, 4.0, high - 600.0, high)
        if following == u:
            break
        before, last, u = u, f, following
    return math.exp(u)


def _wanted(
    jobs: FloatArray,
    table: FloatArray,
    order: IntArray,
    position: int,
    total: float,
    cores: float,
    price: float,
    costates: FloatArray,
) -> float:
    """What the jobs up to this place want at a price; the costate of the last is set to what fits it."""
    wanted, worth = 0.0, total - price * cores
    for place in range(position):
        j = order[place]
        i, value = int(jobs[j, CLASS]), float(costates[j])
        row = class_row(table, i)
        k = max(work_demand(table, i, price, value), float(table[row + LEAST]))
        k = min(k, float(table[row + MOST]), cores)
        gain = value * speed(table, i, k) - price * k
        if gain > 0.0:
            wanted += k
            worth -= gain
    j = order[position]
    i = int(jobs[j, CLASS])
    row = class_row(table, i)
    if worth <= 0.0:
        costates[j] = price * table[row + LEAST] / table[row + LEAST_SPEED]
        return wanted
    k = max(demand(table, i, price, worth), float(table[row + LEAST]))
    k = min(k, float(table[row + MOST]), cores)
    costates[j] = (worth + price * k) / speed(table, i, k)
    return wanted + k
