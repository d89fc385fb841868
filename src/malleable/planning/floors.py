"""Lower bounds of a target's metric on n cores, for any policy: what certifies that a target cannot be met.

- Cost: the relaxed problem, V*(n), no job on more than n cores.
- Mean response time: the same with all holding costs 1.
- Of one class: its own relaxed problem on what the work of the others leaves of n, each unit of which takes
  at least k/s(k) of core-time on its most efficient width.
- A percentile or the mean slowdown: no job is faster than alone on all n cores, T ≥ X/s(n).

Each falls with n, so that one that exceeds the limit on n cores rules out every smaller number too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import InfeasibleError, UnsupportedError
from malleable.model import Workload
from malleable.planning.targets import Target
from malleable.theory import relaxed

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

DOUBLINGS, HALVINGS = 200, 60


@dataclass(frozen=True)
class Floor:
    """What no policy on n cores goes below, and on how many cores the work fits at all."""

    workload: Workload
    target: Target

    @cached_property
    def least(self) -> int:
        """The fewest cores that keep up with the work that arrives."""
        n = max(1, math.floor(float(self._least_use.sum())))
        while not self._keeps_up(n):
            n += 1
        return n

    def value(self, cores: int) -> float:
        """The bound on the metric; infinite where the work does not fit."""
        if cores < self.least:
            return math.inf
        metric, name = self.target.metric, self.target.job_class
        chosen = slice(None) if name is None else [self.workload.index(name)]
        if metric in {"cost", "response"}:
            return self._mean(float(cores), name, unit=metric == "response")
        rates = self.workload.rates[chosen]
        shares, speeds = rates / rates.sum(), self._fastest(float(cores))[chosen]
        if metric == "slowdown":
            return float(shares @ (1.0 / speeds))
        laws = self.workload.classes if name is None else [self.workload.classes[self.workload.index(name)]]
        left = 1.0 - (self.target.level or 0.0)

        def longer(time: float) -> float:
            """P(X/s(n) > time)."""
            above = [law.size.survival(np.array([time * s]))[0] for law, s in zip(laws, speeds, strict=True)]
            return float(shares @ np.array(above))

        try:
            return _where(longer, left)
        except UnsupportedError:  # a law that does not say how its sizes are spread
            return 0.0

    def rules_out(self, cores: int) -> bool:
        """Whether no policy meets the target on so many cores."""
        return self.value(cores) >= self.target.limit

    def most_ruled_out(self, most: int) -> int:
        """The most cores up to `most` on which no policy meets the target; 0 if there are none."""
        if self.rules_out(most):
            return most
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.rules_out(middle) else (low, middle)
        return low

    @cached_property
    def _least_use(self) -> FloatArray:
        """Cores that each class keeps busy on its most efficient width."""
        widths = np.array([max(float(s.most_efficient), 1.0) for s in self.workload.speedups])
        speeds = np.array([float(s(k)) for s, k in zip(self.workload.speedups, widths, strict=True)])
        return np.asarray(self.workload.loads * np.minimum(widths / speeds, 1.0))

    def _keeps_up(self, cores: int) -> bool:
        try:
            relaxed.check_cores(self.workload, float(cores))
        except InfeasibleError:
            return False
        return True

    def _fastest(self, cores: float) -> FloatArray:
        """The speed of a job of each class that has the whole machine."""
        return np.array([float(s(min(cores, max(float(s.peak), 1.0)))) for s in self.workload.speedups])

    def _mean(self, cores: float, name: str | None, *, unit: bool) -> float:
        described, there = self.workload, cores
        classes = described.classes
        if name is not None:
            i = described.index(name)
            there -= float(self._least_use.sum() - self._least_use[i])
            classes = (classes[i],)
        if unit:
            classes = tuple(replace(one, holding_cost=1.0) for one in classes)
        alone = Workload.of_known(described.name, classes)
        try:
            return relaxed.bound(alone, cores, there).bound_capped
        except InfeasibleError:
            return math.inf


def _where(falling: Callable[[float], float], level: float) -> float:
    """The time at which a falling share reaches a level."""
    high = 1.0
    for _ in range(DOUBLINGS):
        if falling(high) <= level:
            break
        high *= 2.0
    low = 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if falling(middle) > level else (low, middle)
    return low
