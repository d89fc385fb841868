"""GREEDY on the costates of the jobs present, as if no more came: the rules of `policies.smartfill`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT, inlined
from malleable.engine.speedup_table import speed
from malleable.policies.rules.costates import set_costates
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.valued_jobs import share_by_value, share_whole_by_value
from malleable.policies.rules.wham_job_rules import wham_integer_rule, wham_jobs_rule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

CROWD = 4.0
"""Jobs per core from which on the recursion, which takes the square of their number, is not worth its time:
c/x first, on one core each."""


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
