"""The market of single jobs: what WHAM and GREEDY read, and the price at which it clears.

A table starts with the encoded speedups. What follows, from table[1] on, is `Market`, what weights depend on
and where the next search starts, and one row of `Widths` per class.

A market is a small array of `Group`s. Jobs of a class form a group, together with classes that differ in name
or sizes only, so that no class comes before its twin; if weights differ within a group, every job is one.
Plain functions that the engine compiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.engine.speedup_table import demand, encode, most_efficient, peak, speed, work_demand
from malleable.numerics.places import places
from malleable.policies.rules.class_rules import WHAM
from malleable.policies.rules.price_search import HIGHEST, LOWEST, clearing
from malleable.policies.rules.tolerances import DUST, TINY
from malleable.theory.market import FREE, PROHIBITIVE, cost_unit

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray
    from malleable.theory.market import Buyers


class Market(NamedTuple):
    """The numbers of a table that are of no class."""

    PRICE: int
    SLOPE: int
    """The last price, and the slope of demand there: the next search starts from these."""
    BY_COST: int
    BY_SIZE: int
    """Whether weights grow with c, and with 1/x."""
    CLEARED: int
    """The price of the last decision (NaN: it had none)."""


class Widths(NamedTuple):
    """The columns of a class in a table."""

    RATE: int
    """What its jobs weigh per unit of cost."""
    LEAST: int
    MOST: int
    LEAST_SPEED: int
    CONCAVE: int
    TIES: int
    """What settles ties of value, the smaller first."""
    TWIN: int
    """The first class that is like it."""


class Group(NamedTuple):
    """The lines of a market, which has one column per group."""

    CLASS: int
    WEIGHT: int
    COUNT: int
    """Jobs that are served."""
    LOW: int
    HIGH: int
    """Cores of a job at the clearing price, and at its lower neighbour, where demand may be higher."""


MARKET, WIDTHS, GROUP = places(Market), places(Widths), places(Group)


def class_rates(workload: Workload, weight: str) -> FloatArray:
    """What a job of each class weighs per unit of its cost, for weights 1, mu, c, cmu or c/x."""
    return 1.0 / workload.mean_sizes if weight in {"mu", "cmu"} else np.ones(len(workload.classes))


def class_weights(workload: Workload, weight: str) -> FloatArray:
    """What a job of each class weighs; for c/x, before its remaining size divides it."""
    rates = class_rates(workload, weight)
    with np.errstate(over="ignore"):  # the unit of infinite weights is an error
        return workload.holding_costs * rates if "c" in weight else rates


def weight_unit(workload: Workload, weight: str) -> float:
    """The unit of the weights, and so of the prices, of a market of these classes; it keeps them moderate."""
    return cost_unit(class_weights(workload, weight))


def market_jobs_table(
    workload: Workload,
    cores: float,
    weight: str = "c",
    *,
    shy: bool = False,
    buyers: Buyers | None = None,
) -> FloatArray:
    """The table of the rules on single jobs, for weights 1, mu, c, cmu or c/x.

    `shy`: ties go to the less parallelizable job; on whole cores the `buyers` say which widths are of use.
    """
    members = workload.speedups if buyers is None else buyers.speedups.members
    encoded = encode(members, widest=max(cores, 2.0))
    rows = np.zeros((len(members), len(WIDTHS)))
    for i, speedup in enumerate(members):
        least = most_efficient(encoded, i) if buyers is None else float(buyers.least[i])
        rows[i, WIDTHS.LEAST], rows[i, WIDTHS.LEAST_SPEED] = least, speed(encoded, i, least)
        rows[i, WIDTHS.MOST] = peak(encoded, i) if buyers is None else float(buyers.most[i])
        rows[i, WIDTHS.CONCAVE] = float(speedup.concave)
        rows[i, WIDTHS.TIES] = speed(encoded, i, 2.0) if shy else 0.0
    rates = class_rates(workload, weight)
    costs = workload.holding_costs if "c" in weight else np.ones(len(members))
    rows[:, WIDTHS.TWIN] = _twins(workload, costs, rates)
    rows[:, WIDTHS.RATE] = rates / weight_unit(workload, weight)
    own = np.zeros(len(MARKET))
    own[MARKET.PRICE], own[MARKET.SLOPE], own[MARKET.CLEARED] = 1.0, -1.0, np.nan
    own[MARKET.BY_COST], own[MARKET.BY_SIZE] = "c" in weight, weight == "c/x"
    return np.concatenate([encoded, own, rows.ravel()])


def _twins(workload: Workload, costs: FloatArray, rates: FloatArray) -> list[int]:
    """For each class the first one with the same speedup, and the same cost and rate where these count."""
    traits = list(zip(workload.speedups, costs.tolist(), rates.tolist(), strict=True))
    try:
        first: dict[object, int] = {}
        return [first.setdefault(own, i) for i, own in enumerate(traits)]
    except TypeError:  # a user's speedup may not hash
        return [traits.index(own) for own in traits]


def class_row(table: FloatArray, i: int) -> int:
    """Where the row of class i begins."""
    return int(table[1]) + len(MARKET) + len(WIDTHS) * i


def end_of_market(table: FloatArray) -> int:
    """Where the rows of the classes end; a rule that is built on these keeps its own numbers there."""
    return class_row(table, int(table[0]))


def group_jobs(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    member: IntArray,
    queue: IntArray,
    out: FloatArray,
) -> int:
    """Group the jobs, the queue being the order of arrival; the number of groups. Widths start at 0."""
    size, groups, own = int(jobs.shape[0]), int(table[0]), int(table[1])
    table[own + MARKET.CLEARED] = np.nan
    for g in range(groups):
        market[GROUP.CLASS, g], market[GROUP.WEIGHT, g], market[GROUP.COUNT, g] = g, 0.0, 0.0
    alike = table[own + MARKET.BY_SIZE] == 0.0
    for j in range(size):
        queue[j], out[j] = j, 0.0
        i = int(table[class_row(table, int(jobs[j, CLASS])) + WIDTHS.TWIN])
        member[j] = i
        weight = weight_of(jobs, table, j, i)
        alike = alike and (market[GROUP.COUNT, i] == 0.0 or market[GROUP.WEIGHT, i] == weight)
        market[GROUP.WEIGHT, i] = weight
        market[GROUP.COUNT, i] += 1.0
    if alike:
        return groups
    for j in range(size):
        i = int(table[class_row(table, int(jobs[j, CLASS])) + WIDTHS.TWIN])
        market[GROUP.CLASS, j], market[GROUP.WEIGHT, j] = i, weight_of(jobs, table, j, i)
        market[GROUP.COUNT, j], member[j] = 1.0, j
    return size


def weight_of(jobs: FloatArray, table: FloatArray, j: int, i: int) -> float:
    """What job j, of class i, weighs in the market."""
    own = int(table[1])
    weight = float(jobs[j, WEIGHT]) if table[own + MARKET.BY_COST] != 0.0 else 1.0
    weight *= float(table[class_row(table, i) + WIDTHS.RATE])
    if table[own + MARKET.BY_SIZE] == 0.0:
        return weight
    return weight / max(float(jobs[j, REMAINING]), TINY)


def count_served(market: FloatArray, groups: int, member: IntArray, queue: IntArray, served: int) -> None:
    """How many of the first `served` jobs of the queue are in each group."""
    for g in range(groups):
        market[GROUP.COUNT, g] = 0.0
    for position in range(served):
        market[GROUP.COUNT, member[queue[position]]] += 1.0


def cores_needed(table: FloatArray, market: FloatArray, groups: int) -> float:
    """Cores for the least width of every job counted."""
    total = 0.0
    for g in range(groups):
        row = class_row(table, int(market[GROUP.CLASS, g]))
        total += market[GROUP.COUNT, g] * table[row + WIDTHS.LEAST]
    return total


def least_widths_that_fit(
    jobs: FloatArray, table: FloatArray, queue: IntArray, cores: float
) -> tuple[int, float]:
    """How many least widths fit one after the other, and what is left."""
    used = 0.0
    for position in range(queue.shape[0]):
        need = table[class_row(table, int(jobs[queue[position], CLASS])) + WIDTHS.LEAST]
        if used + need > cores + DUST:
            return position, cores - used
        used += need
    return queue.shape[0], cores - used


def value_of(table: FloatArray, market: FloatArray, g: int) -> float:
    """The price at which a job of the group is just worth serving: w·s(k_e)/k_e."""
    row = class_row(table, int(market[GROUP.CLASS, g]))
    return float(market[GROUP.WEIGHT, g] * table[row + WIDTHS.LEAST_SPEED] / table[row + WIDTHS.LEAST])


def excess(of: Any, price: float) -> float:
    """Total demand at a price, less the cores; the demand of each group is left in the market's line LOW."""
    table, market, groups, cores, kind = of
    rows = class_row(table, 0)
    total = -cores
    for g in range(groups):
        count = float(market[GROUP.COUNT, g])
        if count > 0.0:
            i, weight = int(market[GROUP.CLASS, g]), float(market[GROUP.WEIGHT, g])
            wish = demand(table, i, price, weight) if kind == WHAM else work_demand(table, i, price, weight)
            row = rows + len(WIDTHS) * i
            wish = min(max(wish, float(table[row + WIDTHS.LEAST])), float(table[row + WIDTHS.MOST]))
            market[GROUP.LOW, g] = wish
            total += count * wish
    return float(total)


