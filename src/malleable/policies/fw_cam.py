"""FW-CAM, the fixed-width policy (the paper's first mean-field-optimal policy).

Every class has its own slots of one width (see `theory.fw_cam`); jobs take them first come, first
served, keep them until they finish, and no class ever lends a core to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import (
    POOLS,
    Allocation,
    ClassProgram,
    JobProgram,
    OpenFraction,
    Policy,
    job_rows,
    not_a_class_rule,
    usable,
)
from malleable.policies.base.run_rule import run_rule
from malleable.policies.fixed_width import fixed_width, pools_table
from malleable.policies.rules.class_rules import fixed_rule, fixed_table
from malleable.theory.fw_cam import FixedWidthPlan, plan

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import Jobs


@dataclass(frozen=True)
class FwCam(Policy):
    """FW-CAM: fixed slots for each class, first come first served. Mean-field optimal for 0.75 < beta < 1."""

    needs = "speedups, rates, mean sizes"

    beta: OpenFraction = 0.8

    sees_all: ClassVar[bool] = True
    repaired: ClassVar[bool] = False

    def plan(self, workload: Workload, cores: float, *, integer: bool = False) -> FixedWidthPlan:
        """The slots of every class."""
        return plan(workload, cores, self.beta, repaired=self.repaired, integer=integer)

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        return self.allocate_part(jobs, cores, cores, integer=integer)

    def allocate_part(self, jobs: Jobs, cores: float, machine: float, *, integer: bool = False) -> Allocation:
        """The slots of the whole machine, as many of them as fit these cores."""
        integer = integer or jobs.workload.restricted
        chosen = self.plan(jobs.workload, usable(machine, integer=integer), integer=integer)
        widths, out = np.zeros(len(jobs)), np.empty(len(jobs))
        rows = job_rows(jobs, jobs.class_index)
        run_rule(fixed_width, rows, usable(cores, integer=integer), _slots_table(chosen), widths)
        out[jobs.order] = widths
        return Allocation(out, chosen.price)

    def buyers(self, workload: Workload) -> None:  # noqa: ARG002 - whatever it is
        raise not_a_class_rule(self)

    def job_program(self, workload: Workload, cores: float) -> JobProgram:
        chosen = self.plan(workload, cores, integer=workload.restricted)
        return JobProgram(fixed_width, _slots_table(chosen), sees_all=True)

    def program(self, workload: Workload, cores: float) -> ClassProgram:
        chosen = self.plan(workload, cores)
        return ClassProgram(
            fixed_rule, fixed_table(workload.speedups, chosen.widths, cores), POOLS, chosen.slots
        )


def _slots_table(chosen: FixedWidthPlan) -> FloatArray:
    return pools_table(chosen.widths, np.array(chosen.slots, dtype=float))
