"""Nodes that fail and return: each is up for a random time, down for another, independent of the others."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from malleable.catalog.spec import Count
from malleable.contracts import Capacity, Changes, CoreChanges, Distribution
from malleable.errors import ParameterError

BATCH = 4096
"""Changes that are handed out at a time."""


@dataclass(frozen=True)
class Failures(Capacity):
    """`nodes` of equal size; `up` and `down` are laws, or the means of exponential ones."""

    nodes: Count
    up: Any
    down: Any

    def check(self) -> None:
        for name in ("up", "down"):
            given = getattr(self, name)
            if isinstance(given, int | float) and not isinstance(given, bool):
                given = {"kind": "exponential", "mean": float(given)}
            try:
                object.__setattr__(self, name, Distribution.of(given))
            except ParameterError as error:
                raise error.within(name) from None
            if not 0.0 < getattr(self, name).mean < math.inf:
                hint = "give a mean time, or a law that has one"
                raise ParameterError("the mean time must be positive and finite", hint, (name,))

    def check_on(self, cores: float) -> None:
        if cores % self.nodes:
            raise ParameterError(
                f"{cores:g} cores cannot be divided evenly among {self.nodes} nodes",
                "give another number of nodes",
                ("capacity",),
            )

    def mean_cores(self, cores: float) -> float:
        return float(cores * self.up.mean / (self.up.mean + self.down.mean))

    def changes(self, cores: float, seed: int) -> CoreChanges:
        return _Alternating(self, cores, seed)


class _Alternating:
    """The changes of one run, which starts with all nodes up."""

    def __init__(self, failures: Failures, cores: float, seed: int) -> None:
        # A child of the seed that no stream of jobs has.
        self._rng = np.random.default_rng([seed, 0xC0DE])
        self._laws = (cast("Distribution", failures.down), cast("Distribution", failures.up))
        self._each = cores / failures.nodes
        self._cores = self.cores_at_start = cores
        first = failures.up.sample(self._rng, failures.nodes)
        self._upcoming = [(float(time), node, False) for node, time in enumerate(first)]
        heapq.heapify(self._upcoming)

    def take(self) -> Changes:
        """The next changes, one node at a time."""
        times, cores = np.empty(BATCH), np.empty(BATCH)
        for change in range(BATCH):
            time, node, returns = self._upcoming[0]
            self._cores += self._each if returns else -self._each
            times[change], cores[change] = time, self._cores
            lasts = float(self._laws[returns].sample(self._rng, 1)[0])
            heapq.heapreplace(self._upcoming, (time + lasts, node, not returns))
        return Changes(times, cores, float(times[-1]))
