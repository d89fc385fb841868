"""WHAM, improved: GREEDY on a value function that was fitted to WHAM, for jobs whose sizes are not known.

WHAM is optimal as n → ∞. On few cores it loses up to 16 % to the best policy that is blind to sizes, most of
it because it never lets a cheap job wait while cores suffice for all. Policy improvement repairs that: fit
the value function h of the class counts (`improved.count_value_fit`), and in every state divide the cores so
that Σ_i μ_i [h(x) − h(x − e_i)] · (speed of class i) is largest (`improved.improved_rule`). Two such steps
come within 0.1 % of the optimum nearly everywhere; see "Better than WHAM on few cores" in the docs.

The fit assumes Poisson arrivals and exponential sizes of the given means; the policy runs on any. It is made
once for each workload and number of cores, and where a check sees no gain beyond doubt, the policy is WHAM.
Where sizes are not exponential it is WHAM, too, if it would lose at a load higher by the factor `headroom`; 1
trusts the load, and gains more where it is high.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from malleable.model import checked_cores
from malleable.policies.base import Allocation, Policy
from malleable.policies.base.paired_trial import HEADROOM
from malleable.policies.greedy import Greedy
from malleable.policies.improved.count_value import COUNT_VALUE, NOW, value_table, write_weights
from malleable.policies.improved.improved_rule import improved_rule
from malleable.policies.improved.job_rules import class_program, job_program, shares_in_time
from malleable.policies.improved.plan import Plan, plan
from malleable.policies.wham import Wham

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.rule_interface import ClassProgram, JobProgram
    from malleable.model import Workload
    from malleable.model.jobs import Jobs
    from malleable.theory.market import WhittleBuyers


@dataclass(frozen=True)
class WhamImproved(Policy):
    """WHAM after three steps of policy improvement, for unknown sizes; WHAM where a trial sees no gain."""

    needs = "speedups, rates, laws of sizes; work left where jobs outnumber cores"

    sharing: ClassVar[bool] = True
    blocking: ClassVar[bool] = False
    by_price: ClassVar[bool] = False
    headroom: Annotated[float, Ge(1)] = HEADROOM

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        """GREEDY at the weights of this moment, on the whole machine."""
        return self.allocate_part(jobs, cores, cores, integer=integer)

    def allocate_part(self, jobs: Jobs, cores: float, machine: float, *, integer: bool = False) -> Allocation:
        """The same on some cores, with the value function of the whole machine.

        A class that is served in part shares in time, but for whole cores, restricted widths, and jobs that
        bring their own weights or speedups: there the earliest of a class come first.
        """
        found = self.plan(jobs.workload, machine)
        if found.value is None:
            return Wham().allocate_part(jobs, cores, machine, integer=integer)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        table = value_table(jobs.workload, checked_cores(machine), found.value)
        counts = np.bincount(jobs.class_index, minlength=len(jobs.workload.classes)).astype(float)
        alike = not jobs.own_weights and jobs.own_speedups is None
        if alike and not integer and shares_in_time(jobs.workload, machine):
            return _by_class(jobs, counts, checked_cores(cores), table)
        weights = _weights(counts, checked_cores(cores), table)[jobs.class_index]
        weights = weights * jobs.weight / jobs.workload.holding_costs[jobs.class_index]
        weighed = replace(jobs, weight=weights, own_weights=True)
        return Greedy(weight="c").allocate_part(weighed, cores, machine, integer=integer)

    def program(self, workload: Workload, cores: float) -> ClassProgram | JobProgram:
        value = self.plan(workload, cores).value
        return Wham().program(workload, cores) if value is None else class_program(workload, cores, value)

    def job_program(self, workload: Workload, cores: float) -> JobProgram:
        value = self.plan(workload, cores).value
        return Wham().job_program(workload, cores) if value is None else job_program(workload, cores, value)

    def buyers(self, workload: Workload) -> WhittleBuyers:
        """Those of WHAM, whose fixed point is where the fluid equation of the improvement is looked for."""
        return Wham().buyers(workload)

    def in_effect(self, workload: Workload, cores: float) -> Policy:
        return Wham() if self.plan(workload, cores).value is None else self

    def notes(self, workload: Workload, cores: float) -> tuple[str, ...]:
        note = self.plan(workload, cores).note
        return (note,) if note else ()

    def plan(self, workload: Workload, cores: float) -> Plan:
        """What was fitted, and what the check found."""
        return plan(workload, cores, self.headroom)


def _by_class(jobs: Jobs, counts: FloatArray, cores: float, table: FloatArray) -> Allocation:
    """The rule of the simulator, on class counts."""
    widths, own = np.zeros(len(counts)), int(table[1])
    improved_rule(counts, cores, table, widths)
    return Allocation(
        widths[jobs.class_index], float(table[own + COUNT_VALUE.CLEARED] * table[own + COUNT_VALUE.UNIT])
    )


def _weights(counts: FloatArray, cores: float, table: FloatArray) -> FloatArray:
    """What a unit of speed is worth to each class now, in cost per unit of time."""
    write_weights(counts, cores, table)
    own, m = int(table[1]), len(counts)
    first = own + len(COUNT_VALUE) + NOW.WEIGHT * m
    return np.asarray(np.maximum(table[first : first + m], 0.0) * table[own + COUNT_VALUE.UNIT])
