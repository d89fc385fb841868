"""GREEDY: the allocation that maximises Σ w_j s_j(k_j) right now.

Berg et al. (2017) maximise the rate of departures (w = μ), the paper the rate of work (w = 1); weights cμ
and c/x are the natural weighted forms. A job is served when the price is at most its value w·s(k_e)/k_e on
its most efficient width, so with unequal weights GREEDY may leave a job without cores even while N < n.
With equal weights all jobs tie when N ≥ n; earlier arrivals go first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from malleable.errors import UnsupportedError
from malleable.policies.base import ANY, COUNTS, FIFO, Need, Policy, Program
from malleable.policies.rules.class_rules import (
    WORK,
    greedy_rule,
    market_table,
    newton_rule,
    newton_table,
    one_core_each_fits,
)
from malleable.policies.rules.gears import gear_price, gear_rule, gear_table
from malleable.policies.rules.knapsack import improved_whole
from malleable.policies.rules.market import class_weights, market_jobs_table
from malleable.policies.rules.market_rules import greedy_integer_rule, greedy_jobs_rule, greedy_price
from malleable.theory.market import GreedyBuyers

if TYPE_CHECKING:
    from malleable.model import Workload


@dataclass(frozen=True)
class Greedy(Policy):
    """GREEDY: maximise the weighted rate of work; weight is 1, mu, c, cmu or c/x."""

    needs = "speedups; mean sizes with weight mu or cmu, work left with c/x"

    weight: Literal["1", "mu", "c", "cmu", "c/x", 1] = "1"

    shy: ClassVar[bool] = False
    """Whether ties go to the less parallelizable job."""

    def check(self) -> None:
        object.__setattr__(self, "weight", str(self.weight))

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        weight, speedups = str(self.weight), workload.speedups
        if not need.by_job and one_core_each_fits(speedups, cores) and self._all_tie(workload):
            return self._on_counts(workload, cores)
        if workload.restricted:
            table = gear_table(workload, cores, WORK, weight)
            return Program(gear_rule, table, whole=True, price=gear_price, weighs=weight)
        if need.whole:
            buyers = GreedyBuyers(speedups, np.ones(len(speedups)), integer=True)
            table = market_jobs_table(workload, cores, weight, shy=self.shy, buyers=buyers)
            rule = greedy_integer_rule
        else:
            rule, table = greedy_jobs_rule, market_jobs_table(workload, cores, weight, shy=self.shy)
        return Program(rule, table, price=greedy_price, weighs=weight, to_whole=improved_whole)

    def _on_counts(self, workload: Workload, cores: float) -> Program:
        weights = self.buyers(workload).weights
        closed = newton_table(workload.speedups, weights)
        if closed is not None:
            return Program(newton_rule, closed, COUNTS, FIFO)
        return Program(greedy_rule, market_table(workload.speedups, weights, cores), COUNTS, FIFO)

    def buyers(self, workload: Workload) -> GreedyBuyers:
        if self.weight == "c/x":
            raise UnsupportedError(
                "greedy with weight c/x looks at remaining sizes, so it has no equation in the counts",
                "use weight=cmu",
            )
        return GreedyBuyers(workload.speedups, class_weights(workload, str(self.weight)))

    def _all_tie(self, workload: Workload) -> bool:
        """Whether jobs on one core each are worth the same, so that only their arrival tells them apart."""
        if self.weight == "c/x":
            return False
        second_core = {float(s(2.0)) for s in workload.speedups} if self.shy else {0.0}
        return len(second_core) == 1 and len(set(self.buyers(workload).weights.tolist())) == 1
