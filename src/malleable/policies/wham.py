"""WHAM, the WHittle Allocation for Malleable jobs (the paper's second mean-field-optimal policy).

    N ≥ n  the n jobs with the largest c/x get one core each
    N < n  one price l for all jobs: a class-i job gets g_i(l) = argmin_{k≥1} (c_i + l·k)/s_i(k),
           with l such that Σ N_i g_i(l) = n

The paper prints the threshold for one core as l ≥ f_i(1); it must be l ≥ c_i f_i(1), as the definition of
g_i above implies. Speedups with a linear or super-linear start come in blocks of their most efficient width
k_e, ordered by c·s(k_e)/(k_e·x), wherever the paper's N stands for the sum of these blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from malleable.policies.base import INDEX, ClassProgram, Decision, JobProgram, MarketRule
from malleable.policies.rules.class_rules import (
    WHAM,
    market_table,
    one_core_each_fits,
    quadratic_rule,
    quadratic_table,
    wham_rule,
)
from malleable.policies.rules.gears import gear_price, gear_rule, gear_table
from malleable.policies.rules.market import market_jobs_table
from malleable.policies.rules.market_rules import reported_price, wham_integer_rule, wham_jobs_rule
from malleable.theory.market import WhittleBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


@dataclass(frozen=True)
class Wham(MarketRule):
    """WHAM: one price for all; largest c/x first when jobs outnumber cores. Mean-field optimal."""

    needs = "speedups; work left where jobs outnumber cores"

    blocking: ClassVar[bool] = False

    def decision(self, workload: Workload, cores: float, *, integer: bool) -> Decision:
        if workload.restricted:
            return Decision(gear_rule, gear_table(workload, cores, WHAM), gear_price, whole=True)
        if integer:
            buyers = WhittleBuyers(workload.speedups, workload.holding_costs, integer=True)
            return Decision(wham_integer_rule, market_jobs_table(workload, cores, buyers=buyers))
        return Decision(wham_jobs_rule, market_jobs_table(workload, cores))

    def price_of(self, rows: FloatArray, table: FloatArray, out: FloatArray) -> float | None:
        return reported_price(rows, table, out, WHAM)

    def buyers(self, workload: Workload) -> WhittleBuyers:
        return WhittleBuyers(workload.speedups, workload.holding_costs)

    def program(self, workload: Workload, cores: float) -> ClassProgram | JobProgram:
        speedups, costs = workload.speedups, workload.holding_costs
        if not one_core_each_fits(speedups, cores):
            return JobProgram(wham_jobs_rule, market_jobs_table(workload, cores))
        closed = quadratic_table(speedups, costs)
        if closed is not None:
            return ClassProgram(quadratic_rule, closed, INDEX)
        return ClassProgram(wham_rule, market_table(speedups, self.buyers(workload).weights, cores), INDEX)
