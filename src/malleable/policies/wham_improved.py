"""WHAM, improved: GREEDY on a value function that was fitted to WHAM, for jobs whose sizes are not known.

WHAM is optimal as n → ∞. On few cores it loses up to 16 % to the best policy that is blind to sizes, most of
it because it never lets a cheap job wait while cores suffice for all. Policy improvement repairs that: fit
the value function h of the class counts (`improved.count_value_fit`), and in every state divide the cores so
that Σ_i μ_i [h(x) − h(x − e_i)] · (speed of class i) is largest (`improved.count_value`). Two such steps
come within 0.1 % of the optimum nearly everywhere; see "Better than WHAM on few cores" in the docs.

The fit assumes Poisson arrivals and exponential sizes of the given means; the policy runs on any. It is made
once for each workload and number of cores, and where a check sees no gain beyond doubt, the policy is WHAM.
Where sizes are not exponential it is WHAM, too, if it would lose at a load higher by the factor `headroom`; 1
trusts the load, and gains more where it is high.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Ge

from malleable.policies.base import ANY, Need, Policy, Program
from malleable.policies.base.paired_trial import HEADROOM
from malleable.policies.improved.job_rules import program as improved_program
from malleable.policies.improved.plan import Plan, plan
from malleable.policies.wham import Wham

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.theory.market import WhittleBuyers


@dataclass(frozen=True)
class WhamImproved(Policy):
    """WHAM after three steps of policy improvement, for unknown sizes; WHAM where a trial sees no gain."""

    needs = "speedups, rates, laws of sizes; work left where jobs outnumber cores"

    sharing: ClassVar[bool] = True
    blocking: ClassVar[bool] = False
    by_price: ClassVar[bool] = False
    headroom: Annotated[float, Ge(1)] = HEADROOM

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        value = self.plan(need.arrivals(workload), cores).value
        if value is None:
            return Wham().program(workload, cores, need)
        return improved_program(workload, cores, value, need)

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
