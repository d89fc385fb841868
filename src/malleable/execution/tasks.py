"""Spread tasks over processes, or over anything that speaks `concurrent.futures.Executor`.

A task is complete in itself, so outcomes do not depend on where it ran. Workers of our own report how far
they are in shared counters. Ctrl-C asks all tasks to stop, and each hands in what it has; a second Ctrl-C
kills the workers.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from malleable.engine.interruptible import POLL_SECONDS
from malleable.errors import ExecutionError, ParameterError
from malleable.execution.progress_counters import ProgressCounters
from malleable.execution.worker_processes import WorkerPool, checked_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def spread(
    function: Callable[[Task, Callable[[int, int], None] | None], Outcome],
    tasks: Sequence[Task],
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> list[Outcome | None]:
    """All outcomes in the order of the tasks; None for those that Ctrl-C kept from running."""
    checked_workers(workers)
    if executor is not None:
        if workers is not None:
            hint = "an executor has workers of its own"
            raise ParameterError("workers and an executor (--ray) exclude each other", hint)
        return _OnExecutor(function, tasks, executor, progress).run()
    if len(tasks) == 1:
        return [function(tasks[0], progress)]
    return _on_processes(function, tasks, progress, workers)


def _on_processes(
    function: Any, tasks: Sequence[Any], progress: Callable[[int, int], None] | None, workers: int | None
) -> list[Any]:
    """Tasks on processes of our own."""
    outcomes: list[Any] = [None] * len(tasks)
    counters = ProgressCounters(len(tasks))
    with WorkerPool(partial(_work, function, tasks, counters), len(tasks), workers) as pool:
        try:
            pool.run(outcomes.__setitem__, None if progress is None else lambda: progress(*counters.totals()))
        except KeyboardInterrupt:
            counters.stop()
            pool.start_no_more()
            while pool.running:
                # An error raised now comes too late to matter: the run is over.
                with suppress(Exception):
                    pool.run(outcomes.__setitem__)
    return outcomes


def _work(function: Any, tasks: Sequence[Any], counters: ProgressCounters, number: int) -> Any:
    """Carry out one task in a worker; None if it is too late to start."""

    def report(done: int, aim: int) -> None:
        counters.report(number, done, aim)
        if counters.stopping:
            raise KeyboardInterrupt

    try:
        return None if counters.stopping else function(tasks[number], report)
    except KeyboardInterrupt:
        return None


class _OnExecutor:
    """Tasks on an executor of the caller's, which tells only when one has ended."""

    def __init__(self, function: Any, tasks: Sequence[Any], executor: Executor, progress: Any) -> None:
        self.executor, self.progress = executor, progress
        self.outcomes: list[Any] = [None] * len(tasks)
        self.futures: dict[Future[Any], int] = {
            executor.submit(function, task): i for i, task in enumerate(tasks)
        }

    def run(self) -> list[Any]:
        """Wait for all tasks. After Ctrl-C those that have ended count; an error cancels the others."""
        try:
            self._collect()
        except KeyboardInterrupt:
            self._cancel()
        except BrokenProcessPool:
            hint = "did the system run out of memory? try fewer replications at a time"
            raise ExecutionError("a process of the executor died", hint) from None
        except BaseException:
            self._cancel()
            raise
        return self.outcomes

    def _collect(self) -> None:
        pending = set(self.futures)
        while pending:
            finished, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                self.outcomes[self.futures[future]] = future.result()
            if self.progress is not None:
                self.progress(len(self.futures) - len(pending), len(self.futures))

    def _cancel(self) -> None:
        for future in self.futures:
            future.cancel()
