"""FCFS-n: one core each in order of arrival, so GI/GI/n when no job uses more than one core.

A rigid job gets its width, a job of restricted widths its narrowest; the first that does not fit waits, and
all behind it. In a replay every job has the cores that its log says it asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.policies.base import ANY, COUNTS, DUST, FIFO, Need, Program
from malleable.policies.base.batch_rule import BatchRule, asked_width
from malleable.policies.rules.fixed_widths import fixed_rule, fixed_table

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


def fcfs(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The width of its class for each job, in order of arrival, up to the first that does not fit."""
    out[:] = 0.0
    spare = math.floor(cores + DUST) * 1.0
    for j in range(jobs.shape[0]):
        k = asked_width(jobs, j, table)
        if k > spare:
            break
        out[j] = k
        spare -= k


@dataclass(frozen=True)
class Fcfs(BatchRule):
    """FCFS-n: one core each, first come first served."""

    needs = "the cores that each job asks for"

    rule = staticmethod(fcfs)

    def buyers(self, workload: Workload) -> None:
        """None: nothing has a price, but counts say it all."""

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        """Counts say it all while every job has a core, and then the earliest have one."""
        if need.by_job:
            return super().program(workload, cores, need)
        one_each = fixed_table(workload.speedups, np.ones(len(workload.classes)), cores)
        return Program(fixed_rule, one_each, COUNTS, FIFO)
