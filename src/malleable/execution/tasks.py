"""Spread tasks over processes, or over anything that speaks `concurrent.futures.Executor`.

A task is complete in itself, so outcomes do not depend on where it ran. Workers of our own report how far
they are on a shared board, whose last cell is a flag: Ctrl-C sets it, and every task hands in what it has. A
second Ctrl-C ends the workers as they are.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from malleable.errors import ExecutionError, ParameterError
from malleable.execution.worker_processes import POLL_SECONDS, Crew, checked_workers, context

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
        return _Foreign(function, tasks, executor, progress).run()
    if len(tasks) == 1:
        return [function(tasks[0], progress)]
    return _on_processes(function, tasks, progress, workers)


def _on_processes(
    function: Any, tasks: Sequence[Any], progress: Callable[[int, int], None] | None, workers: int | None
) -> list[Any]:
    """Tasks on processes of our own."""
    outcomes: list[Any] = [None] * len(tasks)
    board = context().RawArray("q", 2 * len(tasks) + 1)
    with Crew(partial(_work, function, tasks, board), len(tasks), workers) as crew:
        try:
            while crew.at_work:
                for position, outcome in crew.finished():
                    outcomes[position] = outcome
                if progress is not None:
                    progress(*_position(board))
        except KeyboardInterrupt:
            board[-1] = True
            crew.start_no_more()
            while crew.at_work:
                # Those that fail now would not have been heard of a moment ago.
                with suppress(Exception):
                    for position, outcome in crew.finished():
                        outcomes[position] = outcome
    return outcomes


def _position(board: Any) -> tuple[int, int]:
    """What is done, and of what."""
    done, aims = board[:-1:2], board[1:-1:2]
    started = [aim for aim in aims if aim > 0]
    # Tasks that have not started are taken to be like those that have.
    return sum(done), sum(started) * len(aims) // max(len(started), 1)


def _work(function: Any, tasks: Sequence[Any], board: Any, position: int) -> Any:
    """Carry out one task in a worker; None if it is too late to start."""

    def report(done: int, aim: int) -> None:
        board[2 * position], board[2 * position + 1] = done, aim
        if board[-1]:
            raise KeyboardInterrupt

    try:
        return None if board[-1] else function(tasks[position], report)
    except KeyboardInterrupt:
        return None


class _Foreign:
    """Tasks on somebody's executor, which tells only when one has ended."""

    def __init__(self, function: Any, tasks: Sequence[Any], executor: Executor, progress: Any) -> None:
        self.executor, self.progress = executor, progress
        self.outcomes: list[Any] = [None] * len(tasks)
        self.futures: dict[Future[Any], int] = {
            executor.submit(function, task): i for i, task in enumerate(tasks)
        }

    def run(self) -> list[Any]:
        """Wait for all; Ctrl-C keeps what there is, an error keeps the others from starting."""
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
