"""Ctrl-C, `kill` and a terminal that is closed: the first asks for what there is, a second gives up at once.

Python runs a signal handler between two steps of the main thread: not at all while compiled code loops, and
otherwise in the middle of anything, where an exception does harm (an import, a finaliser, half a file). So
our handlers do nothing. The system writes the number of a signal into a pipe, and a thread at its other end

- ends the process with one line, as long as nothing has been found that could be handed in;
- notes the signal, once there is (`worth_waiting`); `check` then raises KeyboardInterrupt where it is safe;
- ends the process in any case when there is a second one.

Worker processes end with this one (`malleable.processes`).
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
DONE = b"\0"
"""What ends the thread: no signal has this number."""
PATIENCE = 3.0
"""Seconds after which somebody who waits for the end of a stretch is told how to give up."""
SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"
"""A progress bar hides the cursor; whoever ends without taking it away has to undo that."""


class _State:
    """What is known about signals."""

    received: int | None = None
    patient = False


def worth_waiting() -> None:
    """From now on there is something to hand in, so the first signal waits for `check`."""
    _State.patient = True


def check() -> None:
    """Raise KeyboardInterrupt if a signal has come."""
    if _State.received is not None:
        raise KeyboardInterrupt


def received() -> bool:
    """Whether a signal has come."""
    return _State.received is not None


def status() -> int:
    """The exit status of a command that was interrupted, as shells have it: 130 after Ctrl-C."""
    return 128 + (_State.received or signal.SIGINT)


@contextmanager
def listening() -> Iterator[None]:
    """Listen to the signals that ask a program to stop; those that are ignored (nohup, `&`) stay ignored."""
    _State.received, _State.patient = None, False
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    here, there = os.pipe()
    os.set_blocking(there, False)
    before = {s: signal.getsignal(s) for s in _signals() if signal.getsignal(s) is not signal.SIG_IGN}
    thread = threading.Thread(target=_hear, args=(here,), daemon=True)
    _hold_signals()
    thread.start()
    wakeup = signal.set_wakeup_fd(there, warn_on_full_buffer=False)
    for signum in before:
        signal.signal(signum, _leave_it_to_the_thread)
    _hear_again()
    try:
        yield
    finally:
        _hold_signals()
        for signum, handler in before.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(wakeup)
        _hear_again()
        os.write(there, DONE)
        thread.join()
        os.close(here)
        os.close(there)


def _signals() -> list[signal.Signals]:
    return [getattr(signal, name) for name in NAMES if hasattr(signal, name)]


def _leave_it_to_the_thread(*_: Any) -> None:
    pass


def _hear(pipe: int) -> None:
    """Decide what a signal means."""
    while True:
        if _State.received is not None and not select.select([pipe], [], [], PATIENCE)[0]:
            _say("stopping as soon as the current stretch ends; once more gives up")
            select.select([pipe], [], [])
        heard = os.read(pipe, 1)
        if heard in {DONE, b""}:
            return
        if _State.received is not None or not _State.patient:
            _State.received = heard[0]
            _say("interrupted")
            os._exit(status())
        _State.received = heard[0]


def _say(text: str) -> None:
    with suppress(OSError):
        bare = os.isatty(2) and os.environ.get("TERM", "dumb") not in {"", "dumb"}
        os.write(2, f"{SHOW_CURSOR if bare else ''}{text}\n".encode())


def _hold_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _signals())


def _hear_again() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _signals())


def _forget() -> None:
    """In a child: what it is sent must not count as sent to its parent, whose pipe it shares."""
    signal.set_wakeup_fd(-1)
    _hear_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_signals, after_in_parent=_hear_again, after_in_child=_forget)
