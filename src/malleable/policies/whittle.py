"""The discounted Whittle policy, from which the paper derives WHAM by letting the discount rate α go to 0.

Each job is a single-armed bandit that rents cores at price l (`malleable.theory.whittle`): it waits above its
index, αc / min_k k·(e^{αx/s(k)} − 1), and below it takes the width of least discounted cost. The policy sets
the smallest price at which the jobs together want at most n cores.

At its index a job jumps from 0 to one core or, if it is long, to many. The cores that do not suffice for the
next jump would idle, so they are used as follows:

1. The jobs that the clearing price serves are served, equal indices by arrival.
2. The first job left out gets what is left at the price where that little is just worth it to it, if by then
   the served jobs leave it at least one core. (So the block of a speedup with a linear start is split, as
   by WHAM.)
3. Otherwise the price falls on among the served jobs alone until they use all the cores that help them.

With whole cores the widths are rounded down and the rest goes to the steps of highest value, core by core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import Positive, positive
from malleable.contracts import Allocation
from malleable.engine.rule_interface import JobProgram
from malleable.policies.base.job_rule import Decision, JobRule, usable
from malleable.policies.rules.whittle_job_rule import whittle_price, whittle_rule, whittle_table
from malleable.policies.rules.whittle_whole_cores import Bandits, whole_widths

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import Jobs


@dataclass(frozen=True)
class Whittle(JobRule):
    """Discounted Whittle index policy: WHAM before its limit α → 0; `discount` is α, in 1/time."""

    discount: Positive = 0.05

    alternatives: ClassVar[dict[str, Any]] = {"alpha": ("discount", positive("alpha"))}

    def allocate_part(self, jobs: Jobs, cores: float, machine: float, *, integer: bool = False) -> Allocation:
        cores = usable(cores, integer=integer)
        found = super().allocate_part(jobs, cores, usable(machine, integer=integer))
        if not integer or len(jobs) == 0:
            return found
        index = Bandits.of(jobs, np.arange(len(jobs)), self.discount, cores).log_index
        queue = jobs.by(index)[: int(cores) + 1]
        out = np.zeros(len(jobs))
        out[queue] = whole_widths(Bandits.of(jobs, queue, self.discount, cores), found.cores[queue], cores)
        return Allocation(out, found.price)

    def decision(self, workload: Workload, cores: float, *, integer: bool) -> Decision:  # noqa: ARG002
        return Decision(whittle_rule, whittle_table(workload, cores, self.discount))

    def price_of(self, rows: FloatArray, table: FloatArray, out: FloatArray) -> float | None:
        return whittle_price(rows, table, out)

    def program(self, workload: Workload, cores: float) -> JobProgram:
        return JobProgram(whittle_rule, whittle_table(workload, float(cores), self.discount))
