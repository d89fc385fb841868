"""EQUI: the cores divided equally among the jobs present (Edmonds 1999).

With more jobs than cores each job has n/N of a core. A job whose speedup peaks below its share
takes what helps and leaves the rest to the others. On whole cores the earlier arrivals get one more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.engine.speedup_table import COLUMNS, PREAMBLE
from malleable.policies.base import (
    CLASS,
    DUST,
    SHARE,
    Allocation,
    ClassProgram,
    JobProgram,
    Policy,
    a_class_each,
    memoized,
    peak,
    usable,
)
from malleable.policies.rules.class_rules import equi_rule, market_table
from malleable.speedups.base import ROW
from malleable.theory.market import EqualBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import Jobs


def equi_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The class rule, job by job."""
    counts, widths = np.zeros(int(table[0])), np.zeros(int(table[0]))
    for j in range(jobs.shape[0]):
        counts[int(jobs[j, CLASS])] += 1.0
    equi_rule(counts, cores, table, widths)
    for j in range(jobs.shape[0]):
        out[j] = widths[int(jobs[j, CLASS])]


@dataclass(frozen=True)
class Equi(Policy):
    """EQUI: the same number of cores for every job, time-shared when there are more jobs than cores."""

    needs = "nothing"

    blocking: ClassVar[bool] = False
    sharing: ClassVar[bool] = True

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        """Run the class rule on the counts; on whole cores the earlier arrivals get what it leaves over."""
        cores = usable(cores, integer=integer)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        workload, index = jobs.workload, jobs.class_index
        if jobs.own_speedups is not None:
            workload, index = a_class_each(jobs)
        table = _table(workload, cores, integer=integer)
        counts = np.bincount(index, minlength=len(workload.classes)).astype(float)
        widths = np.zeros(len(counts))
        equi_rule(counts, cores, table, widths)
        if not integer:
            return Allocation(widths[index], None)
        out = np.floor(widths + DUST)[index]
        most = np.array([peak(table, i) for i in range(len(counts))])[index]
        wanting = jobs.order[(out < most)[jobs.order]]
        out[wanting[: int(cores - out.sum() + DUST)]] += 1.0
        return Allocation(out, None)

    def buyers(self, workload: Workload) -> EqualBuyers:
        return EqualBuyers(workload.speedups, np.ones(len(workload.classes)))

    def program(self, workload: Workload, cores: float) -> ClassProgram:
        return ClassProgram(equi_rule, _made_table(workload, cores), SHARE)

    def job_program(self, workload: Workload, cores: float) -> JobProgram:
        return JobProgram(equi_jobs_rule, _made_table(workload, cores), sharing=True)


def _made_table(workload: Workload, cores: float) -> FloatArray:
    return market_table(workload.speedups, np.ones(len(workload.classes)), cores)


@memoized
def _table(workload: Workload, cores: float, *, integer: bool) -> FloatArray:
    """The rule's table, with peaks rounded up where cores are whole."""
    table = _made_table(workload, cores)
    if integer:
        peaks = table[PREAMBLE + ROW.PEAK : PREAMBLE + COLUMNS * len(workload.classes) : COLUMNS]
        peaks[:] = np.ceil(peaks - DUST)
    table.setflags(write=False)
    return table
