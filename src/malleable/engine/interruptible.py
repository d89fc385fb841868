"""Wait for compiled code in a way that Ctrl-C can end.

Python handles signals between two of its own instructions, and a kernel is a single one, however long it
runs. So kernels run in a thread, without Python's lock, and the caller waits: it hears of a Ctrl-C at once.
"""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_SECONDS = 0.1
"""Seconds between two looks at work that goes on, in a thread or in other processes."""


def run_interruptibly(
    work: Callable[[], None], *, look: Callable[[], None], stop: Callable[[], None]
) -> None:
    """Do `work` in a thread and wait for it; call `look` now and then.

    KeyboardInterrupt, raised by a signal or by `look`, calls `stop`, waits for the work to end, and is raised
    again. A second one while it waits is raised at once: the thread is given up and dies with the process.
    """
    done = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            context.run(work)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            failed.append(error)
        finally:
            done.set()

    context = contextvars.copy_context()
    threading.Thread(target=run, name="malleable-kernel", daemon=True).start()
    try:
        while not done.wait(POLL_SECONDS):
            look()
    except KeyboardInterrupt:
        stop()
        done.wait()
        raise
    except BaseException:
        stop()
        raise
    if failed:
        raise failed[0]
