"""GREEDY on the costates of the jobs present, as if no more came: the rules of `smartfill` and `clearing`.

A costate is what a unit of a job's work costs if nothing more arrives; this is the recursion of
`theory.clearing`, compiled. Jobs are numbered from the last to finish to the first. The costate of the k-th
depends on those before it and on nothing else, not on sizes. So what was found at the last event is kept in
the table, by the jobs' own numbers, and the recursion starts at the first job whose place has changed: when
the job that finishes first has left nothing is to be done.

The k-th costate does not change, to first order, when its price is a little off (its derivative is what
demand exceeds the cores by): a price with half of the digits gives all of them.

Where demand has a closed form it is a function of the price, which the jobs of a class share, times one of
the costate. So a price costs as many powers as there are classes, not jobs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.rule_interface import CLASS, IDENTITY, REMAINING, WEIGHT, inlined
from malleable.engine.speedup_table import COLUMNS, FAMILIES, PREAMBLE, demand, speed, work_demand
from malleable.numerics.places import places
from malleable.policies.rules.market import WIDTHS, class_row, end_of_market
from malleable.policies.rules.market_rules import wham_integer_rule, wham_jobs_rule
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.own_weights import STEEPEST, share_by_value, share_whole_by_value
from malleable.speedups.base import ROW
from malleable.speedups.power import Power

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray


class Kept(NamedTuple):
    """What the table keeps of the last event, and behind it a `Place` for each job."""

    CORES: int
    JOBS: int
    RESERVATION: int
    """The price at which cores that the jobs do not use are let (`policies.clearing`); 0 for SmartFill."""
    ORDER: int
    """How the order of finishing is guessed: one of `SHARE`, `ALONE`, `BEST`."""
    POWER: int
    """The power of the weight in the order `ALONE`."""


class Place(NamedTuple):
    """What is kept of a job: its number, its costate, the factor of its demand, and the price found last."""

    JOB: int
    COSTATE: int
    FACTOR: int
    PRICE: int


KEPT, PLACE = places(Kept), places(Place)
SHARE, ALONE, BEST = 0, 1, 2
"""Orders of finishing, see `_set_keys`; `BEST` takes the one of them that promises the least cost."""
FEW = 8
"""Jobs up to which more than one order is looked at; with more of them the order matters less, and takes
longer."""
CROWD = 4.0
"""Jobs per core from which on the recursion, which takes the square of their number, is not worth its time:
c/x first, on one core each."""
ROOM = 256
"""Jobs that are kept."""
SLACK, PRECISE, STEPS, START = 1e-6, 1e-11, 100, 0.4
"""Share of the cores by which demand may be off, and of a costate by which that may be; the most prices asked
about, and the part of the way from the lowest to the highest at which the first of them lies."""
POWER_LAW = FAMILIES.index(Power)
"""The code of power laws, of which the gain at a price needs no power."""


class Form(NamedTuple):
    """The lines of the forms, one column per class."""

    EXPONENT: int
    """0 where demand has no closed form."""
    SHIFT: int
    LEVEL: int
    """The power of the price of now."""
    PROFIT: int
    """Of a power law, the gain over what the cores cost; else 0."""
    LEAST: int
    MOST: int
    """Widths of use."""


class Aside(NamedTuple):
    """What the search for a price needs to know beside the excess."""

    WORTH: int
    """How far the last job is from being worth its least width at the price; 0 if it is."""
    SPEED: int
    """Its speed."""


FORM, ASIDE = places(Form), places(Aside)


def room() -> FloatArray:
    """What a table keeps, empty: SmartFill's."""
    return np.zeros(len(KEPT) + len(PLACE) * ROOM)


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
    """What a unit of each job's work costs, for the order of finishing that the table asks for."""
    size, own = jobs.shape[0], end_of_market(table)
    keys, costates = np.empty(size), np.empty(size)
    forms = np.empty((len(FORM), int(table[0])))
    _set_forms(table, cores, forms)
    kind, power = int(table[own + KEPT.ORDER]), float(table[own + KEPT.POWER])
    if kind == BEST and 1 < size <= FEW:
        _set_least_costates(jobs, table, cores, forms, keys, costates)
    else:
        _set_keys(jobs, table, cores, kind, power, keys)
        set_costates(jobs, table, ascending(keys), cores, forms, costates)
    return costates


