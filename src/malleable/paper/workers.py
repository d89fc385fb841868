"""Carry out tasks on all cores, telling what is running; Ctrl-C ends at once, not after the longest task.

Unlike `malleable.spreading`, nothing is handed in half done: a task counts when it is finished, and who
finishes one writes it down. Workers can therefore simply be ended.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from malleable.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GLANCE = 0.1
"""Seconds between two looks at the workers."""


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
        """How long the rest takes if it goes on like this; None if nobody can know yet."""
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


class _Bench:
    """What a worker process holds."""

    work: Any = None
    tasks: Sequence[Any] = ()
    board: Any = None


def carry_out(
    stage: str,
    work: Callable[[Any], Any],
    tasks: Sequence[Task],
    keep: Callable[[int, Any], None],
    progress: Callable[[Report], None] | None = None,
) -> None:
    """Have `work` done on every task, in order; `keep(position, outcome)` is called here as each one ends."""
    if not tasks:
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    board = context.RawArray("b", len(tasks))
    workers = min(len(tasks), os.cpu_count() or 1)
    pool = ProcessPoolExecutor(workers, context, _start, (work, tasks, board))
    try:
        _collect(stage, tasks, board, pool, keep, progress)
    except BaseException as error:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            hint = "did the system run out of memory? the same command goes on from here"
            raise ExecutionError(f"a worker process died while {stage}", hint) from None
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _collect(
    stage: str,
    tasks: Sequence[Task],
    board: Any,
    pool: ProcessPoolExecutor,
    keep: Callable[[int, Any], None],
    progress: Callable[[Report], None] | None,
) -> None:
    """Wait for all; an error of one is raised here."""
    started, total, done = time.monotonic(), sum(task.weight for task in tasks), 0.0
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside threads; those of NumPy's BLAS survive it.
        warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
        futures = {pool.submit(_work, position): position for position in range(len(tasks))}
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, timeout=GLANCE, return_when=FIRST_COMPLETED)
        for future in finished:
            keep(futures[future], future.result())
            board[futures[future]] = 0
            done += tasks[futures[future]].weight
        if progress is not None:
            running = tuple(task.label for task, busy in zip(tasks, board, strict=True) if busy)
            progress(Report(stage, done, total, running, time.monotonic() - started))


def _start(work: Any, tasks: Sequence[Any], board: Any) -> None:
    """Set up a worker; Ctrl-C is for the parent to notice.

    There is a worker for every core, so linear algebra must not start threads of its own: where each of them
    has all cores, small matrices take ten times as long.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - it comes with an extra

    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Bench.work, _Bench.tasks, _Bench.board = work, tasks, board


def _work(position: int) -> Any:
    """Carry out one task in a worker; an error names it."""
    task = _Bench.tasks[position]
    _Bench.board[position] = 1
    try:
        return _Bench.work(task)
    except Exception as error:
        error.add_note(f"in {task.label}")
        raise
