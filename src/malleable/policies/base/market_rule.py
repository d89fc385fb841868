"""Policies that share the cores at one price, which `allocate` reports in the unit of the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from malleable.policies.base.job_rule import JobRule
from malleable.policies.rules.market import class_rates, weight_unit
from malleable.policies.rules.tolerances import TIGHT
from malleable.theory.market import cost_unit

if TYPE_CHECKING:
    from malleable.contracts import Allocation
    from malleable.model.jobs import Jobs


@dataclass(frozen=True)
class MarketRule(JobRule):
    """A policy given by a market rule of `policies.rules`, which leaves the price in its table."""

    @property
    def weighs(self) -> str:
        """What jobs weigh: 1, mu, c, cmu or c/x."""
        return "c"

    def allocate_part(self, jobs: Jobs, cores: float, machine: float, *, integer: bool = False) -> Allocation:
        """Run the rule, in a unit of weight that leaves room for its prices.

        The rule's table has the weights of the classes in such a unit; those that jobs bring have their own.
        """
        unit = standard = weight_unit(jobs.workload, self.weighs)
        if jobs.own_weights and "c" in self.weighs:
            unit = cost_unit(jobs.weight * class_rates(jobs.workload, self.weighs)[jobs.class_index])
            jobs = jobs if unit == standard else replace(jobs, weight=jobs.weight * (standard / unit))
        found = self._run(jobs, cores, machine, integer=integer)
        return found if unit == 1.0 or found.price is None else found._replace(price=found.price * unit)

    def _run(self, jobs: Jobs, cores: float, machine: float, *, integer: bool) -> Allocation:
        found = super().allocate_part(jobs, cores, machine, integer=integer)
        return found if integer else _to_the_last_digit(found, cores)


def _to_the_last_digit(found: Allocation, cores: float) -> Allocation:
    """The market clears but for rounding; that goes to the widest job."""
    missing = cores - float(found.cores.sum()) if found.price else 0.0
    if 0.0 < abs(missing) <= 2.0 * TIGHT * cores:
        found.cores[np.argmax(found.cores)] += missing
    return found