@inlined
def _set_least_costates(
    jobs: FloatArray,
    table: FloatArray,
    cores: float,
    forms: FloatArray,
    keys: FloatArray,
    costates: FloatArray,
) -> None:
    """The costates of the order with the least Σ costate·x, which bounds what any order costs."""
    size = jobs.shape[0]
    least, trial = math.inf, np.empty(size)
    for number in range(4):
        _set_keys(jobs, table, cores, SHARE if number == 0 else ALONE, 0.5 * (number - 1), keys)
        set_costates(jobs, table, ascending(keys), cores, forms, trial)
        total = 0.0
        for j in range(size):
            total += trial[j] * jobs[j, REMAINING]
        if total < least * (1.0 - PRECISE):
            least = total
            for j in range(size):
                costates[j] = trial[j]


def _set_keys(
    jobs: FloatArray, table: FloatArray, cores: float, kind: int, power: float, keys: FloatArray
) -> None:
    """Keys that ascend from the last to finish to the first.

    `ALONE`: large x/(s(k)·c^power) finish last, k being the width of a job that has the machine for itself.
    `SHARE`: large x/(s(k)·√c), k being an equal share of the cores; with N ≥ n it is Smith's rule, x/c.
    """
    size = jobs.shape[0]
    price = float(table[end_of_market(table) + KEPT.RESERVATION])
    width = max(cores / size, 1.0)
    for j in range(size):
        i, urgency = int(jobs[j, CLASS]), float(jobs[j, WEIGHT])
        if kind == ALONE:
            k = min(demand(table, i, price, urgency), float(table[class_row(table, i) + WIDTHS.MOST]), cores)
            urgency = urgency**power * speed(table, i, max(k, 1.0))
        elif size < cores:
            urgency = math.sqrt(urgency) * speed(table, i, width)
        keys[j] = -jobs[j, REMAINING] / urgency


def _set_forms(table: FloatArray, cores: float, forms: FloatArray) -> None:
    """How the demand of each class depends on the price."""
    for i in range(forms.shape[1]):
        encoded, row = PREAMBLE + COLUMNS * i, class_row(table, i)
        exponent = float(table[encoded + ROW.EXPONENT])
        forms[FORM.EXPONENT, i] = exponent if exponent <= STEEPEST else 0.0
        forms[FORM.SHIFT, i] = table[encoded + ROW.SHIFT]
        power = int(table[encoded + ROW.FAMILY]) == POWER_LAW and forms[FORM.EXPONENT, i] > 1.0
        forms[FORM.PROFIT, i] = 1.0 / (exponent - 1.0) if power else 0.0
        forms[FORM.LEAST, i] = table[row + WIDTHS.LEAST]
        forms[FORM.MOST, i] = min(float(table[row + WIDTHS.MOST]), cores)


def set_costates(
    jobs: FloatArray,
    table: FloatArray,
    order: IntArray,
    cores: float,
    forms: FloatArray,
    costates: FloatArray,
) -> None:
    """The costate of each job, for an order from the last to finish to the first."""
    own, size = end_of_market(table), order.shape[0]
    known = int(table[own + KEPT.JOBS]) if table[own + KEPT.CORES] == cores else 0
    total, same, reservation = 0.0, True, float(table[own + KEPT.RESERVATION])
    values, factors, member = np.empty(size), np.empty(size), np.empty(size, np.int64)
    market = (table, forms, values, factors, member, cores, np.empty(2))
    price = math.nan
    for position in range(size):
        j = order[position]
        total += float(jobs[j, WEIGHT])
        member[position] = int(jobs[j, CLASS])
        at = own + len(KEPT) + len(PLACE) * position
        same = same and position < known and table[at + PLACE.JOB] == jobs[j, IDENTITY]
        if same:
            values[position], factors[position] = table[at + PLACE.COSTATE], table[at + PLACE.FACTOR]
        else:
            guess = table[at + PLACE.PRICE] if position < known else price
            price = _next_costate(market, position, total, reservation, guess)
            factors[position] = _factor(table, forms, member[position], values[position])
            if position < ROOM:
                table[at + PLACE.JOB], table[at + PLACE.PRICE] = jobs[j, IDENTITY], price
                table[at + PLACE.COSTATE], table[at + PLACE.FACTOR] = values[position], factors[position]
        costates[j] = values[position]
    table[own + KEPT.CORES], table[own + KEPT.JOBS] = cores, min(size, ROOM)


