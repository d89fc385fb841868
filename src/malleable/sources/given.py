"""Jobs given as arrays: a trace, a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import ParameterError
from malleable.sources.streams import CHUNK, Chunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.sources.streams import Stream


@dataclass(frozen=True, eq=False)
class Given:
    """The jobs of a chunk, in order of arrival; a run ends when they are through."""

    jobs: Chunk

    def stream(self, workload: Workload) -> Stream:
        if (np.diff(self.jobs.times) < 0.0).any():
            raise ParameterError("the given jobs are not in order of arrival", "sort them by time")
        classes = len(workload.classes)
        unknown = [int(i) for i in np.unique(self.jobs.classes) if not 0 <= i < classes]
        if unknown:
            raise ParameterError(
                f"a job is of class {unknown[0]}, but the workload has {classes} classes",
                f"classes are counted from 0 to {classes - 1}",
            )
        return ArrayStream(*self.jobs)

    def replication(self, number: int) -> Given:
        if number:
            raise ParameterError(
                "given jobs cannot be replicated: every replication would be the same", "run them once"
            )
        return self


class ArrayStream:
    """Hands out given jobs."""

    def __init__(
        self,
        times: FloatArray,
        classes: NDArray[np.int64],
        sizes: FloatArray,
        weights: FloatArray | tuple[()] = (),
        *,
        chunk: int = CHUNK,
    ) -> None:
        self._all = Chunk(
            np.ascontiguousarray(times, dtype=float),
            np.ascontiguousarray(classes, dtype=np.int64),
            np.ascontiguousarray(sizes, dtype=float),
            np.ascontiguousarray(weights, dtype=float),
        )
        self._chunk = chunk
        self._next = 0

    def take(self) -> Chunk:
        """The next jobs."""
        part = slice(self._next, self._next + self._chunk)
        self._next += self._chunk
        times, classes, sizes, weights = self._all
        return Chunk(times[part], classes[part], sizes[part], weights[part])
