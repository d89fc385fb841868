"""Worker processes of our own: they carry out numbered tasks and end when this process does, however it ends.

They are forked where the system can, so that tasks reach them without pickling and may hold any function. A
worker that dies is told from one that raises: the first has no more to say than the signal that ended it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from contextlib import suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from malleable.errors import ExecutionError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL_SECONDS = 0.1
"""Seconds between two looks at the workers."""
GLANCE_AT_PARENT = 0.5
"""Seconds between two looks of a worker at its parent, where the system does not tell."""
PR_SET_PDEATHSIG = 1
"""From Linux's prctl.h: have the kernel send a signal when the parent dies."""
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
            "leave workers out for one a processor",
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


class _Trace(Exception):  # noqa: N818 - it stands for one
    """The traceback of what a task raised in a worker, for those who debug it."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Crew:
    """Workers at the tasks 0, 1, …; whoever leaves the `with` early, by an error or Ctrl-C, ends them all."""

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
        # What this process answers to is for it to notice, also when a whole group of processes is sent it.
        deaf = [s for s in _stop_signals() if callable(signal.getsignal(s))]
        try:
            for _ in range(min(tasks, checked_workers(workers))):
                self._start(work, prepare, deaf)
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
                worker.process.join(GLANCE_AT_PARENT)
        self._end()

    @property
    def at_work(self) -> bool:
        """Whether there is something to wait for."""
        return bool(self._busy)

    def start_no_more(self) -> None:
        """Let the tasks that are under way end, and begin no other."""
        self._waiting.clear()

    def finished(self, seconds: float = POLL_SECONDS) -> Iterator[tuple[int, Any]]:
        """Number and outcome of tasks that have ended after a while; what a task raised is raised here."""
        ready = wait([worker.pipe for worker in self._busy], seconds)
        for worker in [worker for worker in self._busy if worker.pipe in ready]:
            position = self._busy.pop(worker)
            try:
                good, outcome = worker.pipe.recv()
            except (EOFError, OSError):
                raise self._death(worker) from None
            self._employ(worker)
            if not good:
                error, trace = outcome
                raise error from trace
            yield position, outcome

    def _start(self, work: Any, prepare: Any, deaf: list[signal.Signals]) -> None:
        ours, theirs = context().Pipe()
        process = context().Process(target=_serve, args=(work, theirs, os.getpid(), deaf, prepare))
        with warnings.catch_warnings():
            # Newer Pythons warn of forking beside threads; those of NumPy's BLAS survive it.
            warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
            process.start()
        theirs.close()
        self._employ(_Worker(process, ours))

    def _employ(self, worker: _Worker) -> None:
        """Give a worker the next task."""
        if not self._waiting:
            self._idle.append(worker)
            return
        self._busy[worker] = self._waiting.popleft()
        with suppress(OSError):  # of one that has died, which is noticed when its answer is read
            worker.pipe.send(self._busy[worker])

    def _end(self) -> None:
        """End all workers: none of them has anything that is not known here."""
        for worker in (*self._busy, *self._idle):
            worker.process.kill()
        for worker in (*self._busy, *self._idle):
            worker.process.join()
            worker.pipe.close()
        self._busy, self._idle = {}, []

    def _death(self, worker: _Worker) -> WorkerDiedError:
        """What to say of a worker that died."""
        worker.process.join(GLANCE_AT_PARENT)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        return WorkerDiedError(*_obituary(worker.process.exitcode))


def _obituary(code: int) -> tuple[str, str]:
    """Problem and hint of a worker that ended with an exit code; a negative one is a signal."""
    if code >= 0:
        return f"a worker process died: it exited with status {code}", "does a policy of yours end it?"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        hint = "did the system run out of memory? try fewer at a time with --workers (workers=)"
    elif name in CRASHES:
        hint = "compiled code crashed; if the policy is yours, --interpreted (interpreted=True) shows where"
    else:
        hint = "somebody ended it; run it again"
    return f"a worker process died: {name}", hint


def _stop_signals() -> list[signal.Signals]:
    """The signals that ask a program to stop; not all systems have them all."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _serve(work: Any, pipe: Any, parent: int, deaf: list[signal.Signals], prepare: Any) -> None:
    """Be a worker."""
    _follow(parent)
    for signum in deaf:
        signal.signal(signum, signal.SIG_IGN)
    if prepare is not None:
        prepare()
    while (position := pipe.recv()) is not None:
        try:
            answer = True, work(position)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the parent
            answer = False, (_portable(error), _Trace("".join(traceback.format_exception(error))))
        try:
            pipe.send(answer)
        except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
            pipe.send((False, (ExecutionError(f"an outcome cannot be handed over: {error!s:.200}"), None)))


def _portable(error: BaseException) -> BaseException:
    """The error, or where that cannot travel between processes one that tells of it."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - whatever a foreign class does when it is pickled
        return ExecutionError(f"a task raised {type(error).__name__}: {error!s:.200}")
    return error


def _follow(parent: int) -> None:
    """Have this process end when its parent does, even if that is killed."""
    if not _told_by_the_kernel():
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    elif os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _told_by_the_kernel() -> bool:
    """Ask to be killed when the parent dies; whether the system can do that."""
    if sys.platform != "linux":
        return False
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0)
    return False


def _watch(parent: int) -> None:
    """Look at the parent now and then; compiled code does not keep this thread from it."""
    while os.getppid() == parent:
        time.sleep(GLANCE_AT_PARENT)
    os._exit(1)
