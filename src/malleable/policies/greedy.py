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
from malleable.policies.base import FIFO, ClassProgram, Decision, JobProgram, MarketRule
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
from malleable.policies.rules.market_rules import greedy_integer_rule, greedy_jobs_rule, reported_price
from malleable.theory.market import GreedyBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


@dataclass(frozen=True)
class Greedy(MarketRule):
    """GREEDY: maximise the weighted rate of work; weight is 1, mu, c, cmu or c/x."""

    needs = "speedups; mean sizes with weight mu or cmu, work left with c/x"

    weight: Literal["1", "mu", "c", "cmu", "c/x", 1] = "1"

    shy: ClassVar[bool] = False
    """Whether ties go to the less parallelizable job."""

    def check(self) -> None:
        object.__setattr__(self, "weight", str(self.weight))

    @property
    def weighs(self) -> str:
        return str(self.weight)

    def decision(self, workload: Workload, cores: float, *, integer: bool) -> Decision:
        weight = str(self.weight)
        if workload.restricted:
            return Decision(gear_rule, gear_table(workload, cores, WORK, weight), gear_price, whole=True)
        if integer:
            buyers = GreedyBuyers(workload.speedups, np.ones(len(workload.classes)), integer=True)
            table = market_jobs_table(workload, cores, weight, shy=self.shy, buyers=buyers)
            return Decision(greedy_integer_rule, table)
        return Decision(greedy_jobs_rule, market_jobs_table(workload, cores, weight, shy=self.shy))

    def price_of(self, rows: FloatArray, table: FloatArray, out: FloatArray) -> float | None:
        return reported_price(rows, table, out, WORK)

    def whole_widths(self, rows: FloatArray, table: FloatArray, out: FloatArray, cores: float) -> FloatArray:
        return improved_whole(rows, table, out, cores)

    def buyers(self, workload: Workload) -> GreedyBuyers:
        if self.weight == "c/x":
            raise UnsupportedError(
                "greedy with weight c/x looks at remaining sizes, so it has no equation in the counts",
                "use weight=cmu",
            )
        return GreedyBuyers(workload.speedups, class_weights(workload, str(self.weight)))

    def program(self, workload: Workload, cores: float) -> ClassProgram | JobProgram:
        speedups = workload.speedups
        if not (one_core_each_fits(speedups, cores) and self._all_tie(workload)):
            table = market_jobs_table(workload, cores, str(self.weight), shy=self.shy)
            return JobProgram(greedy_jobs_rule, table)
        weights = self.buyers(workload).weights
        closed = newton_table(speedups, weights)
        if closed is not None:
            return ClassProgram(newton_rule, closed, FIFO)
        return ClassProgram(greedy_rule, market_table(speedups, weights, cores), FIFO)

    def _all_tie(self, workload: Workload) -> bool:
        """Whether jobs on one core each are worth the same, so that only their arrival tells them apart."""
        if self.weight == "c/x":
            return False
        second_core = {float(s(2.0)) for s in workload.speedups} if self.shy else {0.0}
        return len(second_core) == 1 and len(set(self.buyers(workload).weights.tolist())) == 1