_clear = clearing(excess)


def clear_groups(
    table: FloatArray, market: FloatArray, groups: int, cores: float, slack: float, kind: int
) -> float:
    """Find the price at which the jobs counted want the cores, up to `slack`.

    The quantities at the price found are left in the line LOW, those at its lower neighbour in HIGH. Where no
    price has that total these differ by a jump; otherwise they are the same.
    """
    rows, own, of = class_row(table, 0), int(table[1]), (table, market, groups, cores, kind)
    needed = most = 0.0
    for g in range(groups):
        if market[GROUP.COUNT, g] > 0.0:
            row = rows + len(WIDTHS) * int(market[GROUP.CLASS, g])
            needed += market[GROUP.COUNT, g] * table[row + WIDTHS.LEAST]
            most += market[GROUP.COUNT, g] * table[row + WIDTHS.MOST]
    if needed >= cores - slack or most <= cores:
        limit = WIDTHS.LEAST if needed >= cores - slack else WIDTHS.MOST
        _demand_limit(table, market, groups, limit, GROUP.LOW)
        _demand_limit(table, market, groups, limit, GROUP.HIGH)
        return PROHIBITIVE if limit == WIDTHS.LEAST else FREE
    start, slope = math.log(float(table[own + MARKET.PRICE])), float(table[own + MARKET.SLOPE])
    low, high, slope = _clear(of, cores, slack, start, slope, -math.inf, math.inf)
    price = math.exp(min(high, HIGHEST))
    table[own + MARKET.PRICE], table[own + MARKET.SLOPE] = price, slope
    if low < high:
        excess(of, math.exp(max(low, LOWEST)))
    for g in range(groups):
        market[GROUP.HIGH, g] = market[GROUP.LOW, g]
    if low < high < math.inf:
        excess(of, math.exp(high))
    elif low < high:
        _demand_limit(table, market, groups, WIDTHS.LEAST, GROUP.LOW)
    return min(price, PROHIBITIVE)


def _demand_limit(table: FloatArray, market: FloatArray, groups: int, limit: int, line: int) -> None:
    """Let all groups want the least or the most that their classes can use."""
    for g in range(groups):
        market[line, g] = table[class_row(table, int(market[GROUP.CLASS, g])) + limit]
