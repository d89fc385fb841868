"""What is sent bit by bit: status documents as they change, and the output of a program as it is printed."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from malleable.errors import MalleableError
from malleable.live.broker.server.access import for_strangers
from malleable.live.programs.output_limit import read_block

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

LOGGER = logging.getLogger(__name__)
SHORTEST_SECONDS = 0.2
"""Seconds between two status documents, at least."""
IDLE_SECONDS = 1.0
"""Seconds after which jobs have made progress that is worth a look, though nothing has changed."""
QUIET_SECONDS = 15.0
"""Seconds after which a stream says that it is still there."""
SHARE = 0.05
"""Of a core that status documents may take: where there are many jobs, they come less often."""
BLOCK = 1 << 16
"""Bytes that are read from a file at once."""
LOOK_SECONDS = 0.1
"""Seconds between two looks at a file that grows."""


class Changes:
    """Status documents for all who listen, one computation for all of them; `touch` from any thread."""

    def __init__(self, record: Callable[[], dict[str, Any]]) -> None:
        self._record = record
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed, self._closing = asyncio.Event(), asyncio.Event()
        self._listeners: dict[asyncio.Queue[str], tuple[int, bool]] = {}
        """Who listens: how many jobs each wants to hear of, and whether it is told what they are."""

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def touch(self) -> None:
        """Something has changed."""
        if self._loop is not None and not self._changed.is_set():
            with suppress(RuntimeError):  # the server has ended
                self._loop.call_soon_threadsafe(self._changed.set)

    def close(self) -> None:
        """End all streams."""
        self._closing.set()

    @property
    def closing(self) -> bool:
        """Whether all streams are to end."""
        return self._closing.is_set()

    async def watch(self) -> None:
        """Make a document whenever something has changed, until cancelled; it costs nothing when idle."""
        self._loop = asyncio.get_running_loop()
        jobs = 0
        while True:
            # A reader looks at jobs that run: they go on though nothing changes.
            wait = IDLE_SECONDS if self._listeners and jobs else None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait)
            self._changed.clear()
            start = time.perf_counter()
            try:
                document = await asyncio.to_thread(self._record)
            except MalleableError as error:  # a disk that cannot be read now may be read later
                LOGGER.warning("no status: %s", error)
                document = {"jobs": []}
            else:
                if self._listeners:
                    wanted = set(self._listeners.values())
                    texts = await asyncio.to_thread(_texts, document, wanted)
                    for listener, kind in self._listeners.items():
                        if kind in texts:  # else it has come meanwhile, and hears the next one
                            _put_last(listener, texts[kind])
            jobs = len(document["jobs"])
            taken = time.perf_counter() - start
            await asyncio.sleep(max(SHORTEST_SECONDS if self._listeners else IDLE_SECONDS, taken / SHARE))

    async def stream(self, most: int, *, trusted: bool) -> AsyncIterator[str]:
        """Server-sent events with so many jobs at most, the present state first; `trusted` sees commands."""
        listener: asyncio.Queue[str] = asyncio.Queue(1)
        self._listeners[listener] = most, trusted
        self._changed.set()
        try:
            while not self.closing:
                text = await self._next(listener)
                yield f"event: status\ndata: {text}\n\n" if text else ": still here\n\n"
        finally:
            del self._listeners[listener]

    async def _next(self, listener: asyncio.Queue[str]) -> str:
        """The next document; nothing when there is none for long, or the server is about to end."""
        got, closing = asyncio.ensure_future(listener.get()), asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((got, closing), timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            return got.result() if got.done() else ""
        finally:
            got.cancel()
            closing.cancel()


def _texts(document: dict[str, Any], wanted: set[tuple[int, bool]]) -> dict[tuple[int, bool], str]:
    """A document for each kind of reader."""
    return {(most, trusted): _text(document, most, trusted=trusted) for most, trusted in wanted}


def _text(document: dict[str, Any], most: int, *, trusted: bool) -> str:
    """A document with so many of its jobs, those with cores first."""
    jobs = document["jobs"]
    if len(jobs) > most:
        in_order = sorted(range(len(jobs)), key=lambda j: (jobs[j]["granted"] == 0, j))
        jobs = [jobs[j] for j in sorted(in_order[:most])]
    return json.dumps({**document, "jobs": jobs if trusted else [for_strangers(job) for job in jobs]})


def _put_last(queue: asyncio.Queue[str], text: str) -> None:
    """Put what is new in place of what was not taken: a slow reader gets fewer documents, not old ones."""
    with suppress(asyncio.QueueEmpty):
        queue.get_nowait()
    queue.put_nowait(text)


async def file_stream(
    find: Callable[[], Path | None], offset: int, going_on: Callable[[], bool] | None
) -> AsyncIterator[bytes]:
    """The bytes of a file from `offset` on, and those that are added as long as `going_on` says so."""
    while True:
        # Asked before reading: what was printed before the end is read after it.
        more = going_on is not None and await asyncio.to_thread(going_on)
        path = await asyncio.to_thread(find)
        while path is not None:
            block, offset = await asyncio.to_thread(read_block, path, offset, BLOCK)
            if not block:
                break
            yield block
        if not more:
            return
        await asyncio.sleep(LOOK_SECONDS)
