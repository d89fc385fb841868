"""Worker processes of this machine, one per unit in hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.live.workers.executor import Pool

if TYPE_CHECKING:
    from malleable.live.workers.contract import Listeners, WorkerOptions, Workers


def start(options: WorkerOptions, listeners: Listeners) -> Workers:
    """A pool without width, which the broker's first order gives it."""
    return Pool(
        0,
        threads=options.threads,
        on_width=listeners.on_width,
        on_progress=listeners.on_progress,
        on_idle=listeners.on_idle,
        idle_seconds=listeners.idle_seconds,
        initializer=options.initializer,
        initargs=options.initargs,
        max_tasks_per_child=options.max_tasks_per_child,
    )
