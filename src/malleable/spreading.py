"""Spread tasks over processes, or over anything that speaks `concurrent.futures.Executor`.

A task is complete in itself, so outcomes do not depend on where it ran. Workers of our own report how far
they are on a shared board and look at a shared flag: Ctrl-C sets it, and every task hands in what it has.
They are forked where the system can, so that tasks reach them without pickling and may hold any function.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, TypeVar

from malleable.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
GLANCE = 0.1
"""Seconds between two looks at the workers."""


class _Bench:
    """What a worker process holds: the tasks, the board and the flag."""

    function: Any = None
    tasks: Sequence[Any] = ()
    board: Any = None
    stop: Any = None


def spread(
    function: Callable[[Task, Callable[[int, int], None] | None], Outcome],
    tasks: Sequence[Task],
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome | None]:
    """All outcomes in the order of the tasks; None for those that Ctrl-C kept from running."""
    if executor is not None:
        return _Foreign(function, tasks, executor, progress).run()
    if len(tasks) == 1:
        return [function(tasks[0], progress)]
    return _Local(function, tasks, progress).run()


class _Spread:
    """Tasks under way: wait for them, tell how far they are, stop them when asked to."""

    def __init__(
        self, function: Any, tasks: Sequence[Any], progress: Callable[[int, int], None] | None
    ) -> None:
        self.function, self.tasks, self.progress = function, tasks, progress
        self.outcomes: list[Any] = [None] * len(tasks)
        self.futures: dict[Future[Any], int] = {}

    def collect(self) -> None:
        """Wait for all; Ctrl-C keeps what there is, an error stops the others."""
        try:
            pending = set(self.futures)
            while pending:
                finished, pending = wait(pending, timeout=GLANCE, return_when=FIRST_COMPLETED)
                self.keep(finished)
                if self.progress is not None:
                    self.progress(*self.position(len(self.tasks) - len(pending)))
        except KeyboardInterrupt:
            self.stop()
        except BrokenProcessPool:
            hint = "did the system run out of memory? try fewer replications at a time"
            raise ExecutionError("a worker process died", hint) from None
        except BaseException:
            self.stop()
            raise

    def keep(self, finished: set[Future[Any]]) -> None:
        """Note the outcomes of finished tasks."""
        for future in finished:
            self.outcomes[self.futures[future]] = future.result()

    def position(self, finished: int) -> tuple[int, int]:
        """What is done, and of what."""
        return finished, len(self.tasks)

    def stop(self) -> None:
        """Keep tasks from starting."""
        for future in self.futures:
            future.cancel()


class _Foreign(_Spread):
    """Tasks on somebody's executor, which tells only when one has ended."""

    def __init__(self, function: Any, tasks: Any, executor: Executor, progress: Any) -> None:
        super().__init__(function, tasks, progress)
        self.executor = executor

    def run(self) -> list[Any]:
        self.futures = {self.executor.submit(self.function, task): i for i, task in enumerate(self.tasks)}
        self.collect()
        return self.outcomes


class _Local(_Spread):
    """Tasks on processes of our own."""

    def run(self) -> list[Any]:
        context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
        self.board = context.RawArray("q", 2 * len(self.tasks))
        self.flag = context.Event()
        with ProcessPoolExecutor(
            min(len(self.tasks), os.cpu_count() or 1),
            mp_context=context,
            initializer=_start,
            initargs=(self.function, self.tasks, self.board, self.flag),
        ) as pool:
            with warnings.catch_warnings():
                # Newer Pythons warn of forking beside threads; those of NumPy's BLAS survive it.
                warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
                self.futures = {pool.submit(_work, i): i for i in range(len(self.tasks))}
            self.collect()
        return self.outcomes

    def position(self, finished: int) -> tuple[int, int]:  # noqa: ARG002 - the board knows better
        done, aims = self.board[::2], self.board[1::2]
        started = [aim for aim in aims if aim > 0]
        # Tasks that have not started are taken to be like those that have.
        return sum(done), sum(started) * len(aims) // max(len(started), 1)

    def stop(self) -> None:
        """Have every task hand in what it has, and wait for that."""
        self.flag.set()
        super().stop()
        going = {future for future in self.futures if not future.cancelled()}
        ended, _ = wait(going)
        self.keep({future for future in ended if future.exception() is None})


def _start(function: Any, tasks: Sequence[Any], board: Any, stop: Any) -> None:
    """Set up a worker; Ctrl-C is for the parent to notice."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Bench.function, _Bench.tasks, _Bench.board, _Bench.stop = function, tasks, board, stop


def _work(position: int) -> Any:
    """Carry out one task in a worker; None if it is too late to start."""

    def report(done: int, aim: int) -> None:
        _Bench.board[2 * position], _Bench.board[2 * position + 1] = done, aim
        if _Bench.stop.is_set():
            raise KeyboardInterrupt

    return None if _Bench.stop.is_set() else _Bench.function(_Bench.tasks[position], report)
