"""Bind all threads of a program to some CPUs, newborn ones included.

`sched_setaffinity` moves one thread. Threads and processes that start meanwhile inherit the CPUs of the one
that started them, which may not have been moved yet; so the walk is repeated until it finds nothing to move.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from malleable.live.system.process_tree import ROUNDS, family, threads
from malleable.live.system.whole_files import raise_if_short

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def bind_family(root: int, cpus: Collection[int], reaper: int | None = None) -> int:
    """Bind a process and all that it has started; returns how many threads were moved."""
    wanted = set(cpus)
    moved = 0
    for _ in range(ROUNDS):
        there = [thread for pid in family(root, reaper) for thread in threads(pid)]
        moved_now = sum(_bind_thread(thread, wanted) for thread in there)
        if moved_now == 0:
            break
        moved += moved_now
    return moved


@contextmanager
def bound_to(cpus: Collection[int]) -> Iterator[None]:
    """Have this thread, and so the processes that it starts, run on those of these CPUs that are there."""
    before = os.sched_getaffinity(0)
    _bind_thread(0, set(cpus))
    try:
        yield
    finally:
        with suppress(OSError):  # what was started has been started
            _bind_thread(0, before)


def _bind_thread(thread: int, cpus: set[int]) -> bool:
    """Bind one thread; whether it was moved.

    One that is gone, or not ours, is left alone. CPUs may vanish at any time: a thread runs on those that are
    left, and where it did if none is.
    """
    try:
        before = os.sched_getaffinity(thread)
        if before == cpus:
            return False
        os.sched_setaffinity(thread, cpus)
        return os.sched_getaffinity(thread) != before
    except OSError as error:
        raise_if_short(error)
        return False
