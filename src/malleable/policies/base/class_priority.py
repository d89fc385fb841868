"""Policies for jobs that are perfectly parallel up to κ cores: classes in order of priority, κ cores per job.

For the rooftop s(k) = min(k, κ) the width κ is exact. Any other speedup has as its κ the largest width, up to
its peak, at which the cores are still used with a given `efficiency` s(k)/k, one half unless said otherwise:
2^{1/(1−p)} for k^p, (2 − (1−q))/q for Amdahl. "Less parallelizable" means a smaller κ.

Jobs are taken class by class in order of rank, by arrival within a rank; each gets min(κ, what remains), and
nothing once less than one core remains.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import OpenFraction
from malleable.engine.rule_interface import CLASS
from malleable.policies.base.job_rule import JobRule
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, Speedup
    from malleable.model import Workload

FAR = 2.0**60
BISECTIONS = 200


def by_rank(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """κ cores per job in order of rank, then of arrival; table: number of ranks, κ and rank of each class."""
    size, ranks, classes = jobs.shape[0], int(table[0]), (table.shape[0] - 1) // 2
    out[:] = 0.0
    spare = cores
    for rank in range(ranks):
        for j in range(size):
            if spare < 1.0 - DUST:
                return
            i = int(jobs[j, CLASS])
            if int(table[1 + classes + i]) == rank:
                out[j] = min(table[1 + i], spare)
                spare -= out[j]


@dataclass(frozen=True)
class ByRank(JobRule):
    """A strict order of the classes, read off their κ."""

    efficiency: OpenFraction = 0.5

    rule = staticmethod(by_rank)

    @abstractmethod
    def ranks(self, kappas: FloatArray) -> FloatArray:
        """The rank of each class, from 0 (first) up, without gaps; equal ranks are served by arrival."""

    def prepare(self, workload: Workload, cores: float) -> FloatArray:  # noqa: ARG002 - κ does not depend on n
        kappas = np.array([parallelism(s, self.efficiency) for s in workload.speedups])
        ranks = self.ranks(kappas)
        return np.concatenate([[ranks.max() + 1.0], kappas, ranks])


def parallelism(speedup: Speedup, efficiency: float) -> float:
    """κ: the largest width up to the peak with s(k)/k ≥ efficiency, found beyond the most efficient one."""
    low, high = max(float(speedup.most_efficient), 1.0), min(float(speedup.peak), FAR)
    if float(speedup(high)) >= efficiency * high:
        return high
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low * high))
        if not low < middle < high:
            break
        if float(speedup(middle)) >= efficiency * middle:
            low = middle
        else:
            high = middle
    return low
