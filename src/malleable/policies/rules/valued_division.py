"""Divide the cores so that Σ w_j s_j(k_j) is largest, every job having a weight of its own: GREEDY, quickly.

For power laws, Amdahl's and the universal scalability law, which are strictly concave and start at one core.
At a price l a job with w < l is not served, and the others buy the k ≥ 1 at which w·s′(k) = l. Of the jobs in
order of their weight the longest prefix is served that clears at a price at which its last job is worth a
core; `greedy_job_rules` does the same for all speedups.

For the first two laws k is a function of the price, which the jobs of a class share, times one of w. So a
price costs as many powers as there are classes, not jobs. Plain functions that the engine compiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, inlined
from malleable.engine.speedup_table import AMDAHL, POWER, PREAMBLE, ROW, USL, peak, work_demand
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.price_search import next_log_price, secant_slope
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

STEEPEST = 0.95
"""Exponents above this are left to `work_demand`, which minds overflow."""
LEAST_WEIGHT = 1e-10
"""Weights below this share of the largest are raised to it."""
SLACK, SETTLED = 1e-10, 1e-14
"""Share of the cores up to which a market clears; what is missing goes to all alike."""
LOWEST = -60.0
"""The lowest log price looked at, the largest weight being 1."""
DIRECT, SHARED, SHIFTED = range(3)
"""How a class's demand is found: by `work_demand`, as a factor times a power, or that less a constant."""
# Lines of `forms`, one column per class.
FORM, EXPONENT, SHIFT, LEVEL = range(4)
FORM_LINES = 4


def has_smooth_speedups(jobs: FloatArray, table: FloatArray) -> bool:
    """Whether all jobs have speedups that `divide` can deal with."""
    for j in range(jobs.shape[0]):
        code = int(table[PREAMBLE + ROW * int(jobs[j, CLASS])])
        if code not in (POWER, AMDAHL, USL):
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
    forms, factors = np.empty((FORM_LINES, int(table[0]))), np.empty(size)
    _set_forms(jobs, table, weights, forms, factors)
    order = _by_weight(weights)
    few, many = 1, min(size, math.floor(cores + DUST)) + 1
    trial = many - 1
    while many - few > 1:
        price = float(weights[order[trial - 1]])
        if _total(jobs, table, weights, forms, factors, order, trial, price, out) <= cores * (1.0 + DUST):
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    _clear(jobs, table, weights, forms, factors, order, few, cores, out)
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
        row = PREAMBLE + ROW * i
        code, a = int(table[row]), float(table[row + 1])
        forms[FORM, i] = DIRECT
        if code == POWER and a <= STEEPEST:
            forms[FORM, i], forms[EXPONENT, i], forms[SHIFT, i] = SHARED, 1.0 / (1.0 - a), 0.0
        elif code == AMDAHL:
            forms[FORM, i], forms[EXPONENT, i], forms[SHIFT, i] = SHIFTED, 0.5, (1.0 - a) / a
    for j in range(jobs.shape[0]):
        i = int(jobs[j, CLASS])
        a = float(table[PREAMBLE + ROW * i + 1])
        factors[j] = 0.0
        if forms[FORM, i] == SHARED:
            factors[j] = (weights[j] * a) ** forms[EXPONENT, i]
        elif forms[FORM, i] == SHIFTED:
            factors[j] = math.sqrt(weights[j] * (1.0 - a)) / a


def _total(
    jobs: FloatArray,
    table: FloatArray,
    weights: FloatArray,
    forms: FloatArray,
    factors: FloatArray,
    order: IntArray,
    served: int,
    price: float,
    out: FloatArray,
) -> float:
    """What the first jobs want at a price, each into `out`, and the sum."""
    for i in range(forms.shape[1]):
        if forms[FORM, i] != DIRECT:
            forms[LEVEL, i] = price ** -forms[EXPONENT, i]
    total = 0.0
    for position in range(served):
        j = order[position]
        i = int(jobs[j, CLASS])
        if forms[FORM, i] == DIRECT:
            k = max(work_demand(table, i, price, float(weights[j])), 1.0)
        else:
            k = max(factors[j] * forms[LEVEL, i] - forms[SHIFT, i], 1.0)
        out[j] = k
        total += k
    return total


def _clear(
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
    low, high = -math.inf, math.log(float(weights[order[served - 1]]))
    u, slope, before, last = high, -1.5, math.nan, math.inf
    total = 0.0
    for _ in range(200):
        total = _total(jobs, table, weights, forms, factors, order, served, math.exp(u), out)
        if abs(total - cores) <= SLACK * cores:
            break
        f = math.log(total / cores)
        if f > 0.0:
            low = u
        else:
            high = u
        slope = secant_slope(slope, u, f, before, last)
        following = next_log_price(u, -f / slope, f, last, low, high, SETTLED, 0.0, 8.0, LOWEST, high)
        if following == u:
            break
        before, last, u = u, f, following
    if total > served:
        part = (cores - served) / (total - served)
        for position in range(served):
            out[order[position]] = 1.0 + (out[order[position]] - 1.0) * part
