"""When Python ends: Executors finish their units, as those of Python do, and nothing hangs.

Executors of one process wait for each other's cores, so each of them is waited for while any is running. If
all that are left are paused, by another process's job that matters more, their units are cancelled: a script
that is over does not wait for others. After Ctrl-C the units in hand are ended, too.
"""

from __future__ import annotations

import atexit
import sys
import time

from malleable.live.clients.pool_member import members

PAUSED_SECONDS = 1.0
"""Seconds that all Executors may be paused at the end."""
LOOK_SECONDS = 0.02


def finish_before_exit() -> None:
    """Have units finished when Python ends, before all that has been made so far ends, such as a broker."""
    atexit.unregister(_finish)
    atexit.register(_finish)


def _finish() -> None:
    pools = [member.pool for member in members if not member.pool.join(0.0)]
    interrupted = issubclass(getattr(sys, "last_type", None) or Exception, KeyboardInterrupt)
    for pool in pools:
        if interrupted:
            pool.kill_workers()
        pool.close()
    moved = time.monotonic()
    while pools:
        pools = [pool for pool in pools if not pool.join(LOOK_SECONDS)]
        if any(pool.width_in_use for pool in pools):
            moved = time.monotonic()
        elif time.monotonic() - moved > PAUSED_SECONDS:
            for pool in pools:
                pool.kill_workers()
