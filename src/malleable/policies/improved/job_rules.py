"""What the simulator runs under a fitted value function: a rule on class counts, or on jobs.

The rules on jobs are GREEDY's, with the weights that the value function gives the classes now. Their table is
that of a rule of GREEDY with weights c. Behind it stand the value table, and which of its classes each class
is. A job weighs what its class does now, in proportion to its own cost. Jobs of a class that cannot all be
served come in order of arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import ANY
from malleable.engine.rule_interface import CLASS, COUNTS, SHARE, Program
from malleable.policies.improved.count_value import (
    COUNT_VALUE,
    NOW,
    improved_rule,
    value_table,
    write_weights,
)
from malleable.policies.rules.class_rules import WORK, job_by_job, one_core_each_fits
from malleable.policies.rules.gears import GEAR, GEAR_TABLE, gear_price, gear_rule, gear_table
from malleable.policies.rules.knapsack import improved_whole
from malleable.policies.rules.market import MARKET, WIDTHS, market_jobs_table
from malleable.policies.rules.market_rules import greedy_integer_rule, greedy_jobs_rule, greedy_price
from malleable.theory.market import GreedyBuyers, cost_unit

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, Need
    from malleable.model import Workload
    from malleable.policies.improved.count_value import Value


def shares_in_time(workload: Workload, cores: float) -> bool:
    """Whether classes that are served in part share their cores in time, as the fit has it."""
    return not workload.restricted and one_core_each_fits(workload.speedups, cores)


def program(workload: Workload, cores: float, value: Value, need: Need) -> Program:
    """The rule on class counts; on jobs where that is needed, or one core is not the least width of a class.

    A class that gets less than a core per job shares its cores in time; with exponential sizes that is worth
    as much as any other order. Where cores cannot be shared in time, and where jobs count with weights or
    speedups of their own, the earliest of a class have theirs.
    """
    arriving = need.arrivals(workload)
    values = value_table(arriving, cores, value)
    if shares_in_time(workload, cores) and not need.by_job:
        return Program(improved_rule, values, COUNTS, SHARE)
    if shares_in_time(workload, cores) and not (need.whole or need.weighed or need.own):
        return Program(improved_shares_rule, values, sharing=True, price=_cleared)
    if workload.restricted:
        gears = _joined(workload, gear_table(workload, cores, WORK, "c"), values, need)
        return Program(improved_gears_rule, gears, whole=True, price=gear_price, weighs="c")
    rule = improved_integer_rule if need.whole else improved_jobs_rule
    table = improved_jobs_table(workload, cores, values, need)
    return Program(rule, table, price=greedy_price, weighs="c", to_whole=improved_whole)


def _cleared(rows: FloatArray, table: FloatArray, out: FloatArray) -> float:  # noqa: ARG001
    own = int(table[1])
    return float(table[own + COUNT_VALUE.CLEARED] * table[own + COUNT_VALUE.UNIT])


def improved_jobs_table(workload: Workload, cores: float, values: FloatArray, need: Need = ANY) -> FloatArray:
    """The table of the rules for any widths."""
    integer = GreedyBuyers(workload.speedups, np.ones(len(workload.classes)), integer=True)
    table = market_jobs_table(workload, cores, "c", buyers=integer if need.whole else None)
    # Classes that look alike weigh differently here.
    first = int(table[1]) + len(MARKET) + WIDTHS.TWIN
    table[first :: len(WIDTHS)][: len(workload.classes)] = np.arange(len(workload.classes))
    return _joined(workload, table, values, need)


def _joined(workload: Workload, table: FloatArray, values: FloatArray, need: Need) -> FloatArray:
    """The table of GREEDY's rule, that of the values, and for each class which of those fitted it is."""
    values, classes = values.copy(), len(workload.classes)
    unit = 1.0 / (need.arrivals(workload).total_rate * cost_unit(workload.holding_costs))
    values[int(values[1]) + COUNT_VALUE.UNIT] = unit
    fitted = np.arange(classes) if need.own is None else need.own.of_class
    return np.concatenate([table, values, fitted, [float(len(values)), float(classes)]])


improved_shares_rule = job_by_job(improved_rule)
"""The class rule, job by job, on the value table: a class that is served in part shares in time."""


def improved_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Any widths."""
    _weigh(jobs, cores, table, int(table[1]) + len(MARKET) + WIDTHS.RATE, len(WIDTHS))
    greedy_jobs_rule(jobs, cores, table, out)


def improved_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Whole cores."""
    _weigh(jobs, cores, table, int(table[1]) + len(MARKET) + WIDTHS.RATE, len(WIDTHS))
    greedy_integer_rule(jobs, cores, table, out)


def improved_gears_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Restricted widths."""
    _weigh(jobs, cores, table, len(GEAR_TABLE) + GEAR.RATE, len(GEAR))
    gear_rule(jobs, cores, table, out)


def _weigh(jobs: FloatArray, cores: float, table: FloatArray, first: int, columns: int) -> None:
    """Write what a unit of cost weighs now, of each class, into the table of GREEDY's rule."""
    end = table.shape[0] - 2
    length, classes = int(table[end]), int(table[end + 1])
    values, fitted = table[end - classes - length : end - classes], table[end - classes : end]
    own, m = int(values[1]), int(values[0])
    counts = np.zeros(m)
    for j in range(jobs.shape[0]):
        counts[int(fitted[int(jobs[j, CLASS])])] += 1.0
    write_weights(counts, cores, values)
    rows = own + len(COUNT_VALUE)
    for row in range(classes):
        i = int(fitted[row])
        # The merit is c/c_max · μ · s(k_e)/k_e, so this is the weight over c/c_max.
        rate, entry = values[rows + NOW.RATE * m + i], values[rows + NOW.ENTRY * m + i]
        over = rate * entry / values[rows + NOW.MERIT * m + i]
        weight = max(values[rows + NOW.WEIGHT * m + i], 0.0)
        table[first + columns * row] = weight * over * values[own + COUNT_VALUE.UNIT]
