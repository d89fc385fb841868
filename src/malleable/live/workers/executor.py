"""The pool as its users see it: a `concurrent.futures.Executor` with a width."""

from __future__ import annotations

import atexit
import itertools
import os
import weakref
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError, ParameterError
from malleable.live.system.widths import checked_width
from malleable.live.workers.by_value import dumps_by_value, name_of, pack
from malleable.live.workers.counts import count
from malleable.live.workers.functions import Functions
from malleable.live.workers.manager import Manager
from malleable.live.workers.mapping import LazyExecutor
from malleable.live.workers.reports import Reports
from malleable.live.workers.units import Unit, with_managed_objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.workers.functions import PackedFunction
    from malleable.live.workers.mapping import Submitting

WARM_SECONDS = 10.0
"""Seconds that a worker waits for a wider grant before it ends."""
_managers: weakref.WeakSet[Manager] = weakref.WeakSet()


class Pool(LazyExecutor):
    """Worker processes, of which `width` carry out units at a time; the width may change at any moment.

    Growing is in force at once; shrinking when the units in hand are done, which `on_width(k)` tells. At
    width 0 no unit starts. `on_progress(done)` tells how many units have ended. Both are called in the pool's
    thread and must return quickly. A unit whose worker dies is run again, three times at most, so it should
    be one that may be run twice. BLAS and OpenMP use `threads` threads in each worker. `on_idle()` tells that
    no unit has waited or been in hand for `idle_seconds`, and that the pool has ended. Each worker calls
    `initializer(*initargs)` before its first unit, and ends after `max_tasks_per_child` units.
    """

    def __init__(
        self,
        width: int | None = None,
        *,
        threads: int = 1,
        warm_seconds: float = WARM_SECONDS,
        on_width: Callable[[int], None] | None = None,
        on_progress: Callable[[int], None] | None = None,
        on_idle: Callable[[], None] | None = None,
        idle_seconds: float = 0.0,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        max_tasks_per_child: int | None = None,
    ) -> None:
        width = _available() if width is None else checked_width(width)
        reports = Reports(width, on_width, on_progress, on_idle, idle_seconds)
        if max_tasks_per_child is not None:
            max_tasks_per_child = count("max_tasks_per_child", max_tasks_per_child)
        self._functions = Functions()
        first = None if initializer is None else self._packed_initializer(initializer, initargs)
        self._manager = Manager(width, threads, warm_seconds, reports, first, max_tasks_per_child)
        self._numbers = itertools.count()
        self._owner = os.getpid()
        weakref.finalize(self, self._manager.close).atexit = False
        _managers.add(self._manager)
        self._manager.thread.start()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called in a worker; what cannot be sent there is an error of the future."""
        try:
            packed = self.pack(function)
        except ExecutionError as error:
            return self._failed(error)
        return self.submit_packed(packed, args, kwargs)

    def pack(self, function: Callable[..., Any]) -> PackedFunction:
        """Pack a function, for any number of units."""
        return self._functions.pack(function, name_of(function))

    def _packed_initializer(self, initializer: Callable[..., object], initargs: Any) -> PackedFunction:
        if not callable(initializer):
            raise ParameterError(f"initializer must be a function, got {initializer!r:.60}")
        if not isinstance(initargs, Iterable) or isinstance(initargs, str | bytes):
            problem = f"initargs must be a tuple, got {initargs!r:.60}"
            raise ParameterError(problem, f"for one argument write initargs=({initargs!r:.60},)")
        return self._functions.pack(partial(initializer, *initargs), f"{name_of(initializer)} with initargs")

    def submit_packed(self, function: PackedFunction, args: Any, kwargs: Any) -> Future[Any]:
        """Submit a call of a function that is packed already."""
        self._check_owner()
        try:
            arguments = pack((args, kwargs), f"an argument of {function.name}", dumps_by_value)
        except ExecutionError as error:
            return self._failed(error)
        unit = Unit(function, arguments, next(self._numbers), with_managed_objects((args, kwargs)))
        self._manager.waiting.put(unit)
        self._manager.wake()
        return unit.future

    def _taker(self, _iterables: tuple[Iterable[Any], ...]) -> Submitting:
        return self

    def window(self, function: PackedFunction) -> int:
        """How many units of a function keep the workers busy."""
        return max(self._manager.width, 1) * 2 * (1 + self._manager.waiting.times.batch(function))

    def all_read(self) -> None:
        """The input of a map has ended, which changes nothing here."""

    @property
    def width(self) -> int:
        """How many workers may carry out units."""
        return self._manager.width

    @property
    def width_in_use(self) -> int:
        """The width that is in force: larger than `width` while units of a wider time are in hand."""
        return self._manager.width_in_use

    @property
    def done(self) -> int:
        """How many units have ended."""
        return self._manager.done

    @property
    def idle(self) -> bool:
        """Whether no unit waits or is in hand; certain in a listener only."""
        return self._manager.idle

    def set_width(self, width: int) -> None:
        """Have that many workers carry out units from now on."""
        self._manager.set_width(checked_width(width))

    def set_cpus(self, cpus: Iterable[int]) -> None:
        """Have all workers, present and future, run on these CPUs."""
        self._manager.set_cpus(frozenset(cpus))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more units, and end the workers when those submitted are done, or cancelled."""
        self.close(cancel=cancel_futures)
        if wait:
            self.join()

    def cancel_waiting(self) -> None:
        """Cancel the units that wait now, and go on."""
        self._manager.cancel_waiting()

    def close(self, *, cancel: bool = False) -> None:
        """Take no more units, and end when there are none left; those that wait may be cancelled."""
        self._manager.cancelling = self._manager.cancelling or cancel
        self._manager.close()

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the end; whether it has come. A forked process does not wait for its parent's workers."""
        if self._owner == os.getpid():
            self._manager.thread.join(seconds)
        return self._owner != os.getpid() or not self._manager.thread.is_alive()

    def kill_workers(self) -> None:
        """End the pool now: the units that wait or are in hand are cancelled."""
        self._manager.kill()

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            hint = "make a pool of its own in a forked process"
            raise ExecutionError("this pool belongs to the process that made it", hint)

    def _failed(self, error: ExecutionError) -> Future[Any]:
        self._check_owner()
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


def _available() -> int:
    from malleable.execution.worker_processes import available  # noqa: PLC0415 - an Executor is told its width

    return available()


@atexit.register
def _finish() -> None:
    """When Python ends, let pools finish their units, as executors of Python do; cancel those that pause."""
    for manager in list(_managers):
        if manager.thread.is_alive():  # not in a forked process
            manager.cancelling = manager.cancelling or manager.width == 0
            manager.close()
            manager.thread.join()
