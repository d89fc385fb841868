"""WHAM, the WHittle Allocation for Malleable jobs (the paper's second mean-field-optimal policy).

    N ≥ n  the n jobs with the largest c/x get one core each
    N < n  one price l for everybody: a class-i job gets g_i(l) = argmin_{k≥1} (c_i + l·k)/s_i(k),
           with l such that Σ N_i g_i(l) = n

The paper prints the threshold for one core as l ≥ f_i(1); it must be l ≥ c_i f_i(1), as the definition of
g_i above implies. Speedups with a linear or super-linear start come in blocks of their most efficient width
k_e, ordered by c·s(k_e)/(k_e·x), wherever the paper's N stands for the sum of these blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.contracts import Allocation, Policy
from malleable.engine.rule_interface import INDEX, ClassProgram, JobProgram
from malleable.policies.rules.class_markets import (
    has_closed_forms,
    market_table,
    one_core_each_fits,
    quadratic_rule,
    quadratic_table,
    wham_rule,
)
from malleable.policies.rules.market_allocation import grouped, in_costs, serve_by_index, usable
from malleable.policies.rules.market_groups import market_jobs_table
from malleable.policies.rules.market_jobs import wham_jobs_rule
from malleable.theory.market import WhittleBuyers

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.model.jobs import Jobs


@dataclass(frozen=True)
class Wham(Policy):
    """WHAM: one price for all; largest c/x first when jobs outnumber cores. Mean-field optimal."""

    blocking: ClassVar[bool] = False

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        cores = usable(cores, integer=integer)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        groups = grouped(jobs, jobs.weight, by_class=not jobs.own_weights)
        buyers = WhittleBuyers(groups.speedups, groups.weights, integer=integer)
        gain = buyers.weights * buyers.speedups(buyers.least) / buyers.least
        with np.errstate(divide="ignore", over="ignore"):
            index = gain[groups.member] / jobs.remaining
        return in_costs(serve_by_index(buyers, groups.member, jobs, index, cores), buyers.unit)

    def buyers(self, workload: Workload) -> WhittleBuyers:
        return WhittleBuyers(workload.speedups, workload.holding_costs)

    def program(self, workload: Workload, cores: float) -> ClassProgram | JobProgram:
        speedups, costs = workload.speedups, workload.holding_costs
        if not one_core_each_fits(speedups, cores):
            return JobProgram(wham_jobs_rule, market_jobs_table(workload, cores))
        if has_closed_forms(speedups):
            return ClassProgram(quadratic_rule, quadratic_table(speedups, costs), INDEX)
        return ClassProgram(wham_rule, market_table(speedups, self.buyers(workload).weights, cores), INDEX)
