"""Cores by what the work of each job is worth on average, over what may be left of all of them.

`clearing` puts the jobs into the order in which they will finish and values their work by that: what finishes
first is worth most, as all others wait for it. Where sizes are not known the order is not either, and to take
means for sizes makes it certain. Of two jobs of an exponential class one is then given nearly all cores,
though both are alike and the two together would work faster. So the values are found for several outcomes,
and each job has the mean of its values; the cores go where they bring the most of it (GREEDY). With sizes
known that is `clearing` itself. It is the idea of hindsight optimization: to value an action by what it would
be worth if the future were known, averaged over futures.

With four jobs per core or more (`CROWD`) `clearing` serves one core each in the order of means, and this is
not asked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import Allocation, Need
from malleable.engine.rule_interface import REMAINING, WEIGHT
from malleable.model.memoization import memoized
from malleable.policies.base import job_rows
from malleable.policies.base.run_rule import load_rule, run_rule
from malleable.policies.rules.market import MARKET
from malleable.policies.rules.market_rules import greedy_integer_rule
from malleable.policies.rules.smartfill_rule import costates_rule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import Jobs
    from malleable.policies.clearing import Clearing

FEW = 12
"""Jobs up to which a process that has not compiled this finds the values in some milliseconds."""


def divide_by_value(
    policy: Clearing, jobs: Jobs, outcomes: FloatArray, cores: float, machine: float
) -> Allocation:
    """Whole cores for each job; each line of `outcomes` is what may be left of all of them."""
    if len(jobs) > FEW:
        load_machine_code()
    prepared = _table(policy, jobs.workload, math.floor(machine))
    rows, order = job_rows(jobs, jobs.class_index), jobs.order
    values, found = np.zeros(len(jobs)), np.zeros(len(jobs))
    for outcome in outcomes:
        rows[:, REMAINING] = outcome[order]
        run_rule(costates_rule, rows, cores, prepared.copy(), found)
        values += found / len(outcomes)
    rows[:, WEIGHT] = values
    table, widths, out = prepared.copy(), np.zeros(len(jobs)), np.zeros(len(jobs))
    run_rule(greedy_integer_rule, rows, cores, table, widths)
    out[order] = widths
    price = float(table[int(table[1]) + MARKET.CLEARED])
    return Allocation(out, price if price > 0.0 else None)


def load_machine_code() -> None:
    """Compile what `divide_by_value` runs."""
    load_rule(costates_rule)
    load_rule(greedy_integer_rule)


@memoized
def _table(policy: Clearing, workload: Workload, cores: float) -> FloatArray:
    return policy.program(workload, cores, Need(whole=True)).table
