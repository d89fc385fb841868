"""All processes that a program has started: those of its session, and their descendants elsewhere.

A daemon that has left its parent is still of the session, unless it has left that, too; a child that has
made a session of its own is still a descendant. One that has left both comes to the process that adopts
orphans, which is the supervisor (`adopt_orphans`). It reads /proc, as no call of the kernel lists them.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from malleable.live.system.whole_files import raise_if_short

if TYPE_CHECKING:
    import signal

PROC = Path("/proc")
LONGEST = 4096
"""Bytes of a line of /proc/PID/stat, at least."""
ROUNDS = 20
"""Walks at most: a program that keeps on starting processes is not chased for ever."""


SET_CHILD_SUBREAPER = 36
"""Of prctl(2): orphans among the descendants of a process become its children."""


class Process(NamedTuple):
    """What /proc/PID/stat says of a process; `start` tells it from a later one with the same number."""

    pid: int
    state: str
    parent: int
    session: int
    start: int


def processes() -> list[Process]:
    """All processes that are alive."""
    found = (look_up(int(name)) for name in os.listdir(PROC) if name.isdigit())  # noqa: PTH208
    return [process for process in found if process is not None]


def look_up(pid: int) -> Process | None:
    """One process; None if it is not there, or dead and only waited for."""
    fields = _fields(pid)
    if not fields:
        return None
    process = Process(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
    other_threads = int(fields[17]) > 1  # one whose first thread has ended looks dead, and runs
    return None if process.state in "ZX" and not other_threads else process


def _fields(process: int | str) -> list[str]:
    """What stands in /proc/PID/stat behind the name, which is in brackets and may hold anything.

    Each program's end reads it of every process there is, so it makes do with three calls of the system.
    """
    try:
        file = os.open(f"{PROC}/{process}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise_if_short(error)
        return []
    try:
        line = os.read(file, LONGEST)
    except OSError:  # it has just ended
        return []
    finally:
        os.close(file)
    return line.rpartition(b")")[2].decode("ascii").split()


def adopt_orphans() -> int | None:
    """Have orphans of the processes below this one come to it; its number, or None if it cannot."""
    with suppress(OSError, AttributeError):
        if ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            return os.getpid()
    return None


def reap_orphans(own: int) -> None:
    """Wait for the children of this process that have ended, except for its own one."""
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == own:
                return
            os.waitpid(ended.si_pid, 0)


def cpu_seconds(root: int, reaper: int | None = None) -> float:
    """CPU time of a program and of what it has started, as far as that runs or was waited for."""
    ticks = sum(int(field) for pid in family(root, reaper) for field in _fields(pid)[11:15])
    if reaper is not None:
        ticks += sum(int(field) for field in _fields(reaper)[13:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def family(root: int, reaper: int | None = None) -> set[int]:
    """A process, the processes of the session that it leads, and all their descendants.

    With `reaper` also what that process has below it: it adopts orphans, and starts nothing else.
    """
    if reaper is None and not _leads_a_session(root) and (found := _descendants(root)) is not None:
        return found
    there = processes()
    found = {one.pid for one in there if root in {one.pid, one.session} or one.parent == reaper}
    while more := {process.pid for process in there if process.parent in found} - found:
        found |= more
    return found


def _leads_a_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:  # its session may go on without it
        return True


def _descendants(root: int) -> set[int] | None:
    """A process and its descendants, as the kernel lists children; None where it does not."""
    found, unseen = {root}, [root]
    while unseen:
        pid = unseen.pop()
        for thread in threads(pid):
            try:
                children = (PROC / str(pid) / "task" / str(thread) / "children").read_text(encoding="ascii")
            except FileNotFoundError:
                if not _lists_children():
                    return None
            except OSError:
                continue
            else:
                new = {int(child) for child in children.split()} - found
                found |= new
                unseen += new
    return found


def _lists_children() -> bool:
    pid = str(os.getpid())
    return (PROC / pid / "task" / pid / "children").exists()


def threads(pid: int) -> list[int]:
    """The threads of a process; none if it is gone."""
    try:
        return [int(entry.name) for entry in (PROC / str(pid) / "task").iterdir()]
    except OSError as error:
        raise_if_short(error)
        return []


def is_at_work(pid: int) -> bool:
    """Whether a thread of a process runs, or waits for a CPU or a disk: if it does not answer, it is slow."""
    return any(_fields(f"{pid}/task/{thread}")[:1] in (["R"], ["D"]) for thread in threads(pid))


def environment(pid: int) -> list[bytes]:
    """The variables that a process was started with; none if it is gone, or not ours."""
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError as error:
        raise_if_short(error)
        return []


def signal_family(root: int, signum: signal.Signals, reaper: int | None = None) -> set[int]:
    """Send a signal to a program and all that it has started, newborn ones included; returns which."""
    told: set[int] = set()
    for _ in range(ROUNDS):
        new = family(root, reaper) - told
        if not new:
            break
        for pid in sorted(new, key=lambda pid: pid != root):  # no shell sees first that its child has ended
            try:
                os.kill(pid, signum)
            except (ProcessLookupError, PermissionError):
                continue
        told |= new
    return told
