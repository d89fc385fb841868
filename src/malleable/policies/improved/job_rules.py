"""What the simulator runs under a fitted value function: a rule on class counts, or on jobs.

The rules on jobs are GREEDY's, with the weights that the value function gives the classes now. Their table is
that of a rule of GREEDY with weights c, and behind it the value table with its length as the last number. A
job weighs what its class does now, in proportion to its own cost. Jobs of a class that cannot all be served
come in order of arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, SHARE, ClassProgram, JobProgram
from malleable.policies.improved.count_value import COUNT_VALUE, NOW, value_table, write_weights
from malleable.policies.improved.improved_rule import improved_rule
from malleable.policies.rules.class_rules import WORK, one_core_each_fits
from malleable.policies.rules.gears import GEAR, GEAR_TABLE, gear_rule, gear_table
from malleable.policies.rules.market import MARKET, WIDTHS, market_jobs_table
from malleable.policies.rules.market_rules import greedy_jobs_rule
from malleable.theory.market import cost_unit

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.policies.improved.count_value import Value


def shares_in_time(workload: Workload, cores: float) -> bool:
    """Whether classes that are served in part share their cores in time, as the fit has it."""
    return not workload.restricted and one_core_each_fits(workload.speedups, cores)


def class_program(workload: Workload, cores: float, value: Value) -> ClassProgram | JobProgram:
    """The rule on class counts, or on jobs where one core is not the least width of every class.

    A class that gets less than a core per job shares its cores in time; with exponential sizes that is worth
    as much as any other order.
    """
    if not shares_in_time(workload, cores):
        return job_program(workload, cores, value)
    return ClassProgram(improved_rule, value_table(workload, cores, value), SHARE)


def job_program(workload: Workload, cores: float, value: Value) -> JobProgram:
    """The same on single jobs. Where cores cannot be shared in time, the earliest of a class have theirs."""
    values = value_table(workload, cores, value)
    if workload.restricted:
        gears = gear_table(workload, cores, WORK, "c")
        return JobProgram(improved_gears_rule, _joined(workload, gears, values))
    if shares_in_time(workload, cores):
        return JobProgram(improved_shares_rule, values, sharing=True)
    return JobProgram(improved_jobs_rule, improved_jobs_table(workload, cores, values))


def improved_jobs_table(workload: Workload, cores: float, values: FloatArray) -> FloatArray:
    """The table of the rule for any widths."""
    table = market_jobs_table(workload, cores, "c")
    # Classes that look alike weigh differently here.
    first = int(table[1]) + len(MARKET) + WIDTHS.TWIN
    table[first :: len(WIDTHS)][: len(workload.classes)] = np.arange(len(workload.classes))
    return _joined(workload, table, values)


def _joined(workload: Workload, table: FloatArray, values: FloatArray) -> FloatArray:
    values = values.copy()
    unit = 1.0 / (workload.total_rate * cost_unit(workload.holding_costs))
    values[int(values[1]) + COUNT_VALUE.UNIT] = unit
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
    _weigh(jobs, cores, table, int(table[1]) + len(MARKET) + WIDTHS.RATE, len(WIDTHS))
    greedy_jobs_rule(jobs, cores, table, out)


def improved_gears_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Restricted widths."""
    _weigh(jobs, cores, table, len(GEAR_TABLE) + GEAR.RATE, len(GEAR))
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
    rows = own + len(COUNT_VALUE)
    for i in range(m):
        # The merit is c/c_max · μ · s(k_e)/k_e, so this is the weight over c/c_max.
        rate, entry = values[rows + NOW.RATE * m + i], values[rows + NOW.ENTRY * m + i]
        over = rate * entry / values[rows + NOW.MERIT * m + i]
        weight = max(values[rows + NOW.WEIGHT * m + i], 0.0)
        table[first + columns * i] = weight * over * values[own + COUNT_VALUE.UNIT]
