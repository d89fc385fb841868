"""Output beyond a limit: the beginning and the end are kept, what is between is given back to the disk.

The program writes to a file, and nothing stands between them: it goes on at full speed, and does not end if
its supervisor does. So what is too much is not held back but punched out of the file again: the file keeps
its length, and what is read from a place on stays right. Where the file system knows no holes all is kept.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

PUNCH_HOLE, KEEP_SIZE = 2, 1
"""Of fallocate(2)."""
STEP = 1 << 16
"""Bytes: holes begin and end at multiples, which are whole blocks of all usual file systems."""


class Gap(NamedTuple):
    """What is left out of a file: bytes from a place to another."""

    start: int
    end: int


class OutputLimit:
    """Keeps about `most` bytes on the disk of a file that a program appends to: the beginning and the end."""

    def __init__(self, path: Path, most: int) -> None:
        self.path, self._most = path, max(most, 4 * STEP)
        start = self._most // 2 // STEP * STEP
        self.gap = Gap(start, start)

    @property
    def left_out(self) -> int:
        """Bytes that were given back."""
        return self.gap.end - self.gap.start

    def look(self) -> None:
        """Give back what is too much now, and a little more, so as not to do so for each line."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return
        end = (size - self._most // 4) // STEP * STEP
        if size - self.left_out > self._most and end > self.gap.end and self._punch(end):
            self.gap = Gap(self.gap.start, end)

    def finish(self) -> None:
        """The program has ended: say at the end what was left out, if anything was."""
        self.look()
        if self.left_out:
            with suppress(OSError), self.path.open("ab") as file:
                file.write(_line(f"{self.left_out} bytes were left out above: about {self._most} are kept"))

    def _punch(self, end: int) -> bool:
        """Make a hole from the end of the gap on; False if there cannot be one."""
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fallocate = ctypes.CDLL(None, use_errno=True).fallocate64
            fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
            start = self.gap.end
            return bool(fallocate(file, PUNCH_HOLE | KEEP_SIZE, start, end - start) == 0)
        except AttributeError:  # a library of C that has it by another name
            return False
        finally:
            os.close(file)


def read_block(path: Path, offset: int, most: int) -> tuple[bytes, int]:
    """Up to so many bytes of a file from a place on, and where to go on.

    For what was left out there comes a line that says so; at the end, and where there is no file, nothing.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b"", offset
    try:
        while True:
            start, end = _data(file, offset)
            if start - offset >= STEP:
                return _line(f"{start - offset} bytes are left out here"), start
            block = os.pread(file, min(most, end - offset), offset)
            if _data(file, offset)[0] == start:  # else a hole was made meanwhile
                return block, offset + len(block)
    finally:
        os.close(file)


def _data(file: int, offset: int) -> tuple[int, int]:
    """From where to where there is data, from a place on: to the end, where no holes are known."""
    try:
        start = os.lseek(file, offset, os.SEEK_DATA)
        return start, os.lseek(file, start, os.SEEK_HOLE)
    except OSError:  # at the end, or behind it
        return offset, max(offset, os.fstat(file).st_size)


def _line(text: str) -> bytes:
    return f"\n[malleable: {text}]\n".encode()
