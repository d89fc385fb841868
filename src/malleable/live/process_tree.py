"""All processes that a program has started: those of its session, and their descendants elsewhere.

A daemon that has left its parent is still of the session, unless it wished to leave that too; a child that
has made a session of its own is still a descendant. It reads /proc, as no call of the kernel lists them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import signal

PROC = Path("/proc")
ROUNDS = 20
"""Walks at most: a program that keeps on starting processes is not chased for ever."""


class Process(NamedTuple):
    """What /proc/PID/stat says of a process; `start` tells it from a later one with the same number."""

    pid: int
    state: str
    parent: int
    session: int
    start: int


def processes() -> list[Process]:
    """All processes that are alive."""
    found = (look_up(int(folder.name)) for folder in PROC.iterdir() if folder.name.isdigit())
    return [process for process in found if process is not None]


def look_up(pid: int) -> Process | None:
    """One process; None if it is not there, or dead and only waited for."""
    fields = _fields(pid)
    if not fields:
        return None
    process = Process(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
    return None if process.state in "ZX" else process


def _fields(pid: int) -> list[str]:
    """What stands in /proc/PID/stat behind the name, which is in brackets and may hold anything."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def cpu_seconds(root: int) -> float:
    """CPU time of a program and of what it has started, as far as that runs or was waited for."""
    ticks = sum(int(field) for pid in family(root) for field in _fields(pid)[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def family(root: int) -> set[int]:
    """A process, the processes of the session that it leads, and all their descendants."""
    there = processes()
    found = {process.pid for process in there if root in {process.pid, process.session}}
    while more := {process.pid for process in there if process.parent in found} - found:
        found |= more
    return found


def threads(pid: int) -> list[int]:
    """The threads of a process; none if it is gone."""
    try:
        return [int(entry.name) for entry in (PROC / str(pid) / "task").iterdir()]
    except OSError:
        return []


def environment(pid: int) -> list[bytes]:
    """The variables that a process was started with; none if it is gone, or not ours."""
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def signal_family(root: int, signum: signal.Signals) -> set[int]:
    """Send a signal to a program and all that it has started, newborn ones included; returns which."""
    told: set[int] = set()
    for _ in range(ROUNDS):
        new = family(root) - told
        if not new:
            break
        for pid in new:
            try:
                os.kill(pid, signum)
            except (ProcessLookupError, PermissionError):
                continue
        told |= new
    return told
