"""The fluid equation of a class rule that looks at the counts in other ways than through one price.

The rule itself is asked for the cores at any real-valued counts, and differences take the place of formulas.
Such a rule is fitted for a number of cores, so its equation is that of this number: the fixed point and its
stability mean what they do for WHAM, but there is no expansion in 1/n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import optimize

from malleable.engine.rule_interface import SHARE, ClassProgram
from malleable.errors import UnsupportedError
from malleable.theory.fluid import FixedPoint, Fluid
from malleable.theory.market import Clearing

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, Policy
    from malleable.model import Workload

STEP = 1e-5
"""Relative change of a count over which the reaction of the speeds is measured."""
BALANCED = 1e-8
"""Relative difference of what comes and what leaves at a fixed point."""
NO_EXPANSION = "the rule is fitted for this number of cores, so there is no expansion in 1/n"


def fluid_of(workload: Workload, policy: Policy, cores: float) -> Fluid:
    """The fluid equation of a policy: through a price where that says all, else by asking its rule."""
    acting = policy.in_effect(workload, cores)
    return Fluid(workload, acting, cores) if acting.by_price else CountFluid(workload, acting, cores)


class CountFluid(Fluid):
    """The fluid equation of a rule that serves any counts."""

    by_price: ClassVar[bool] = False

    def __init__(self, workload: Workload, policy: Policy, cores: float) -> None:
        super().__init__(workload, policy, cores)
        program = policy.program(workload, self.cores)
        if not isinstance(program, ClassProgram) or program.discipline != SHARE:
            raise UnsupportedError(
                "with these speedups the policy looks at single jobs, so it has no mean-field equation",
                "use concave speedups that start at one core, or simulate",
            )
        self._rule, self._table = _compiled(program.rule), program.table.copy()

    def market(self, jobs: FloatArray, previous: Clearing | None = None) -> Clearing:  # noqa: ARG002 - no search
        widths = np.zeros(len(jobs))
        self._rule(np.ascontiguousarray(jobs, dtype=float), self.cores, self._table, widths)
        return Clearing(np.nan, widths, widths, 0.0)

    def speeds_at(self, jobs: FloatArray) -> FloatArray:
        """The speed of a job of each class."""
        return np.asarray(self.buyers.speedups(self.market(jobs).low))

    def jacobian(self, state: FloatArray, market: Clearing | None = None) -> FloatArray:  # noqa: ARG002
        jobs, reaction = self.by_class(state), []
        for i in range(len(jobs)):
            step = np.zeros(len(jobs))
            step[i] = STEP * max(float(jobs[i]), 1e-3)
            reaction.append((self.speeds_at(jobs + step) - self.speeds_at(jobs - step)) / (2.0 * step[i]))
        slopes, speeds = np.array(reaction).T, self.speeds_at(jobs)
        own = speeds[self.owner, None] * self.generator.T
        return np.asarray(own + self.flow(state)[:, None] * slopes[np.ix_(self.owner, self.owner)])

    def fixed_point(self) -> FixedPoint:
        """Where the work that leaves is the work that comes, looked for around WHAM's fixed point."""
        wham, loads = super().fixed_point(), self.workload.loads

        def unserved(logarithms: FloatArray) -> FloatArray:
            jobs = np.exp(logarithms)
            return np.asarray(jobs * self.speeds_at(jobs) / loads - 1.0)

        found = optimize.root(unserved, np.log(wham.jobs), method="hybr", tol=BALANCED)
        if not np.abs(unserved(found.x)).max() <= 1e2 * BALANCED:
            raise UnsupportedError("no fixed point was found near WHAM's", "simulate, or use wham")
        jobs = np.exp(found.x)
        market = self.market(jobs)
        state = self.work / self.speeds_at(jobs)[self.owner]
        cost = float(self.workload.holding_costs @ jobs) / self.workload.total_rate
        return FixedPoint(state, jobs, market.low, wham.price, cost, market)


def _compiled(rule: Any) -> Any:
    """Machine code of the rule where that is allowed: trajectories ask it thousands of times."""
    from malleable.engine.compiling import CLASS_RULE, can_compile, compiled  # noqa: PLC0415 - loads numba

    return compiled(rule, CLASS_RULE) if can_compile() else rule
