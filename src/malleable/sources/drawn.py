"""Jobs drawn from the laws of a workload.

Every quantity has its own generator (children of one seed), and chunks always have the same size, so a stream
depends on workload and seed alone: every policy sees the same jobs, wherever and in whatever pieces it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.sources.poisson import PoissonStream
from malleable.sources.renewal import RenewalStream
from malleable.sources.streams import CHUNK

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.sources.streams import Stream


@dataclass(frozen=True)
class Drawn:
    """The endless stream that belongs to a seed; replications have the seeds that follow."""

    seed: int = 0

    def stream(self, workload: Workload) -> Stream:
        return stream(workload, self.seed)

    def replication(self, number: int) -> Drawn:
        return Drawn(self.seed + number)


def stream(workload: Workload, seed: int | np.random.SeedSequence, chunk: int = CHUNK) -> Stream:
    """The endless stream of a workload's jobs."""
    seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    poisson = all(c.arrivals.poisson for c in workload.classes)
    return PoissonStream(workload, seeds, chunk) if poisson else RenewalStream(workload, seeds, chunk)
