"""Ctrl-C, `kill` and a terminal that is closed: the first asks for what there is, a second gives up at once.

Python runs a signal handler between two steps of the main thread: not at all while compiled code loops, and
otherwise in the middle of anything, where an exception does harm (an import, a finaliser, half a file). So
our handlers do nothing. The system writes the number of a signal into a pipe, and a thread at its other end

- ends the process with one line, as long as nothing has been found that could be handed in;
- notes the signal, once there is (`worth_waiting`); `check` then raises KeyboardInterrupt where it is safe;
- ends the process in any case when there is a second one.

Worker processes end with this one (`malleable.execution.worker_processes`).
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
PATIENCE = 3.0
"""Seconds of waiting for the end of a stretch after which the user is told how to give up."""
SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"
"""A progress bar hides the cursor; whoever ends without taking it away has to undo that."""


class _State:
    """What is known about signals."""

    listening = False
    received: int | None = None
    patient = False
    group: int | None = None


def worth_waiting() -> None:
    """From now on there is something to hand in, so the first signal waits for `check`."""
    _State.patient = True


def end_with_us(group: int | None) -> None:
    """A process group that must not outlive this process, however that ends; None when it is over."""
    _State.group = group


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


def listen() -> None:
    """Listen to the signals that ask a program to stop; those that are ignored (nohup) stay ignored."""
    _State.received, _State.patient = None, False
    wrong_place = sys.platform == "win32" or threading.current_thread() is not threading.main_thread()
    if _State.listening or wrong_place:
        return
    _State.listening = True
    here, there = os.pipe()
    os.set_blocking(there, False)
    _hold_signals()
    threading.Thread(target=_hear, args=(here,), daemon=True).start()
    signal.set_wakeup_fd(there, warn_on_full_buffer=False)
    take_over()
    os.register_at_fork(before=_hold_signals, after_in_parent=_hear_again, after_in_child=_forget)
    _hear_again()


def take_over() -> None:
    """Leave signals to the thread, whoever else has set a handler."""
    if _State.listening:
        for signum in _signals():
            if signal.getsignal(signum) is not signal.SIG_IGN:
                signal.signal(signum, _leave_it_to_the_thread)


def ignore() -> None:
    """Listen no more: the command is over, and what Python does on its way out is not worth stopping.

    Python takes handlers away before it ends, and a signal would change the exit status in the last moment.
    """
    if _State.listening:
        for signum in _signals():
            signal.signal(signum, signal.SIG_IGN)


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
        heard = os.read(pipe, 1)[0]
        if heard not in _signals():
            continue  # other code has a handler for it
        if _State.received is not None or not _State.patient:
            _State.received = heard
            _say("interrupted")
            _end_group()
            os._exit(status())
        _State.received = heard


def _end_group() -> None:
    if _State.group is not None:
        with suppress(OSError):
            os.killpg(_State.group, signal.SIGKILL)


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
