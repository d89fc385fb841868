"""Streams of jobs: chunks of arrival times, classes and sizes from seeded generators.

Every quantity has its own generator (children of one seed), and chunks always have the same size, so a stream
depends on workload and seed alone: every policy sees the same jobs, however the work is cut or spread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import Distribution, FloatArray
    from malleable.model import Workload

CHUNK = 1 << 14
"""Jobs a chunk: large enough to amortise calls, small enough to stay in the cache."""
FEW = 8


class Chunk(NamedTuple):
    """Jobs in order of arrival."""

    times: FloatArray
    classes: NDArray[np.int64]
    sizes: FloatArray

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.times)


class Stream(Protocol):
    """A source of jobs; an empty chunk means that there are no more."""

    def take(self) -> Chunk: ...


def stream(workload: Workload, seed: int | np.random.SeedSequence, chunk: int = CHUNK) -> Stream:
    """The endless stream of a workload's jobs."""
    seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    poisson = all(c.arrivals.kind == "poisson" for c in workload.classes)
    return PoissonStream(workload, seeds, chunk) if poisson else RenewalStream(workload, seeds, chunk)


def generator(seed: np.random.SeedSequence) -> np.random.Generator:
    """The fastest of NumPy's generators; seeds that were spawned give independent streams."""
    return np.random.Generator(np.random.SFC64(seed))


def choose(rng: np.random.Generator, bounds: FloatArray, size: int) -> NDArray[np.int64]:
    """Positions drawn with the probabilities that lie between the bounds (cumulated, without the last 1)."""
    if not len(bounds):
        return np.zeros(size, dtype=np.int64)
    coins = rng.random(size)
    if len(bounds) > FEW:
        return np.searchsorted(bounds, coins, side="right").astype(np.int64)
    # Narrow integers are added many at a time.
    chosen = (coins >= bounds[0]).view(np.int8)
    for bound in bounds[1:]:
        chosen += (coins >= bound).view(np.int8)
    widened: NDArray[np.int64] = chosen.astype(np.int64)
    return widened


class Sizes:
    """Job sizes, one generator a class."""

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


class PoissonStream:
    """Merged Poisson arrivals: one exponential gap and one coin a job.

    Where all sizes are mixtures of exponentials the coin decides on class and phase at once, and all sizes
    are drawn together.
    """

    def __init__(self, workload: Workload, seeds: np.random.SeedSequence, chunk: int) -> None:
        gaps, coins, sizes = seeds.spawn(3)
        self._gaps, self._coins = generator(gaps), generator(coins)
        self._mean_gap = 1.0 / workload.total_rate
        self._chunk = chunk
        self._now = 0.0
        found = [_exponentials(c.size) for c in workload.classes]
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
        chosen = choose(self._coins, self._bounds, self._chunk)
        if not self._mixed:
            return Chunk(times, chosen, self._sizes.draw(chosen))
        sizes = self._exponentials.standard_exponential(self._chunk)
        sizes *= self._means.take(chosen)
        return Chunk(times, self._class_of.take(chosen), sizes)


def _exponentials(law: Distribution) -> tuple[FloatArray, FloatArray] | None:
    """Probabilities and means, if the law is a mixture of exponentials: phases that only end."""
    phases = law.phase_type()
    if phases is None:
        return None
    start, rates = phases
    diagonal = np.diag(rates)
    return (start, -1.0 / diagonal) if np.array_equal(rates, np.diag(diagonal)) else None


class RenewalStream:
    """Independent renewal processes, one a class, merged in time (ties in order of the classes)."""

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
        more = np.cumsum(gaps)
        self._ends[i] = float(more[-1])
        self._pending[i] = np.concatenate([self._pending[i], more])


class ArrayStream:
    """Given jobs, in order of arrival: a trace, a test."""

    def __init__(
        self, times: FloatArray, classes: NDArray[np.int64], sizes: FloatArray, chunk: int = CHUNK
    ) -> None:
        self._all = Chunk(
            np.ascontiguousarray(times, dtype=float),
            np.ascontiguousarray(classes, dtype=np.int64),
            np.ascontiguousarray(sizes, dtype=float),
        )
        self._chunk = chunk
        self._next = 0

    def take(self) -> Chunk:
        """The next jobs."""
        part = slice(self._next, self._next + self._chunk)
        self._next += self._chunk
        return Chunk(self._all.times[part], self._all.classes[part], self._all.sizes[part])
