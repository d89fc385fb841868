"""EQUI: the cores divided equally among the jobs present (Edmonds 1999).

With more jobs than cores each job has n/N of a core. A job whose speedup peaks below its share
takes what helps and leaves the rest to the others. On whole cores the earlier arrivals get one more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.engine.speedup_table import COLUMNS, PREAMBLE
from malleable.policies.base import ANY, CLASS, COUNTS, DUST, SHARE, Moment, Need, Policy, Program, peak
from malleable.policies.rules.class_rules import equi_rule, job_by_job, market_table
from malleable.speedups.base import ROW
from malleable.theory.market import EqualBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


equi_jobs_rule = job_by_job(equi_rule)


@dataclass(frozen=True)
class Equi(Policy):
    """EQUI: the same number of cores for every job, time-shared when there are more jobs than cores."""

    needs = "nothing"

    blocking: ClassVar[bool] = False
    sharing: ClassVar[bool] = True

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        table = market_table(workload.speedups, np.ones(len(workload.classes)), cores)
        if not need.by_job:
            return Program(equi_rule, table, COUNTS, SHARE)
        if need.whole:  # the whole core that holds the peak is of use
            peaks = table[PREAMBLE + ROW.PEAK : PREAMBLE + COLUMNS * len(workload.classes) : COLUMNS]
            peaks[:] = np.ceil(peaks - DUST)
        return Program(equi_jobs_rule, table, sharing=True, to_whole=earliest_first)

    def buyers(self, workload: Workload) -> EqualBuyers:
        return EqualBuyers(workload.speedups, np.ones(len(workload.classes)))


def earliest_first(moment: Moment) -> FloatArray:
    """Whole cores: what rounding down leaves over goes to the earliest, one each, as far as it helps them."""
    out = np.floor(moment.widths + DUST)
    most = np.array([peak(moment.table, int(i)) for i in moment.rows[:, CLASS]])
    out[np.flatnonzero(out < most)[: int(moment.cores - out.sum() + DUST)]] += 1.0
    return out
