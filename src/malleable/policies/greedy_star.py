"""GREEDY*: GREEDY that breaks ties in favour of the less parallelizable job (Berg et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.greedy import Greedy

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray, Jobs
    from malleable.policies.rules.market_allocation import Groups


@dataclass(frozen=True)
class GreedyStar(Greedy):
    """GREEDY with ties going to the less parallelizable job: the one that gains less from a second core."""

    shy: ClassVar[bool] = True

    def order(self, jobs: Jobs, groups: Groups, value: FloatArray) -> IntArray:
        second_core = np.array([float(s(2.0)) for s in groups.speedups])[groups.member]
        arrival = np.empty(len(jobs), dtype=np.intp)
        arrival[jobs.order] = np.arange(len(jobs))
        return np.lexsort((arrival, second_core, -value))
