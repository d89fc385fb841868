"""FCFS-n: one core each in order of arrival, so GI/GI/n when no job uses more than one core.

A rigid job gets its width, a job of restricted widths its narrowest; the first that does not fit waits, and
all behind it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import CLASS, DUST, FIFO, ClassProgram, JobRule
from malleable.policies.rules.class_rules import fixed_rule, fixed_table

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


def fcfs(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The width of its class for each job, in order of arrival, up to the first that does not fit."""
    out[:] = 0.0
    spare = math.floor(cores + DUST) * 1.0
    for j in range(jobs.shape[0]):
        k = table[int(jobs[j, CLASS])]
        if k > spare:
            break
        out[j] = k
        spare -= k


def requested_widths(workload: Workload, cores: float) -> FloatArray:
    """The width that a job of each class asks for: its own if it is rigid, else the narrowest."""
    found = [one.widths_on(cores) for one in workload.job_types]
    return np.array([1.0 if widths is None else float(widths[0]) for widths in found])


@dataclass(frozen=True)
class Fcfs(JobRule):
    """FCFS-n: one core each, first come first served."""

    whole_cores: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True
    rule = staticmethod(fcfs)
    uses_speedups: ClassVar[bool] = False

    def buyers(self, workload: Workload) -> None:
        """None: nothing has a price, but counts say it all."""

    def program(self, workload: Workload, cores: float) -> ClassProgram:
        """The same as a class rule: counts say it all while every job has a core, then the earliest do."""
        return ClassProgram(
            fixed_rule, fixed_table(workload.speedups, np.ones(len(workload.classes)), cores), FIFO
        )

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        return requested_widths(workload, cores)
