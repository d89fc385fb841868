"""Carry out tasks on all cores, telling what is running; Ctrl-C ends at once, not after the longest task.

Unlike those of `malleable.execution.spread`, tasks hand in nothing half done: one counts when it is finished,
and is written down then. Workers can therefore simply be killed.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from malleable.execution.worker_processes import WorkerDiedError, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Report(NamedTuple):
    """How far a stage is."""

    stage: str
    """`computing` or `drawing`."""
    done: float
    total: float
    running: tuple[str, ...]
    """Names of the tasks under way."""
    seconds: float
    """Since the stage began."""

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes if it goes on like this; None if it is too early to say."""
        return self.seconds * (self.total - self.done) / self.done if self.done > 0.0 else None


class Task(Protocol):
    """What a task has to say of itself."""

    @property
    def label(self) -> str:
        """What it is called."""
        ...

    @property
    def weight(self) -> float:
        """How long it takes compared to others."""
        ...


def carry_out(
    stage: str,
    work: Callable[[Any], Any],
    tasks: Sequence[Task],
    keep: Callable[[int, Any], None],
    progress: Callable[[Report], None] | None = None,
    workers: int | None = None,
) -> None:
    """Have `work` done on every task, in order; `keep(position, outcome)` is called here as each one ends."""
    started, total, done = time.monotonic(), sum(task.weight for task in tasks), 0.0

    def keep_and_count(position: int, outcome: Any) -> None:
        nonlocal done
        keep(position, outcome)
        done += tasks[position].weight

    def report() -> None:
        if progress is not None:
            running = tuple(tasks[position].label for position in pool.running)
            progress(Report(stage, done, total, running, time.monotonic() - started))

    try:
        with WorkerPool(partial(_work, work, tasks), len(tasks), workers, prepare=_one_thread) as pool:
            pool.run(keep_and_count, report)
    except WorkerDiedError as death:
        hint = f"{death.hint}; the same command goes on from here"
        raise WorkerDiedError(death.problem, hint) from None


def _one_thread() -> None:
    """Keep linear algebra from starting threads of its own: there is a worker for every core.

    Where each of them has all cores, small matrices take ten times as long.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - it comes with an extra

    threadpool_limits(1)


def _work(work: Any, tasks: Sequence[Any], position: int) -> Any:
    """Carry out one task in a worker; an error names it."""
    task = tasks[position]
    try:
        return work(task)
    except Exception as error:
        error.add_note(f"in {task.label}")
        raise
