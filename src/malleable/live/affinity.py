"""Bind all threads of a program to some CPUs, newborn ones included.

`sched_setaffinity` moves one thread. Threads and processes that start meanwhile inherit the CPUs of the one
that started them, which may not have been moved yet; so the walk is repeated until it finds nothing to move.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from malleable.live.process_tree import ROUNDS, family, threads

if TYPE_CHECKING:
    from collections.abc import Collection


def bind_family(root: int, cpus: Collection[int]) -> int:
    """Bind a process and all that it has started; returns how many threads were moved."""
    wanted = set(cpus)
    moved = 0
    for _ in range(ROUNDS):
        moved_now = sum(_bind_thread(thread, wanted) for pid in family(root) for thread in threads(pid))
        if moved_now == 0:
            break
        moved += moved_now
    return moved


def _bind_thread(thread: int, cpus: set[int]) -> bool:
    """Bind one thread; whether it had to be moved. A thread that is gone, or not ours, is left alone."""
    try:
        if os.sched_getaffinity(thread) == cpus:
            return False
        os.sched_setaffinity(thread, cpus)
    except (ProcessLookupError, PermissionError):
        return False
    return True
