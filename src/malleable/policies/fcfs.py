"""FCFS-n: one core each in order of arrival, so GI/GI/n when no job uses more than one core."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.engine.rule_interface import FIFO, ClassProgram
from malleable.policies.base.job_rule import JobRule
from malleable.policies.rules.class_markets import fixed_rule, fixed_table
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


def fcfs(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:  # noqa: ARG001
    """One core each for the ⌊cores⌋ earliest arrivals."""
    out[:] = 0.0
    for j in range(min(jobs.shape[0], math.floor(cores + DUST))):
        out[j] = 1.0


@dataclass(frozen=True)
class Fcfs(JobRule):
    """FCFS-n: one core each, first come first served."""

    whole_cores: ClassVar[bool] = True
    rule = staticmethod(fcfs)
    uses_speedups: ClassVar[bool] = False

    def program(self, workload: Workload, cores: float) -> ClassProgram:
        """The same as a class rule: counts say it all while every job has a core, then the earliest do."""
        return ClassProgram(
            fixed_rule, fixed_table(workload.speedups, np.ones(len(workload.classes)), cores), FIFO
        )

    def prepare(self, workload: Workload, cores: float) -> FloatArray:  # noqa: ARG002 - it needs no table
        return np.zeros(1)
