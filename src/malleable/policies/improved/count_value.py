"""A fitted value function of class counts in plain numbers, and GREEDY on what work is worth under it now.

The value of class counts x with N = Σ x jobs on n cores, in two regimes:

    h(x) = q·x + ½ xᵀP x + r·u + ½ uᵀR u,        u = x·min(1, n/N).

As long as cores suffice u is x; beyond, only its direction changes. To end a class-i job saves
h(x) − h(x − e_i), and work on it ends it at rate μ_i: its weight is μ_i times that.

One step of policy improvement takes, in every state, the allocation that maximises Σ_i w_i · (speed of class
i) at these weights. That is a market: at price ν a job buys the width that maximises w_i s_i(k) − ν k, and
nothing at all if ν exceeds w_i s_i(k_e)/k_e, its *value*. So classes enter by falling value. Either the
market clears between two values, where demand is continuous but for corners, or at a value, and then that
class shares in time what the others leave.

The table starts with the encoded speedups; what follows, from table[1] on, is written here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.speedup_table import encode, most_efficient, peak, speed, work_demand
from malleable.numerics.places import places
from malleable.policies.rules.price_search import HIGHEST, LOWEST, clearing
from malleable.policies.rules.tolerances import TIGHT

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


class CountValue(NamedTuple):
    """The numbers of a table that are of no class."""

    PRICE: int
    """The last clearing price, from which the next search starts."""
    FITTED_CORES: int
    """The number of cores of the fit."""
    UNIT: int
    """The unit of the weights (cost per unit of time)."""
    TRUSTED: int
    """The crowd up to which the fit is trusted."""
    CLEARED: int
    """The price of the last decision (0 where all jobs have all that helps)."""


class Now(NamedTuple):
    """Rows of one number per class."""

    WEIGHT: int
    """Its weight now (0: priced out)."""
    RANK: int
    """The class in this place of the order by value now."""
    RATE: int
    """μ."""
    MERIT: int
    """c·μ·s(k_e)/k_e."""
    ORDER: int
    """The class in this place of the order by rising merit."""
    LEAST: int
    """The most efficient width k_e."""
    ENTRY: int
    """s(k_e)/k_e."""


COUNT_VALUE, NOW = places(CountValue), places(Now)
ORDERED = 2.0
"""Least widths of all jobs, in multiples of the cores, beyond which classes come in the order of c·μ. Beyond
what is `trusted` they do so on their least widths, as under size-blind WHAM: all cores then work at their
best, and the backlog falls whatever was fitted, so the policy is stable."""
FAINTEST = 1e-3
"""The least weight, as a share of the largest: no job is worth nothing."""
ABOVE = 1.0 + 1e-7
"""By how much a class that must come first comes first."""


class Value(NamedTuple):
    """The coefficients of h, in multiples of the largest holding cost over all arrivals' rate."""

    linear: FloatArray
    quadratic: FloatArray
    crowded_linear: FloatArray
    crowded_quadratic: FloatArray
    trusted: float
    """Up to which crowd h was fitted: cores for the least widths of all jobs, relative to those there are."""


def value_table(workload: Workload, cores: float, value: Value) -> FloatArray:
    """The table of the rules that read a value function."""
    encoded = encode(workload.speedups, widest=max(cores, 2.0))
    m = len(workload.classes)
    rows = np.zeros((len(NOW), m))
    rows[NOW.RATE] = 1.0 / workload.mean_sizes
    rows[NOW.LEAST] = [most_efficient(encoded, i) for i in range(m)]
    rows[NOW.ENTRY] = [speed(encoded, i, rows[NOW.LEAST, i]) / rows[NOW.LEAST, i] for i in range(m)]
    rows[NOW.MERIT] = workload.holding_costs / workload.holding_costs.max() * rows[NOW.RATE] * rows[NOW.ENTRY]
    rows[NOW.ORDER] = np.argsort(rows[NOW.MERIT], kind="stable")
    unit = workload.holding_costs.max() / workload.total_rate
    own = np.zeros(len(COUNT_VALUE))
    own[COUNT_VALUE.PRICE] = 1.0
    own[COUNT_VALUE.FITTED_CORES], own[COUNT_VALUE.UNIT], own[COUNT_VALUE.TRUSTED] = (
        cores,
        unit,
        value.trusted,
    )
    parts = [np.ravel(part) for part in value[:-1]]
    return np.concatenate([encoded, own, rows.ravel(), *parts])


def write_weights(counts: FloatArray, cores: float, table: FloatArray) -> None:
    """The weight of a job of each class in this state, into the table's row WEIGHT."""
    own, m = int(table[1]), len(counts)
    rows, linear = own + len(COUNT_VALUE), own + len(COUNT_VALUE) + len(NOW) * m
    quadratic = linear + m
    beyond = quadratic + m * m
    crowded = beyond + m
    jobs = needed = one = two = 0.0
    for i in range(m):
        jobs += counts[i]
        needed += counts[i] * table[rows + NOW.LEAST * m + i]
        one += table[beyond + i] * counts[i]
        for j in range(m):
            two += counts[i] * table[crowded + m * i + j] * counts[j]
    here = min(1.0, table[own + COUNT_VALUE.FITTED_CORES] / jobs)
    there = min(1.0, table[own + COUNT_VALUE.FITTED_CORES] / max(jobs - 1.0, 1e-9))
    value, largest = here * one + 0.5 * here * here * two, 0.0
    for i in range(m):
        gain = table[linear + i] - 0.5 * table[quadratic + (m + 1) * i]
        mixed = 0.0
        for j in range(m):
            gain += table[quadratic + m * i + j] * counts[j]
            mixed += table[crowded + m * i + j] * counts[j]
        less = two - 2.0 * mixed + table[crowded + (m + 1) * i]
        gain += value - there * (one - table[beyond + i]) - 0.5 * there * there * less
        table[rows + NOW.WEIGHT * m + i] = gain * table[rows + NOW.RATE * m + i]
        if counts[i] > 0.0:
            largest = max(largest, table[rows + NOW.WEIGHT * m + i])
    for i in range(m):
        weight = table[rows + NOW.WEIGHT * m + i] if largest > 0.0 else table[rows + NOW.MERIT * m + i]
        table[rows + NOW.WEIGHT * m + i] = max(weight, FAINTEST * largest)
    crowd = needed / cores
    if crowd >= min(ORDERED, table[own + COUNT_VALUE.TRUSTED]):
        _put_in_order(counts, table, rows, crowd >= table[own + COUNT_VALUE.TRUSTED])


def _put_in_order(counts: FloatArray, table: FloatArray, rows: int, alike: bool) -> None:
    """Let the classes come in the order of c·μ; where they are `alike`, no job widens."""
    m = len(counts)
    highest = 0.0
    for position in range(m):
        i = int(table[rows + NOW.ORDER * m + position])
        if counts[i] > 0.0:
            own = 1.0 if alike else table[rows + NOW.WEIGHT * m + i] * table[rows + NOW.ENTRY * m + i]
            highest = max(own, highest * ABOVE)
            table[rows + NOW.WEIGHT * m + i] = highest / table[rows + NOW.ENTRY * m + i]


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
