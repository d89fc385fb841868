"""GREEDY on the costates of the jobs present, as if no more came: the rules of `policies.smartfill`.

A costate is what a unit of a job's work costs if nothing more arrives; this is the recursion of
`theory.clearing`, compiled. Jobs are numbered from the last to finish to the first. The costate of the k-th
depends on those before it and on nothing else, not on sizes. So what was found at the last event is kept in
the table, by the jobs' own numbers, and the recursion starts at the first job whose place has changed: when
the job that finishes first has left nothing is to be done.

The k-th costate does not change, to first order, when its price is a little off (its derivative is what
demand exceeds the cores by): a price with half of the digits gives all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.rule_interface import CLASS, IDENTITY, REMAINING, WEIGHT, inlined
from malleable.engine.speedup_table import demand, speed, work_demand
from malleable.numerics.places import places
from malleable.policies.rules.market import WIDTHS, class_row, end_of_market
from malleable.policies.rules.market_rules import wham_integer_rule, wham_jobs_rule
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.own_weights import share_by_value, share_whole_by_value
from malleable.policies.rules.price_search import clearing

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray


class Kept(NamedTuple):
    """What the table keeps of the last event, and behind it number and costate of each job."""

    CORES: int
    JOBS: int
    RESERVATION: int
    """The price at which cores that the jobs do not use are let (`policies.clearing`); 0 for SmartFill."""


KEPT = places(Kept)
CROWD = 4.0
"""Jobs per core from which on the recursion, which takes the square of their number, is not worth its time:
c/x first, on one core each."""
ROOM = 256
"""Jobs that are kept."""
SLACK, SETTLED = 1e-8, 1e-13
"""Share of the cores by which demand may be off, and difference of log prices that ends a search."""


def smartfill_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Real-valued widths."""
    if jobs.shape[0] >= CROWD * cores:
        wham_jobs_rule(jobs, cores, table, out)
    else:
        share_by_value(jobs, table, _costates(jobs, table, cores), cores, out)


def smartfill_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Whole cores."""
    if jobs.shape[0] >= CROWD * cores:
        wham_integer_rule(jobs, cores, table, out)
    else:
        share_whole_by_value(jobs, table, _costates(jobs, table, cores), cores, out)


def costates_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """What a unit of each job's work costs, in place of its cores."""
    found = _costates(jobs, table, cores)
    for j in range(jobs.shape[0]):
        out[j] = found[j]


@inlined
def _costates(jobs: FloatArray, table: FloatArray, cores: float) -> FloatArray:
    """What a unit of each job's work costs.

    The order of finishing is guessed: large x/(s·√c) finish last, s being the speed on an equal share of the
    cores. With N ≥ n it is Smith's rule, large x/c last.
    """
    size = jobs.shape[0]
    keys, costates = np.empty(size), np.empty(size)
    width = max(cores / size, 1.0)
    for j in range(size):
        cost = float(jobs[j, WEIGHT])
        urgency = cost if size >= cores else math.sqrt(cost) * speed(table, int(jobs[j, CLASS]), width)
        keys[j] = -jobs[j, REMAINING] / urgency
    set_costates(jobs, table, ascending(keys), cores, costates)
    return costates


def set_costates(
    jobs: FloatArray, table: FloatArray, order: IntArray, cores: float, costates: FloatArray
) -> None:
    """The costate of each job, for an order from the last to finish to the first."""
    own = end_of_market(table)
    known = int(table[own + KEPT.JOBS]) if table[own + KEPT.CORES] == cores else 0
    total, same, reservation = 0.0, True, float(table[own + KEPT.RESERVATION])
    price = math.nan
    for position in range(order.shape[0]):
        j = order[position]
        total += float(jobs[j, WEIGHT])
        at = own + len(KEPT) + 2 * position
        same = same and position < known and table[at] == jobs[j, IDENTITY]
        if same:
            costates[j] = table[at + 1]
            continue
        price = _next_costate(jobs, table, order, position, total, cores, reservation, price, costates)
        if position < ROOM:
            table[at], table[at + 1] = jobs[j, IDENTITY], costates[j]
    table[own + KEPT.CORES], table[own + KEPT.JOBS] = cores, min(order.shape[0], ROOM)


def _next_costate(
    jobs: FloatArray,
    table: FloatArray,
    order: IntArray,
    position: int,
    total: float,
    cores: float,
    reservation: float,
    guess: float,
    costates: FloatArray,
) -> float:
    """The costate of the job at this place of the order, and the price at which it clears the market."""
    # What the cores would bring if all were let at the reservation price counts as a cost of the jobs'.
    total += reservation * cores
    market = (jobs, table, order, position, total, cores, costates)
    if _excess(market, reservation) <= cores * SLACK:
        return math.nan
    high = math.log(total / cores)
    start = min(math.log(guess), high) if guess > 0.0 else high - 1.0
    # At `high` the last job wants nothing, and the others no more than they did before it.
    _, price, _ = _clear(market, cores, SLACK * cores, start, -1.5, -math.inf, high)
    return math.exp(price)


def _excess(market: Any, price: float) -> float:
    """What the jobs up to this place want at a price, less the cores; the last costate is set to fit it."""
    jobs, table, order, position, total, cores, costates = market
    wanted, worth = -cores, total - price * cores
    for place in range(position):
        j = order[place]
        i, value = int(jobs[j, CLASS]), float(costates[j])
        row = class_row(table, i)
        k = max(work_demand(table, i, price, value), float(table[row + WIDTHS.LEAST]))
        k = min(k, float(table[row + WIDTHS.MOST]), cores)
        gain = value * speed(table, i, k) - price * k
        if gain > 0.0:
            wanted += k
            worth -= gain
    j = order[position]
    i = int(jobs[j, CLASS])
    row = class_row(table, i)
    if worth <= 0.0:
        costates[j] = price * table[row + WIDTHS.LEAST] / table[row + WIDTHS.LEAST_SPEED]
        return float(wanted)
    k = max(demand(table, i, price, worth), float(table[row + WIDTHS.LEAST]))
    k = min(k, float(table[row + WIDTHS.MOST]), cores)
    costates[j] = (worth + price * k) / speed(table, i, k)
    return float(wanted + k)


_clear = clearing(_excess, SETTLED)
