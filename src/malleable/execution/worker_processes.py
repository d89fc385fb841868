"""A pool of worker processes: they carry out numbered tasks and end when this process does, however it ends.

They are forked where the system can, so that tasks reach them without pickling and may hold any function. A
task that raises an error has it raised here; of a worker that dies only its exit code is known.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
from collections import deque
from contextlib import suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from malleable.engine.interruptible import POLL_SECONDS
from malleable.errors import ExecutionError, ParameterError
from malleable.execution.worker_loop import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDING_SECONDS = 0.5
"""Seconds that a worker has to end by itself before it is killed."""
CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV"}


def available() -> int:
    """On how many processors this process may run: those of its affinity mask, where the system has one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_workers(workers: Any) -> int:
    """How many worker processes to use at most; None for as many as there are processors for us."""
    if workers is None:
        return available()
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ParameterError(
            f"workers must be a whole number of at least 1, got {workers!r}",
            "leave workers out for one per processor",
        )
    return workers


def context() -> Any:
    """How workers are started, and where memory that they share comes from."""
    return multiprocessing.get_context("fork" if sys.platform == "linux" else None)


class WorkerDiedError(ExecutionError):
    """A worker ended without an answer."""


class _Worker(NamedTuple):
    process: Any
    pipe: Any


class WorkerPool:
    """Workers for the tasks 0, 1, …; leaving the `with` early, by an error or Ctrl-C, kills them all."""

    def __init__(
        self,
        work: Callable[[int], Any],
        tasks: int,
        workers: int | None = None,
        *,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self._waiting = deque(range(tasks))
        self._busy: dict[_Worker, int] = {}
        self._idle: list[_Worker] = []
        # Workers ignore the signals that this process handles: Ctrl-C reaches all processes of a terminal.
        ignored = [s for s in _stop_signals() if callable(signal.getsignal(s))]
        try:
            for _ in range(min(tasks, checked_workers(workers))):
                self._start(work, prepare, ignored)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for worker in self._idle:
                with suppress(OSError):
                    worker.pipe.send(None)
            for worker in self._idle:
                worker.process.join(ENDING_SECONDS)
        self._end()

    @property
    def running(self) -> list[int]:
        """Numbers of the tasks under way."""
        return sorted(self._busy.values())

    def run(self, keep: Callable[[int, Any], None], after_poll: Callable[[], None] | None = None) -> None:
        """Wait for all tasks: `keep(number, outcome)` as each ends, `after_poll()` ten times a second."""
        while self.running:
            for number, outcome in self.finished():
                keep(number, outcome)
            if after_poll is not None:
                after_poll()

    def start_no_more(self) -> None:
        """Let the tasks that are under way end, and begin no other."""
        self._waiting.clear()

    def finished(self, seconds: float = POLL_SECONDS) -> Iterator[tuple[int, Any]]:
        """Number and outcome of the tasks that end within a while; what a task raises is raised here."""
        ready = wait([worker.pipe for worker in self._busy], seconds)
        for worker in [worker for worker in self._busy if worker.pipe in ready]:
            number = self._busy.pop(worker)
            try:
                good, outcome = worker.pipe.recv()
            except (EOFError, OSError):
                raise self._death_of(worker) from None
            self._assign(worker)
            if not good:
                error, trace = outcome
                raise error from trace
            yield number, outcome

    def _start(self, work: Any, prepare: Any, ignored: list[signal.Signals]) -> None:
        ours, theirs = context().Pipe()
        process = context().Process(target=serve, args=(work, theirs, os.getpid(), ignored, prepare))
        with warnings.catch_warnings():
            # Newer Pythons warn of forking beside threads; those of NumPy's BLAS survive it.
            warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
            process.start()
        theirs.close()
        self._assign(_Worker(process, ours))

    def _assign(self, worker: _Worker) -> None:
        """Give a worker the next task."""
        if not self._waiting:
            self._idle.append(worker)
            return
        self._busy[worker] = self._waiting.popleft()
        with suppress(OSError):  # a worker that has died is noticed when its answer is read
            worker.pipe.send(self._busy[worker])

    def _end(self) -> None:
        """Kill all workers: what they had to say has been read."""
        for worker in (*self._busy, *self._idle):
            worker.process.kill()
        for worker in (*self._busy, *self._idle):
            worker.process.join()
            worker.pipe.close()
        self._busy, self._idle = {}, []

    def _death_of(self, worker: _Worker) -> WorkerDiedError:
        """The error for a worker that died."""
        worker.process.join(ENDING_SECONDS)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        return WorkerDiedError(*cause_of_death(worker.process.exitcode))


class DeathHints(NamedTuple):
    """What to do about a worker that exited, was killed as if for want of memory, or crashed."""

    exited: str
    killed: str
    crashed: str


OF_SIMULATIONS = DeathHints(
    exited="does a policy of yours end it?",
    killed="did the system run out of memory? try fewer at a time with --workers (workers=)",
    crashed="compiled code crashed; if the policy is yours, --interpreted (interpreted=True) shows where",
)


def cause_of_death(code: int, hints: DeathHints = OF_SIMULATIONS) -> tuple[str, str]:
    """Problem and hint for the exit code of a worker; a negative one is a signal."""
    if code >= 0:
        return f"a worker process died: it exited with status {code}", hints.exited
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        hint = hints.killed
    elif name in CRASHES:
        hint = hints.crashed
    else:
        hint = "it was ended from outside; run it again"
    return f"a worker process died: {name}", hint


def _stop_signals() -> list[signal.Signals]:
    """The signals that ask a program to stop; not all systems have them all."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]
