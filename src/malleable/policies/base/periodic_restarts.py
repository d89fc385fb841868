"""What Pollux and Sia have in common: they decide every so often, and reckon with what a resize costs.

A running job of age T that was resized R times so far and would be resized now counts for less by the factor
max(T − R·δ, 0)/(T + δ), where δ is the time that a restart costs: the share of its life spent at work.
A job that holds no cores counts in full, although the engine has one that ran before pay for its restart: it
has to be paid whenever the job starts again, so waiting saves nothing.

δ is the pause that the job's class has after a resize (the longest, where it depends on the widths), unless
`restart` gives another that the policy is to believe in; what a resize truly costs is up to the workload.
Both published systems decide every 60 s and lose 30 s to a restart, on jobs that run for hours. As a workload
need not be in seconds, the default period is 1 % of its mean job size; give `period=60` for one in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.catalog.spec import NonNegative
from malleable.contracts import ANY, Need
from malleable.engine.rule_interface import AGE, CLASS, HELD, RESTARTS, Program
from malleable.engine.width_table import LIMIT, encode_limits, limit
from malleable.policies.base.job_rule import JobRule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

PERIOD = 0.01
"""The default, in mean job sizes."""
CELLS = 2.0**22
"""Jobs times cores up to which the optimum is found by dynamic programming."""
PRICES = 60
"""Bisection steps for the price beyond that."""


def change_factor(jobs: FloatArray, j: int, table: FloatArray, restarts: int) -> float:
    """What job j is worth after a resize, relative to none; δ of each class stands in the table."""
    if jobs[j, HELD] <= 0.0:
        return 1.0
    # Written so that age and restart may both be 0.
    restart = float(table[restarts + int(jobs[j, CLASS])])
    lost = jobs[j, RESTARTS] * restart
    return (
        float(max(jobs[j, AGE] - lost, 0.0) / max(jobs[j, AGE] + restart, 1e-300)) if restart > 0.0 else 1.0
    )


@dataclass(frozen=True)
class Restarting(JobRule):
    """A policy that decides periodically and knows what a restart costs."""

    period: NonNegative | None = None
    restart: NonNegative | None = None

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        arriving = need.arrivals(workload)
        mean = arriving.total_load / arriving.total_rate
        period = PERIOD * mean if self.period is None else self.period
        return super().program(workload, cores, need)._replace(period=period)

    def restarts(self, workload: Workload, cores: float) -> list[float]:
        """δ of each class: what the policy reckons that a resize takes."""
        classes = range(len(workload.classes))
        if self.restart is not None:
            return [self.restart for _ in classes]
        limits = encode_limits(workload.job_types, cores)
        return [limit(limits, i, LIMIT.PAUSE) for i in classes]
