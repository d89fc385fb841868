"""What Pollux and Sia have in common: they decide every so often, and a resize stops a job for a while.

A running job of age T that was resized R times so far and would be resized now counts for less by the factor
max(T − R·δ, 0)/(T + δ), where δ is the time that a restart costs: the share of its life spent at work.
A job that holds no cores has nothing to restart, so it starts at no charge, in line with the engine.

Both published systems decide every 60 s and lose 30 s to a restart, on jobs that run for hours. As a workload
need not be in seconds, the defaults are 1 % and 0.5 % of its mean job size; give `period=60,restart=30` for a
workload in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.catalog.spec import NonNegative
from malleable.engine.rule_interface import AGE, HELD, RESTARTS
from malleable.policies.base.job_rule import JobRule, Timing

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

PERIOD, RESTART = 0.01, 0.005
"""Defaults, in mean job sizes."""
CELLS = 2.0**22
"""Jobs times cores up to which the optimum is found by dynamic programming."""
PRICES = 60
"""Bisection steps for the price beyond that."""


def change_factor(jobs: FloatArray, j: int, restart: float) -> float:
    """What job j is worth after a resize, relative to none."""
    if jobs[j, HELD] <= 0.0:
        return 1.0
    # Written so that age and restart may both be 0.
    lost = jobs[j, RESTARTS] * restart
    return (
        float(max(jobs[j, AGE] - lost, 0.0) / max(jobs[j, AGE] + restart, 1e-300)) if restart > 0.0 else 1.0
    )


@dataclass(frozen=True)
class Restarting(JobRule):
    """A policy that decides periodically and knows what a restart costs."""

    period: NonNegative | None = None
    restart: NonNegative | None = None

    def timing(self, workload: Workload) -> Timing:
        mean = workload.total_load / workload.total_rate
        return Timing(
            PERIOD * mean if self.period is None else self.period,
            RESTART * mean if self.restart is None else self.restart,
        )
