"""A lazy map: outcomes in the order of the input, which is read as outcomes are taken."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Executor
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from malleable.live.workers.counts import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future


class Submitting(Protocol):
    """Something that takes units: a pool, or what stands before one."""

    def pack(self, function: Callable[..., Any]) -> Any:
        """Pack a function, for any number of units."""

    def submit_packed(self, function: Any, args: Any, kwargs: Any) -> Future[Any]:
        """Submit a call of a function that is packed already."""

    def window(self, function: Any) -> int:
        """How many units of a function keep the workers busy."""

    def all_read(self) -> None:
        """The input of a map has ended: no unit of it is to come."""


class LazyExecutor(Executor):
    """An executor whose `map` reads its input as outcomes are taken."""

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """Outcomes in the order of the input, which is read as outcomes are taken.

        At most `buffersize` units are under way or wait to be taken; without it, as many as keep the workers
        busy. `chunksize` changes nothing: small units share messages by themselves.
        """
        count("chunksize", chunksize)
        rows = zip(*iterables, strict=False)
        return ordered_map(self._taker(iterables), fn, rows, timeout, buffersize)

    def starmap(
        self,
        fn: Callable[..., Any],
        iterable: Iterable[Iterable[Any]],
        *,
        timeout: float | None = None,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """`map` for a function whose arguments come together, as tuples."""
        return ordered_map(self._taker((iterable,)), fn, map(tuple, iterable), timeout, buffersize)

    def _taker(self, iterables: tuple[Iterable[Any], ...]) -> Submitting:
        """What takes the units of one map over these."""
        raise NotImplementedError


def ordered_map(
    pool: Submitting,
    function: Callable[..., Any],
    rows: Iterator[tuple[Any, ...]],
    timeout: float | None,
    buffersize: int | None,
) -> Iterator[Any]:
    """Submit a window of units now, and the others as outcomes are taken."""
    if buffersize is not None:
        buffersize = count("buffersize", buffersize)
    end = None if timeout is None else time.monotonic() + timeout
    packed = pool.pack(function)
    futures: deque[Future[Any]] = deque()

    def fill() -> None:
        before, room = len(futures), max(0, (buffersize or pool.window(packed)) - len(futures))
        futures.extend(pool.submit_packed(packed, row, {}) for row in islice(rows, room))
        if len(futures) < before + room:
            pool.all_read()

    def take() -> Any:
        outcome = futures[0].result(None if end is None else end - time.monotonic())
        futures.popleft()
        fill()
        return outcome

    def outcomes() -> Iterator[Any]:
        try:
            while futures:
                yield take()  # without a name, which would keep it alive until the next one
        finally:
            for future in futures:
                future.cancel()

    fill()
    return outcomes()