def _factor(table: FloatArray, forms: FloatArray, i: int, value: float) -> float:
    """What multiplies the power of the price in the demand of a job of this costate."""
    exponent = float(forms[FORM.EXPONENT, i])
    if exponent == 0.0:
        return 0.0
    factor = float(table[PREAMBLE + COLUMNS * i + ROW.FACTOR])
    return factor * float(math.sqrt(value) if exponent == 0.5 else value**exponent)


def _next_costate(market: Any, position: int, total: float, reservation: float, guess: float) -> float:
    """Set the costate of the job at this place of the order; the price at which it clears the market.

    The costate is the maximum over prices of a concave function, whose slope is what demand exceeds the cores
    by, over the job's speed. Where demand jumps it has a corner, to which its tangents lead.
    """
    values, cores, aside = market[2], market[5], market[6]
    # What the cores would bring if all were let at the reservation price counts as a cost of the jobs'.
    total += reservation * cores
    low, high = reservation, total / cores
    more = _excess(market, position, total, low)
    if more <= cores * SLACK:
        return math.nan
    left, left_slope = values[position], more / aside[ASIDE.SPEED]
    right, right_slope = -math.inf, 0.0
    price = guess if low < guess < high else low + START * (high - low)
    last, last_more, slow = low, more, False
    for _ in range(STEPS):
        more = _excess(market, position, total, price)
        worth = aside[ASIDE.WORTH]
        if abs(more) <= cores * SLACK or 0.0 < -worth <= total * PRECISE:
            break
        if worth < 0.0:
            high, right = price, -math.inf
            following = price - worth / more
        else:
            slope = more / aside[ASIDE.SPEED]
            if more > 0.0:
                low, left, left_slope = price, values[position], slope
            else:
                high, right, right_slope = price, values[position], slope
            following, most = _corner(low, left, left_slope, high, right, right_slope)
            if most <= max(left, right) * (1.0 + PRECISE):
                values[position] = max(left, right)
                break
            if not slow and more != last_more:
                following = price - more * (price - last) / (more - last_more)
        if not low < following < high:
            following = 0.5 * (low + high)
        slow = not slow and abs(more) > 0.5 * abs(last_more)
        last, last_more, price = price, more, following
    return price


def _corner(
    low: float, left: float, left_slope: float, high: float, right: float, right_slope: float
) -> tuple[float, float]:
    """Where two tangents meet, and how high; half-way, and no height, if there is none on the right."""
    if right == -math.inf:
        return 0.5 * (low + high), math.inf
    at = (right - left + left_slope * low - right_slope * high) / (left_slope - right_slope)
    return at, left + left_slope * (at - low)


def _excess(market: Any, position: int, total: float, price: float) -> float:
    """What the jobs up to this place want at a price, less the cores; the last costate is set to fit it."""
    table, forms, values, factors, member, cores, aside = market
    for i in range(forms.shape[1]):
        exponent = forms[FORM.EXPONENT, i]
        if exponent == 0.5:
            forms[FORM.LEVEL, i] = 1.0 / math.sqrt(price) if price > 0.0 else math.inf
        elif exponent > 0.0:
            forms[FORM.LEVEL, i] = price**-exponent if price > 0.0 else math.inf
    wanted, worth = -cores, total - price * cores
    for place in range(position):
        i, value = member[place], values[place]
        least, most = forms[FORM.LEAST, i], forms[FORM.MOST, i]
        if forms[FORM.EXPONENT, i] == 0.0:
            k = work_demand(table, i, price, value)
        else:
            k = factors[place] * forms[FORM.LEVEL, i] - forms[FORM.SHIFT, i]
        if forms[FORM.PROFIT, i] > 0.0 and least < k < most:
            gain = price * k * forms[FORM.PROFIT, i]
        else:
            k = min(max(k, least), most)
            gain = value * speed(table, i, k) - price * k
        if gain > 0.0:
            wanted += k
            worth -= gain
    i = member[position]
    least, most = forms[FORM.LEAST, i], forms[FORM.MOST, i]
    if worth > 0.0:
        k = min(max(demand(table, i, price, worth), least), most)
    elif -least <= wanted <= 0.0:
        values[position] = price * least / table[class_row(table, i) + WIDTHS.LEAST_SPEED]
        aside[ASIDE.WORTH] = worth
        return float(wanted)
    else:
        k = least
    aside[ASIDE.WORTH], aside[ASIDE.SPEED] = 0.0, speed(table, i, k)
    values[position] = (worth + price * k) / aside[ASIDE.SPEED]
    return float(wanted + k)
