"""FW-CAM, the fixed-width policy (the paper's first mean-field-optimal policy).

Every class has its own slots of one width (see `theory.fw_cam`); jobs take them first come, first
served, keep them until they finish, and no class ever lends a core to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import ANY, COUNTS, POOLS, Need, OpenFraction, Policy, Program, not_a_class_rule
from malleable.policies.rules.fixed_widths import fixed_rule, fixed_table, fixed_width, pools_table
from malleable.theory.fw_cam import FixedWidthPlan, plan

if TYPE_CHECKING:
    from malleable.model import Workload


@dataclass(frozen=True)
class FwCam(Policy):
    """FW-CAM: fixed slots for each class, first come first served. Mean-field optimal for 0.75 < beta < 1."""

    needs = "speedups, rates, mean sizes"

    beta: OpenFraction = 0.8

    sees_all: ClassVar[bool] = True
    uses_speedups: ClassVar[bool] = False
    repaired: ClassVar[bool] = False

    def plan(self, workload: Workload, cores: float, *, integer: bool = False) -> FixedWidthPlan:
        """The slots of every class."""
        return plan(workload, cores, self.beta, repaired=self.repaired, integer=integer)

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        if not need.by_job:
            chosen = self.plan(workload, cores)
            widths = fixed_table(workload.speedups, chosen.widths, cores)
            return Program(fixed_rule, widths, COUNTS, POOLS, chosen.slots)
        chosen = self.plan(workload, cores, integer=need.whole or workload.restricted)
        slots = pools_table(chosen.widths, np.array(chosen.slots, dtype=float))
        return Program(fixed_width, slots, sees_all=True, price=lambda *_: chosen.price)

    def buyers(self, workload: Workload) -> None:  # noqa: ARG002 - whatever it is
        raise not_a_class_rule(self)
