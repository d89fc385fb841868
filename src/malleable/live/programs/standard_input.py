"""A program's standard input: that of the command which has submitted it, and waits for it.

The command names it by its own process, `/proc/PID/fd/0`, and the supervisor opens it there. So the program
reads from the very pipe or file, as if the command were the program: nothing is copied, and what it does not
read is left to the next reader. As the number of a process may be another's by then, or in another namespace,
the supervisor compares what it has opened with what was meant.
"""

from __future__ import annotations

import array
import fcntl
import os
import select
import stat
import termios
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError
from malleable.live.system.whole_files import raise_if_short

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK = 1 << 16
"""Bytes that are copied at once, where something has to be copied."""


def offered(file: int) -> dict[str, Any]:
    """The keys of a request that pass a file of this process on; none for a terminal and for /dev/null."""
    if not _is_worth_passing(file):
        return {}
    if not _can_be_opened_again(file):
        file = _copied(file)
    found = os.fstat(file)
    offset = os.lseek(file, 0, os.SEEK_CUR) if stat.S_ISREG(found.st_mode) else 0
    return {"stdin": f"/proc/{os.getpid()}/fd/{file}", "stdin_file": [found.st_dev, found.st_ino, offset]}


def is_left_unread(file: int) -> bool:
    """Whether a file was meant to be read, as far as can be told, by a program that will not."""
    if not _is_worth_passing(file) or not select.select([file], [], [], 0.0)[0]:
        return False
    if stat.S_ISREG(os.fstat(file).st_mode):  # what was read in part belongs to whoever reads it
        return os.lseek(file, 0, os.SEEK_CUR) == 0 < os.fstat(file).st_size
    waiting = array.array("i", [1])
    with suppress(OSError):  # a device may not say how much there is
        fcntl.ioctl(file, termios.FIONREAD, waiting)
    return waiting[0] > 0


def open_offered(path: str, meant: Sequence[int] | None) -> int:
    """Open what was offered; an `ExecutionError` where it is gone, or another file."""
    try:
        # A named pipe would be waited for, until someone writes to it.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise_if_short(error)
        raise _gone(path, error.strerror or str(error)) from None
    os.set_blocking(opened, True)
    if meant is not None:
        device, inode, offset = meant
        found = os.fstat(opened)
        if (found.st_dev, found.st_ino) != (device, inode):
            os.close(opened)
            raise _gone(path, "it is another file now")
        if offset:
            os.lseek(opened, offset, os.SEEK_SET)
    return opened


def _gone(path: str, reason: str) -> ExecutionError:
    hint = "what has submitted it must be there until it starts, and in the same PID namespace"
    return ExecutionError(f"its standard input cannot be read: {path}: {reason}", hint)


def _is_worth_passing(file: int) -> bool:
    found = os.fstat(file)
    written_only = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    is_null = stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev
    return not (written_only or is_null or os.isatty(file))


def _can_be_opened_again(file: int) -> bool:
    """Whether it can be opened by its name in /proc: not a socket, nor a file that is not this user's."""
    try:
        os.close(os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _copied(file: int) -> int:
    """A pipe to which a thread copies what comes from a file."""
    end, start = os.pipe()

    def copy() -> None:
        with os.fdopen(start, "wb", buffering=0) as pipe:
            while block := os.read(file, BLOCK):
                while block:
                    block = block[pipe.write(block) :]

    threading.Thread(target=copy, name="malleable-stdin", daemon=True).start()
    return end
