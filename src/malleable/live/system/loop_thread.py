"""A thread that does things one after the other: soon, later, or when a process has ended."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

RETRY_SECONDS = 0.5
"""Seconds between two attempts to watch a process, where no file is to be had for it."""


class LoopThread:
    """Functions are called in the order in which they came; what they raise is logged by asyncio."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._watched: set[int] = set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Have a function called; nothing happens after the end."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def later(self, seconds: float, function: Callable[..., object], *arguments: Any) -> None:
        """Have a function called after some time."""
        self.soon(self._loop.call_later, seconds, function, *arguments)

    def when_ended(self, pid: int, function: Callable[[], object]) -> None:
        """Have a function called when a process has ended; to be called in this thread."""
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            self.soon(function)
            return
        except OSError:  # no file to be had
            self.later(RETRY_SECONDS, self.when_ended, pid, function)
            return
        self._watched.add(process)
        self._loop.add_reader(process, self._has_ended, process, function)

    def _has_ended(self, process: int, function: Callable[[], object]) -> None:
        self._loop.remove_reader(process)
        self._watched.discard(process)
        os.close(process)
        function()

    def _run(self) -> None:
        self._loop.run_forever()
        for process in self._watched:
            self._loop.remove_reader(process)
            os.close(process)
        self._loop.close()

    def close(self) -> None:
        """End after what was asked for so far; what is to happen later does not happen."""
        self.soon(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()
