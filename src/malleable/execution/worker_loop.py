"""What a worker process does: carry out tasks until told to end, or until its parent is gone."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable

PARENT_POLL_SECONDS = 0.5
"""Seconds between two looks of a worker for its parent, where the system cannot tell of its death."""
PR_SET_PDEATHSIG = 1
"""From Linux's prctl.h: have the kernel send a signal when the parent dies."""


class RemoteTraceback(Exception):  # noqa: N818 - it is no error of its own
    """The traceback of what a task raised in a worker, shown as the cause of the error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def serve(work: Any, pipe: Any, parent: int, ignored: list[signal.Signals], prepare: Any) -> None:
    """Carry out the tasks whose numbers come through the pipe, and answer each, until None comes."""
    end_with(parent)
    for signum in ignored:
        signal.signal(signum, signal.SIG_IGN)
    if prepare is not None:
        prepare()
    while (position := pipe.recv()) is not None:
        try:
            answer = True, work(position)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the parent
            answer = False, (portable(error), RemoteTraceback("".join(traceback.format_exception(error))))
        try:
            pipe.send(answer)
        except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
            pipe.send((False, (ExecutionError(f"an outcome cannot be handed over: {error!s:.200}"), None)))


def portable(error: BaseException, dumps: Callable[[Any], bytes] = pickle.dumps) -> BaseException:
    """The error; or one that describes it, where the error itself cannot be sent between processes."""
    try:
        pickle.loads(dumps(error))  # noqa: S301 - our own bytes
    except BaseException:  # noqa: BLE001 - a foreign class may even raise SystemExit here
        return ExecutionError(f"a task raised {type(error).__name__}: {error!s:.200}")
    return error


def end_with(parent: int) -> None:
    """Have this process end when its parent does, even if the parent is killed."""
    if not _killed_by_the_kernel():
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    elif os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _killed_by_the_kernel() -> bool:
    """Ask the kernel to kill this process when the parent dies; whether the system can do that."""
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415 - workers need it, and not those who wait for them

    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0)
    return False


def _watch(parent: int) -> None:
    """Look for the parent now and then, in a thread, which also runs while compiled code does."""
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_SECONDS)
    os._exit(1)
