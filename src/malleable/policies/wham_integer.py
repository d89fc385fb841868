"""WHAM on whole cores: steps along each class's integer hull in order of their price.

Every job gets its least width, then the step with the highest ν(k→k') = c(s'−s)/(k's − ks') is taken by all
jobs of its class while the cores last, and by as many as they allow at the end: the earliest,
who may be any size, so that the policy stays blind to sizes while N < n. Taking "the smallest price with
total ≤ n" literally would leave up to N_i − 1 cores idle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from malleable.policies.wham import Wham
from malleable.theory.market import WhittleBuyers

if TYPE_CHECKING:
    from malleable.contracts import Allocation
    from malleable.engine.rule_interface import JobProgram
    from malleable.model import Workload
    from malleable.model.jobs import Jobs


@dataclass(frozen=True)
class WhamInteger(Wham):
    """WHAM that gives whole cores only."""

    needs = "speedups; work left where jobs outnumber cores"

    whole_cores: ClassVar[bool] = True

    def allocate_part(
        self,
        jobs: Jobs,
        cores: float,
        machine: float,
        *,
        integer: bool = True,  # noqa: ARG002 - it gives no others
    ) -> Allocation:
        return super().allocate_part(jobs, cores, machine, integer=True)

    def buyers(self, workload: Workload) -> WhittleBuyers:
        return WhittleBuyers(workload.speedups, workload.holding_costs, integer=True)

    def program(self, workload: Workload, cores: float) -> JobProgram:
        return self.job_program(workload, cores)
