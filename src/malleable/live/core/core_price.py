"""What a core is worth to jobs that are still to come: the price that decisions have had on average so far.

The policy `clearing` lets the cores that it takes from later jobs at this price. Averaged over all time,
also over that in which nobody wanted a core, it is what one more core would have saved; it needs no rates of
arrival. Before many jobs have ended it is taken to be higher: one who knows little spends little.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, log2
from typing import TYPE_CHECKING, Any

from malleable.policies.clearing import Clearing

if TYPE_CHECKING:
    from malleable.contracts import Policy

CAUTION = 4.0
"""The price is taken 1 + CAUTION/(1 + j) times as high, j being the jobs that have ended: chosen by
`benchmarks/bench_learned_sizes.py`."""
MANY = 5.0
"""Cores from which on the price counts in full; on n cores it counts n/MANY. On few cores no job can be so
wide that it wastes much: in streams the price saves 1 to 3 % there, while jobs that come together, with a
rest behind them, cost 10 to 20 % less without it. At 10 in place of 5 one of 200 workloads, on six cores at
load .92, cost a tenth more in the first jobs."""
KEPT = 0.999
"""What every job that ends leaves of the average. A shorter memory follows the queue, and lets cores at the
highest price when most jobs wait for one: with .99 it costs a tenth more on 16 cores at load .9."""
STEPS = 8
"""Prices per octave that are told apart: a policy is prepared for each."""


class CorePrice:
    """Averages the prices of decisions over time; what is long ago fades as jobs end."""

    def __init__(self) -> None:
        self._now = self._area = self._time = 0.0
        self._price = 0.0
        self._jobs = 0.0

    def decided(self, price: float | None, now: float) -> None:
        """A decision, and its price if it had one: none where cores are left over, or nobody has two."""
        self._pass(now)
        self._price = price or 0.0

    def job_ended(self, now: float) -> None:
        """A job has ended."""
        self._pass(now)
        self._area *= KEPT
        self._time *= KEPT
        self._jobs += 1

    def _pass(self, now: float) -> None:
        passed, self._now = now - self._now, now
        if self._price == 0.0:  # a night without jobs says little about the day
            passed = min(passed, self._time)
        self._area += self._price * passed
        self._time += passed

    def to_list(self) -> list[float]:
        """What is to outlive this run."""
        return [self._area, self._time, self._jobs]

    @classmethod
    def from_list(cls, numbers: Any) -> CorePrice:
        """Read what `to_list` made; a ValueError if it is damaged."""
        made = cls()
        try:
            area, duration, jobs = (float(number) for number in numbers)
        except (TypeError, ValueError):
            raise ValueError("the price of a core must be three numbers") from None
        if not all(0.0 <= number < inf for number in (area, duration, jobs)):
            raise ValueError("the price of a core must be finite and not negative")
        made._area, made._time, made._jobs = area, duration, jobs
        return made

    def value(self, cores: int) -> float:
        """What one of so many cores is worth, per unit of time."""
        if self._time <= 0.0 or self._area <= 0.0 or cores <= 0:
            return 0.0
        price = min(cores / MANY, 1.0) * (1.0 + CAUTION / (1.0 + self._jobs)) * self._area / self._time
        return float(2.0 ** (round(STEPS * log2(price)) / STEPS))

    def for_policy(self, policy: Policy, cores: int) -> Policy:
        """The policy, told the price on so many cores if it wants to know it."""
        if isinstance(policy, Clearing) and policy.price is None:
            return replace(policy, price=self.value(cores))
        return policy
