"""GREEDY when every job has a weight of its own, on real or whole cores.

The weights here are what a unit of each job's work is worth at this moment (`fitted`, `smartfill_rule`). All
speedups, and whole cores, have the rules of `market_rules`. Where all are strictly concave from one core on
there is a faster way (`divide`): at a price l a job with w < l is not served, and the others buy the k ≥ 1 at
which w·s′(k) = l. Of the jobs in order of their weight the longest prefix is served that clears at a price at
which its last job is worth a core. Where demand has a closed form, k is a function of the price, which the
jobs of a class share, times one of w. So a price costs as many powers as there are classes, not jobs.

Plain functions that the engine compiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.rule_interface import CLASS, WEIGHT, inlined
from malleable.engine.speedup_table import COLUMNS, PREAMBLE, peak, work_demand
from malleable.numerics.places import places
from malleable.policies.rules.market_rules import greedy_integer_rule, greedy_jobs_rule
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.price_search import clearing
from malleable.policies.rules.tolerances import DUST
from malleable.speedups.base import ROW

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

STEEPEST = 20.0
"""Forms with a larger exponent are left to `work_demand`, which minds overflow."""
LEAST_WEIGHT = 1e-10
"""Weights below this share of the largest are raised to it."""
SLACK, SETTLED = 1e-10, 1e-14
"""Share of the cores up to which a market clears; what is missing goes to all alike."""


class Form(NamedTuple):
    """The lines of `forms`, one column per class."""

    EXPONENT: int
    """0 where there is no closed form."""
    SHIFT: int
    LEVEL: int
    """The power of the price of now."""


FORM = places(Form)


def share_by_value(
    jobs: FloatArray, table: FloatArray, values: FloatArray, cores: float, out: FloatArray
) -> None:
    """Real-valued widths that maximise Σ value·s(k); the values are changed."""
    if has_smooth_speedups(jobs, table):
        divide(jobs, table, values, cores, out)
    else:
        greedy_jobs_rule(_weighted(jobs, values), cores, table, out)


def share_whole_by_value(
    jobs: FloatArray, table: FloatArray, values: FloatArray, cores: float, out: FloatArray
) -> None:
    """The same on whole cores."""
    greedy_integer_rule(_weighted(jobs, values), cores, table, out)


def _weighted(jobs: FloatArray, values: FloatArray) -> FloatArray:
    """The jobs with these values as weights."""
    rows = jobs.copy()
    for j in range(rows.shape[0]):
        rows[j, WEIGHT] = values[j]
    return rows


def has_smooth_speedups(jobs: FloatArray, table: FloatArray) -> bool:
    """Whether all jobs have speedups that `divide` can deal with."""
    for j in range(jobs.shape[0]):
        if table[PREAMBLE + COLUMNS * int(jobs[j, CLASS]) + ROW.SMOOTH] == 0.0:
            return False
    return True


def divide(jobs: FloatArray, table: FloatArray, weights: FloatArray, cores: float, out: FloatArray) -> None:
    """Cores into `out`; the weights are changed to shares of the largest."""
    size, most = jobs.shape[0], 0.0
    for j in range(size):
        most = max(most, weights[j])
    for j in range(size):
        out[j] = 0.0
        weights[j] = max(weights[j] / most, LEAST_WEIGHT)
    forms, factors = np.empty((len(FORM), int(table[0]))), np.empty(size)
    _set_forms(jobs, table, weights, forms, factors)
    order = _by_weight(weights)
    few, many = 1, min(size, math.floor(cores + DUST)) + 1
    trial = many - 1
    while many - few > 1:
        market = (jobs, table, weights, forms, factors, order, trial, cores, out)
        if _excess(market, float(weights[order[trial - 1]])) <= cores * DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    _share(jobs, table, weights, forms, factors, order, few, cores, out)
    for position in range(few, size):
        out[order[position]] = 0.0


@inlined
def _by_weight(weights: FloatArray) -> IntArray:
    """Job positions by decreasing weight, earlier arrivals first among equals."""
    keys = np.empty(weights.shape[0])
    for j in range(weights.shape[0]):
        keys[j] = -weights[j]
    return ascending(keys)


@inlined
def _set_forms(
    jobs: FloatArray, table: FloatArray, weights: FloatArray, forms: FloatArray, factors: FloatArray
) -> None:
    """How each class's demand depends on the price, and each job's factor."""
    for i in range(forms.shape[1]):
        row = PREAMBLE + COLUMNS * i
        exponent = float(table[row + ROW.EXPONENT])
        forms[FORM.EXPONENT, i] = exponent if exponent <= STEEPEST else 0.0
        forms[FORM.SHIFT, i] = table[row + ROW.SHIFT]
    for j in range(jobs.shape[0]):
        i = int(jobs[j, CLASS])
        exponent, factor = float(forms[FORM.EXPONENT, i]), float(table[PREAMBLE + COLUMNS * i + ROW.FACTOR])
        if exponent == 0.5:
            factors[j] = factor * math.sqrt(weights[j])
        else:
            factors[j] = factor * weights[j] ** exponent


def _excess(market: Any, price: float) -> float:
    """What the first jobs want at a price, each into `out`, less the cores."""
    jobs, table, weights, forms, factors, order, served, cores, out = market
    for i in range(forms.shape[1]):
        if forms[FORM.EXPONENT, i] != 0.0:
            forms[FORM.LEVEL, i] = price ** -forms[FORM.EXPONENT, i]
    total = 0.0
    for position in range(served):
        j = order[position]
        i = int(jobs[j, CLASS])
        if forms[FORM.EXPONENT, i] == 0.0:
            k = max(work_demand(table, i, price, float(weights[j])), 1.0)
        else:
            k = max(factors[j] * forms[FORM.LEVEL, i] - forms[FORM.SHIFT, i], 1.0)
        out[j] = k
        total += k
    return float(total - cores)


_clear = clearing(_excess, SETTLED)


def _share(
    jobs: FloatArray,
    table: FloatArray,
    weights: FloatArray,
    forms: FloatArray,
    factors: FloatArray,
    order: IntArray,
    served: int,
    cores: float,
    out: FloatArray,
) -> None:
    """Widths of the first jobs at the price at which they want all cores; what rounding leaves is shared."""
    most = 0.0
    for position in range(served):
        j = order[position]
        out[j] = peak(table, int(jobs[j, CLASS]))
        most += out[j]
    if most <= cores:
        return
    high = math.log(float(weights[order[served - 1]]))
    market = (jobs, table, weights, forms, factors, order, served, cores, out)
    _clear(market, cores, SLACK * cores, high, -1.5, -math.inf, math.inf)
    total = 0.0
    for position in range(served):
        total += out[order[position]]
    if total > served:
        part = (cores - served) / (total - served)
        for position in range(served):
            out[order[position]] = 1.0 + (out[order[position]] - 1.0) * part
