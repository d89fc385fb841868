"""The lock of a folder that a broker uses: whether one runs, and which process it is.

A broker holds its runtime folder and its state folder for as long as it lives. Whoever has to know that none
runs shares the lock for a moment, and none starts meanwhile. The system lets go of it however a process ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from malleable.errors import ExecutionError
from malleable.live.broker.server.paths import explained

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = "broker.lock"
LOOK_SECONDS = 1.0
"""Seconds for which a broker tries to get its lock: those that only look have it for an instant."""
REST_SECONDS = 0.02


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder: one broker at a time."""
    with explained(folder / LOCK):
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + LOOK_SECONDS
        while not _locked(file, fcntl.LOCK_EX):
            if time.monotonic() > end:
                who = _said(file)
                raise ExecutionError(f"a broker runs already: {who} holds {folder}", "see `malleable status`")
            time.sleep(REST_SECONDS)
        with explained(folder / LOCK):
            os.truncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(file)


@contextmanager
def without_broker(folder: Path) -> Iterator[bool]:
    """Whether no broker holds a folder; if so, none starts there before this is left."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield True
        return
    try:
        yield _locked(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def holder(folder: Path) -> str | None:
    """Who holds a folder, such as `process 1234`; None if no broker does."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _locked(file, fcntl.LOCK_SH) else _said(file)
    finally:
        os.close(file)


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _said(file: int) -> str:
    number = os.pread(file, 20, 0).decode("ascii", "replace").strip()
    return f"process {number}" if number else "another process"
