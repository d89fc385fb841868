"""EQUI: the cores divided equally among the jobs present (Edmonds 1999).

With more jobs than cores everybody time-shares at n/N of a core. A job whose speedup peaks below its share
takes what helps and leaves the rest to the others. On whole cores the earlier arrivals get one more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.contracts import Allocation, Policy
from malleable.engine.rule_interface import SHARE, ClassProgram
from malleable.policies.base.job_rule import usable
from malleable.policies.rules.class_markets import equi_rule, market_table
from malleable.policies.rules.tolerances import DUST
from malleable.theory.market import EqualBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import Jobs


@dataclass(frozen=True)
class Equi(Policy):
    """EQUI: the same number of cores for every job, time-shared when there are more jobs than cores."""

    blocking: ClassVar[bool] = False

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        cores = usable(cores, integer=integer)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        peaks = np.array([float(s.peak) for s in jobs.speedups])[jobs.speedup_index]
        share = level(np.ceil(peaks - DUST) if integer else peaks, cores)
        if not integer:
            return Allocation(np.minimum(share, peaks), None)
        out = np.minimum(np.floor(share + DUST), np.ceil(peaks - DUST))
        spare = int(cores - out.sum() + DUST)
        wanting = jobs.order[(out < np.ceil(peaks - DUST))[jobs.order]]
        out[wanting[:spare]] += 1.0
        return Allocation(out, None)

    def buyers(self, workload: Workload) -> EqualBuyers:
        return EqualBuyers(workload.speedups, np.ones(len(workload.classes)))

    def program(self, workload: Workload, cores: float) -> ClassProgram:
        weights = np.ones(len(workload.classes))
        return ClassProgram(equi_rule, market_table(workload.speedups, weights, cores), SHARE)


def level(peaks: FloatArray, cores: float) -> float:
    """The height L with Σ min(L, peak_j) = cores, or infinity if all peaks fit."""
    rising = np.sort(peaks)
    before = np.concatenate([[0.0], np.cumsum(rising)[:-1]])
    waiting = len(rising) - np.arange(len(rising))
    candidates = (cores - before) / waiting
    reached = np.flatnonzero(candidates <= rising)
    return float(candidates[reached[0]]) if len(reached) else float("inf")
