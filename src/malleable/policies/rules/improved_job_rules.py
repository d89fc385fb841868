"""`wham-improved` job by job: GREEDY's rules, with the weights that the value function gives the classes now.

A table is that of a rule of GREEDY with weights c, and behind it the value table with its length as the last
number. A job weighs what its class does now, in proportion to its own cost. Jobs of a class that cannot all
be served come in order of arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS
from malleable.policies.rules import gear_table as gears
from malleable.policies.rules import market_groups as groups
from malleable.policies.rules.gear_rule import gear_rule
from malleable.policies.rules.greedy_job_rules import greedy_integer_rule, greedy_jobs_rule
from malleable.policies.rules.improved_rule import improved_rule
from malleable.policies.rules.value_table import ENTRY, HEADER, MERIT, RATE, UNIT, WEIGHT, write_weights
from malleable.theory.market import GreedyBuyers, cost_unit

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

GEAR_RATE, GEAR_HEADER, GEAR_COLUMNS = gears.RATE, gears.HEADER, gears.COLUMNS
GROUP_RATE, GROUP_HEADER, GROUP_COLUMNS = groups.RATE, groups.HEADER, groups.WIDTH_COLUMNS


def improved_jobs_table(
    workload: Workload, cores: float, values: FloatArray, *, integer: bool = False
) -> FloatArray:
    """The table of the two rules for any widths."""
    buyers = None
    if integer:
        buyers = GreedyBuyers(workload.speedups, np.ones(len(workload.classes)), integer=True)
    table = groups.market_jobs_table(workload, cores, "c", buyers=buyers)
    # Classes that look alike weigh differently here.
    first = int(table[1]) + GROUP_HEADER + groups.TWIN
    table[first::GROUP_COLUMNS][: len(workload.classes)] = np.arange(len(workload.classes))
    return _joined(workload, table, values)


def improved_gears_table(workload: Workload, cores: float, values: FloatArray) -> FloatArray:
    """The table of the rule for restricted widths."""
    return _joined(workload, gears.gear_table(workload, cores, groups.WORK, "c"), values)


def _joined(workload: Workload, table: FloatArray, values: FloatArray) -> FloatArray:
    values = values.copy()
    values[int(values[1]) + UNIT] = 1.0 / (workload.total_rate * cost_unit(workload.holding_costs))
    return np.concatenate([table, values, [float(len(values))]])


def improved_shares_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The class rule, job by job, on the value table: a class that is served in part shares in time."""
    counts, widths = np.zeros(int(table[0])), np.zeros(int(table[0]))
    for j in range(jobs.shape[0]):
        counts[int(jobs[j, CLASS])] += 1.0
    improved_rule(counts, cores, table, widths)
    for j in range(jobs.shape[0]):
        out[j] = widths[int(jobs[j, CLASS])]


def improved_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Any widths."""
    _weigh(jobs, cores, table, int(table[1]) + GROUP_HEADER + GROUP_RATE, GROUP_COLUMNS)
    greedy_jobs_rule(jobs, cores, table, out)


def improved_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Whole cores."""
    _weigh(jobs, cores, table, int(table[1]) + GROUP_HEADER + GROUP_RATE, GROUP_COLUMNS)
    greedy_integer_rule(jobs, cores, table, out)


def improved_gears_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Restricted widths."""
    _weigh(jobs, cores, table, GEAR_HEADER + GEAR_RATE, GEAR_COLUMNS)
    gear_rule(jobs, cores, table, out)


def _weigh(jobs: FloatArray, cores: float, table: FloatArray, first: int, columns: int) -> None:
    """Write what a unit of cost weighs now, of each class, into the table of GREEDY's rule."""
    end = table.shape[0] - 1
    values = table[end - int(table[end]) : end]
    own, m = int(values[1]), int(values[0])
    counts = np.zeros(m)
    for j in range(jobs.shape[0]):
        counts[int(jobs[j, CLASS])] += 1.0
    write_weights(counts, cores, values)
    rows = own + HEADER
    for i in range(m):
        # The merit is c/c_max · μ · s(k_e)/k_e, so this is the weight over c/c_max.
        over = values[rows + RATE * m + i] * values[rows + ENTRY * m + i] / values[rows + MERIT * m + i]
        weight = max(values[rows + WEIGHT * m + i], 0.0)
        table[first + columns * i] = weight * over * values[own + UNIT]
