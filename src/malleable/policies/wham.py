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

from malleable.policies.base import ANY, COUNTS, INDEX, Need, Policy, Program
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
from malleable.policies.rules.market_rules import wham_integer_rule, wham_jobs_rule, wham_price
from malleable.theory.market import WhittleBuyers

if TYPE_CHECKING:
    from malleable.model import Workload


@dataclass(frozen=True)
class Wham(Policy):
    """WHAM: one price for all; largest c/x first when jobs outnumber cores. Mean-field optimal."""

    needs = "speedups; work left where jobs outnumber cores"

    blocking: ClassVar[bool] = False

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        whole = need.whole or self.whole_cores
        if not (need.by_job or self.whole_cores) and one_core_each_fits(workload.speedups, cores):
            return self._on_counts(workload, cores)
        if workload.restricted:
            table = gear_table(workload, cores, WHAM)
            return Program(gear_rule, table, whole=True, price=gear_price, weighs="c")
        if whole:
            buyers = WhittleBuyers(workload.speedups, workload.holding_costs, integer=True)
            table = market_jobs_table(workload, cores, buyers=buyers)
            return Program(wham_integer_rule, table, whole=True, price=wham_price, weighs="c")
        table = market_jobs_table(workload, cores)
        return Program(wham_jobs_rule, table, price=wham_price, weighs="c")

    def _on_counts(self, workload: Workload, cores: float) -> Program:
        closed = quadratic_table(workload.speedups, workload.holding_costs)
        if closed is not None:
            return Program(quadratic_rule, closed, COUNTS, INDEX)
        table = market_table(workload.speedups, self.buyers(workload).weights, cores)
        return Program(wham_rule, table, COUNTS, INDEX)

    def buyers(self, workload: Workload) -> WhittleBuyers:
        return WhittleBuyers(workload.speedups, workload.holding_costs, integer=self.whole_cores)
