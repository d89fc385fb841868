"""Arrivals with independent gaps of any law, per class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.sources.generators import generator
from malleable.sources.sizes import Sizes
from malleable.sources.streams import Chunk

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


class RenewalStream:
    """Independent renewal processes, one per class, merged in time (ties in order of the classes)."""

    def __init__(self, workload: Workload, seeds: np.random.SeedSequence, chunk: int) -> None:
        gaps, sizes = seeds.spawn(2)
        self._laws = [c.arrivals.interval for c in workload.classes]
        self._rngs = [generator(s) for s in gaps.spawn(len(self._laws))]
        self._sizes = Sizes(workload, sizes)
        shares = workload.rates / workload.total_rate
        self._blocks = [max(16, int(chunk * share)) for share in shares]
        self._pending: list[FloatArray] = [np.empty(0) for _ in self._laws]
        self._ends = [0.0 for _ in self._laws]

    def take(self) -> Chunk:
        """The next jobs: all arrivals up to the time that every class is known to."""
        behind = min(self._ends)
        for i, end in enumerate(self._ends):
            if end <= behind or not len(self._pending[i]):
                self._extend(i)
        horizon = min(self._ends)
        ready = [times[times <= horizon] for times in self._pending]
        self._pending = [times[len(taken) :] for times, taken in zip(self._pending, ready, strict=True)]
        times = np.concatenate(ready)
        classes = np.repeat(np.arange(len(ready), dtype=np.int64), [len(t) for t in ready])
        order = np.argsort(times, kind="stable")
        classes = classes[order]
        return Chunk(times[order], classes, self._sizes.draw(classes))

    def _extend(self, i: int) -> None:
        gaps = self._laws[i].sample(self._rngs[i], self._blocks[i])
        gaps[0] += self._ends[i]
        with np.errstate(over="ignore"):
            more = np.cumsum(gaps)
        self._ends[i] = float(more[-1])
        if self._ends[i] == np.inf:  # what comes after the last time that is a number never comes
            more = more[more < np.inf]
        self._pending[i] = np.concatenate([self._pending[i], more])
