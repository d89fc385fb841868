"""GREEDY: the allocation that maximises Σ w_j s_j(k_j) right now.

Berg et al. (2017) maximise the rate of departures (w = μ), the paper the rate of work (w = 1); weights cμ
and c/x are the natural weighted forms. A job is served when the price is at most its value w·s(k_e)/k_e on
its most efficient width, so with unequal weights GREEDY may leave a job without cores even while N < n.
With equal weights all jobs tie when N ≥ n; earlier arrivals go first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from malleable.contracts import Allocation, FloatArray, Policy
from malleable.engine.rule_interface import FIFO, ClassProgram, JobProgram
from malleable.errors import UnsupportedError
from malleable.policies.rules.class_markets import (
    greedy_rule,
    has_closed_forms,
    market_table,
    newton_rule,
    newton_table,
    one_core_each_fits,
)
from malleable.policies.rules.market_allocation import (
    Groups,
    grouped,
    improved_whole,
    in_costs,
    serve_by_price,
    usable,
)
from malleable.policies.rules.market_groups import market_jobs_table
from malleable.policies.rules.market_jobs import greedy_jobs_rule
from malleable.theory.market import GreedyBuyers

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.model.jobs import IntArray, Jobs

FINISHING = (1e-100, 1e100)
"""The range of weights c/x, within that of prices: jobs about to finish count alike."""


@dataclass(frozen=True)
class Greedy(Policy):
    """GREEDY: maximise the weighted rate of work; weight is 1, mu, c, cmu or c/x."""

    weight: Literal["1", "mu", "c", "cmu", "c/x", 1] = "1"

    shy: ClassVar[bool] = False
    """Whether ties go to the less parallelizable job."""

    def check(self) -> None:
        object.__setattr__(self, "weight", str(self.weight))

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        cores = usable(cores, integer=integer)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        by_class = self.weight in {"1", "mu"} or (self.weight != "c/x" and not jobs.own_weights)
        groups = grouped(jobs, self._job_weights(jobs), by_class=by_class and jobs.own_speedups is None)
        buyers = GreedyBuyers(groups.speedups, groups.weights, integer=integer)
        value = (buyers.weights * buyers.speedups(buyers.least) / buyers.least)[groups.member]
        order = partial(self.order, jobs, groups, value)
        found = serve_by_price(buyers, groups.member, jobs, order, value, cores)
        found = improved_whole(buyers, groups.member, jobs, found, cores) if integer else found
        return in_costs(found, buyers.unit)

    def order(self, jobs: Jobs, groups: Groups, value: FloatArray) -> IntArray:  # noqa: ARG002 - see GREEDY*
        """Who is served first: the most valuable, then the earliest."""
        return jobs.by(value)

    def _job_weights(self, jobs: Jobs) -> FloatArray:
        if self.weight == "1":
            return np.ones(len(jobs))
        if self.weight == "c":
            return jobs.weight
        if self.weight == "c/x":
            with np.errstate(divide="ignore", over="ignore"):
                return np.clip(jobs.weight / jobs.remaining, *FINISHING)
        rate = 1.0 / jobs.workload.mean_sizes[jobs.class_index]
        with np.errstate(over="ignore"):
            return rate if self.weight == "mu" else jobs.weight * rate

    def buyers(self, workload: Workload) -> GreedyBuyers:
        costs, rates = workload.holding_costs, 1.0 / workload.mean_sizes
        with np.errstate(over="ignore"):
            weights = {"1": np.ones_like(costs), "mu": rates, "c": costs, "cmu": costs * rates}.get(
                str(self.weight)
            )
        if weights is None:
            raise UnsupportedError(
                "greedy with weight c/x looks at remaining sizes, so it has no equation in the counts",
                "use weight=cmu",
            )
        return GreedyBuyers(workload.speedups, weights)

    def program(self, workload: Workload, cores: float) -> ClassProgram | JobProgram:
        speedups = workload.speedups
        if not (one_core_each_fits(speedups, cores) and self._all_tie(workload)):
            table = market_jobs_table(workload, cores, str(self.weight), shy=self.shy)
            return JobProgram(greedy_jobs_rule, table)
        weights = self.buyers(workload).weights
        if has_closed_forms(speedups):
            return ClassProgram(newton_rule, newton_table(speedups, weights), FIFO)
        return ClassProgram(greedy_rule, market_table(speedups, weights, cores), FIFO)

    def _all_tie(self, workload: Workload) -> bool:
        """Whether jobs on one core each are worth the same, so that only their arrival tells them apart."""
        if self.weight == "c/x":
            return False
        second_core = {float(s(2.0)) for s in workload.speedups} if self.shy else {0.0}
        return len(second_core) == 1 and len(set(self.buyers(workload).weights.tolist())) == 1
