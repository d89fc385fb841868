"""Poisson arrivals of all classes, merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.numerics.choices import choose
from malleable.sources.generators import generator
from malleable.sources.sizes import Sizes, exponential_mixture
from malleable.sources.streams import Chunk

if TYPE_CHECKING:
    from malleable.model import Workload


class PoissonStream:
    """Merged Poisson arrivals: one exponential gap and one coin per job.

    Where all sizes are mixtures of exponentials the coin decides on class and phase at once, and all sizes
    are drawn together.
    """

    def __init__(self, workload: Workload, seeds: np.random.SeedSequence, chunk: int) -> None:
        gaps, coins, sizes = seeds.spawn(3)
        self._gaps, self._coins = generator(gaps), generator(coins)
        self._mean_gap = 1.0 / workload.total_rate
        self._chunk = chunk
        self._now = 0.0
        found = [exponential_mixture(c.size) for c in workload.classes]
        mixtures = [mixture for mixture in found if mixture is not None]
        self._mixed = len(mixtures) == len(found)
        if self._mixed:
            self._exponentials = generator(sizes)
            self._class_of = np.repeat(np.arange(len(mixtures)), [len(p) for p, _ in mixtures])
            self._means = np.concatenate([means for _, means in mixtures])
            rates = np.concatenate([r * p for r, (p, _) in zip(workload.rates, mixtures, strict=True)])
        else:
            self._sizes = Sizes(workload, sizes)
            rates = workload.rates
        self._bounds = np.cumsum(rates)[:-1] / np.sum(rates)

    def take(self) -> Chunk:
        """The next jobs."""
        times = self._gaps.standard_exponential(self._chunk)
        times *= self._mean_gap
        times[0] += self._now
        np.cumsum(times, out=times)
        self._now = float(times[-1])
        chosen = np.zeros(self._chunk, dtype=np.int64)
        if len(self._bounds):
            chosen = choose(self._coins.random(self._chunk), self._bounds)
        if not self._mixed:
            return Chunk(times, chosen, self._sizes.draw(chosen))
        sizes = self._exponentials.standard_exponential(self._chunk)
        sizes *= self._means.take(chosen)
        return Chunk(times, self._class_of.take(chosen), sizes)
