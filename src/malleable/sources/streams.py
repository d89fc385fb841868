"""What a source of jobs is: something that starts a stream, which hands out jobs in order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.model import Workload

CHUNK = 1 << 14
"""Jobs per chunk: large enough to amortise calls, small enough to stay in the cache."""


class Chunk(NamedTuple):
    """Jobs in order of arrival; `weights` is empty where they cost what their class says.

    A run refuses jobs with weights of their own; `engine.run.departures` takes them.
    """

    times: FloatArray
    classes: NDArray[np.int64]
    sizes: FloatArray
    weights: FloatArray = np.zeros(0)

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.times)


class Stream(Protocol):
    """Jobs, chunk by chunk; an empty chunk means that there are no more."""

    def take(self) -> Chunk:
        """The next jobs."""
        ...


class Source(Protocol):
    """Where the jobs of a run come from, as a value: it can be sent to a worker, and started again."""

    def stream(self, workload: Workload) -> Stream:
        """The jobs from the first one on; the same ones whenever it is called."""
        ...

    def replication(self, number: int) -> Source:
        """The source of an independent replication; number 0 is this one."""
        ...
