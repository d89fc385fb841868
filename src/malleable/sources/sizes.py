"""Sizes of jobs, drawn from the laws of their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.sources.generators import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import Distribution, FloatArray
    from malleable.model import Workload


class Sizes:
    """Job sizes, one generator per class."""

    def __init__(self, workload: Workload, seeds: np.random.SeedSequence) -> None:
        self._laws = [c.size for c in workload.classes]
        self._rngs = [generator(s) for s in seeds.spawn(len(self._laws))]

    def draw(self, classes: NDArray[np.int64]) -> FloatArray:
        """Sizes for jobs of the given classes."""
        if len(self._laws) == 1:
            return self._laws[0].sample(self._rngs[0], len(classes))
        out = np.empty(len(classes))
        for i, (law, rng) in enumerate(zip(self._laws, self._rngs, strict=True)):
            mine = np.flatnonzero(classes == i)
            out[mine] = law.sample(rng, len(mine))
        return out


def exponential_mixture(law: Distribution) -> tuple[FloatArray, FloatArray] | None:
    """Probabilities and means, if the law is a mixture of exponentials: phases that only end."""
    phases = law.phase_type()
    if phases is None:
        return None
    start, rates = phases
    diagonal = np.diag(rates)
    return (start, -1.0 / diagonal) if np.array_equal(rates, np.diag(diagonal)) else None
