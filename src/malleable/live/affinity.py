"""Bind all threads of some processes to some CPUs, newborn ones included.

`sched_setaffinity` moves one thread. Threads and processes that start meanwhile inherit the CPUs of the one
that started them, which may not have been moved yet; so the walk is repeated until it finds nothing to move.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

ROUNDS = 20
"""Walks at most: a program that keeps on starting processes is not chased for ever."""


def bind_tree(root: int, cpus: Collection[int]) -> int:
    """Bind a process and its descendants; returns how many threads were moved."""
    return bind_processes(lambda: family(root), cpus)


def bind_processes(find: Callable[[], Iterable[int]], cpus: Collection[int]) -> int:
    """Bind all processes that `find` finds, until it finds none that is elsewhere."""
    wanted = set(cpus)
    moved = 0
    for _ in range(ROUNDS):
        moved_now = sum(_bind_thread(thread, wanted) for pid in find() for thread in threads(pid))
        if moved_now == 0:
            break
        moved += moved_now
    return moved


def family(root: int) -> list[int]:
    """A process and its descendants, as far as they are alive."""
    try:
        return [root, *(child.pid for child in psutil.Process(root).children(recursive=True))]
    except psutil.Error:
        return []


def threads(pid: int) -> list[int]:
    """The threads of a process; none if it is gone."""
    try:
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def _bind_thread(thread: int, cpus: set[int]) -> bool:
    """Bind one thread; whether it had to be moved. A thread that is gone, or not ours, is left alone."""
    try:
        if os.sched_getaffinity(thread) == cpus:
            return False
        os.sched_setaffinity(thread, cpus)
    except (ProcessLookupError, PermissionError):
        return False
    return True
