"""The Executor: Python's own interface, on as many cores as the broker grants.

    with malleable.live.Executor("sweep", weight=2.0) as executor:
        outcomes = list(executor.map(function, inputs))

It has workers (`live.workers.contract`), which are a member of a broker (`clients.pool_member`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sized
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Never

from malleable.errors import ParameterError, UnsupportedError, did_you_mean
from malleable.live.broker.membership import JobRequest
from malleable.live.clients.ending import finish_before_exit
from malleable.live.clients.pool_member import IDLE_SECONDS, PoolMember, UnitsToCome
from malleable.live.workers.contract import LOCAL, Listeners, WorkerOptions, start_workers
from malleable.live.workers.counts import count
from malleable.live.workers.mapping import LazyExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Future
    from types import TracebackType

    from malleable.live.workers.contract import Workers
    from malleable.live.workers.mapping import Submitting


INSTEAD = {
    "mp_context": "leave it out: a process without threads forks the workers, which is safe",
    "chunksize": "leave it out: small units share messages by themselves",
    "n_jobs": "write max_workers=",
}
"""What to write in place of options that other Executors have."""


class Executor(LazyExecutor):
    """A `concurrent.futures.Executor` on as many cores as the broker grants, which changes while it works.

    Jobs of one `job_class` are alike: what is learned of one helps the others. `weight` says how much it
    matters that this job is done soon (a job of weight 2 counts as two); `units`, how many units it will have
    in all, where that is known. Each worker's BLAS and OpenMP use `threads` threads, and it takes as many
    cores. The job takes at most `max_cores`; at most `max_workers` units run at a time, for units that need
    much memory, say, and it takes no more cores than those can use. With `never_pause` a job that has started
    keeps a core. `memory`, in bytes, is a promise: the job starts when it fits beside the others. `broker` is
    the path of a broker's socket, or `embedded` for that of this process, which is the default if none runs
    on the machine. Each worker calls `initializer(*initargs)` before its first unit, and another takes its
    place after `max_tasks_per_child` units. `backend` names what carries out the units: `local`, worker
    processes of this machine. `progress=True` shows a bar of units on a terminal or in a notebook.

    A unit whose worker dies is run again, three times at most, so it should be one that may be run twice.
    Ctrl-C in a `with` block ends the units in hand.
    """

    def __init__(
        self,
        job_class: str = "python",
        weight: float | None = None,
        *,
        units: float | None = None,
        threads: int = 1,
        max_workers: int | None = None,
        max_cores: int | None = None,
        broker: str | None = None,
        backend: str = LOCAL,
        never_pause: bool = False,
        memory: float = 0.0,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        max_tasks_per_child: int | None = None,
        progress: bool = False,
        **others: Never,
    ) -> None:
        _check_names(job_class, others)
        threads = count("threads", threads)
        if max_workers is not None:
            max_workers = count("max_workers", max_workers)
        request = JobRequest(
            job_class, weight, units=units, memory=memory, never_pause=never_pause,
            max_cores=_most_cores(max_cores, max_workers, threads),
        )  # fmt: skip
        self._member = PoolMember(request, threads, max_workers, broker)
        member = self._member
        self._bar = _Bar(member) if progress else None
        self._workers = start_workers(
            backend,
            WorkerOptions(threads, initializer, initargs, max_tasks_per_child),
            Listeners(member.on_width, self._bar or member.on_progress, member.on_idle, IDLE_SECONDS),
        )
        weakref.finalize(self, self._workers.close).atexit = False
        member.attach(self._workers)
        try:
            member.has_units(0)
        except BaseException:
            self.shutdown()
            raise
        finish_before_exit()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called in a worker; what cannot be sent there is an error of the future."""
        future = self._workers.submit(fn, *args, **kwargs)
        self._member.has_units(1)
        return future

    def _taker(self, iterables: tuple[Iterable[Any], ...]) -> Submitting:
        return _Mapping(self, self._workers, self._member, iterables)

    @property
    def width(self) -> int:
        """How many cores it may use now; none while it is idle, as it then leaves them to others."""
        return self._member.cores

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more units, and end the workers when those submitted are done, or cancelled."""
        self._workers.close(cancel=cancel_futures)
        if wait:
            self._workers.join()
        if self._bar is not None:
            self._bar.close()

    def __repr__(self) -> str:
        done = self._workers.done
        return f"<Executor {self._member.job_class!r}: {self.width} cores, {done} units done>"

    def kill_workers(self) -> None:
        """End it now: the units that wait or are in hand are cancelled."""
        self._member.kill()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is not None and issubclass(exc_type, KeyboardInterrupt):
            self.kill_workers()
        self.shutdown()


class _Bar:
    """A bar of units, which hears of progress before the broker does."""

    def __init__(self, member: PoolMember) -> None:
        from malleable.progress import progress_bar  # noqa: PLC0415 - loads rich, which few need

        self._member, self._open = member, ExitStack()
        self._draw = self._open.enter_context(progress_bar("units", "starting"))
        self.close = self._open.close

    def __call__(self, done: int) -> None:
        self._member.on_progress(done)
        if self._draw is not None:
            self._draw(done, self._member.known)


def _check_names(job_class: object, others: Mapping[str, object]) -> None:
    """One line for those who expect the options of another Executor: what to write."""
    if isinstance(job_class, int):
        raise ParameterError(
            f"job_class must be a name, got {job_class!r}", f"write Executor(max_workers={job_class!r})"
        )
    for name in others:
        import inspect  # noqa: PLC0415 - only to say what is known

        known = [each for each in inspect.signature(Executor).parameters if each != "others"]
        raise UnsupportedError(
            f"Executor has no option {name!r}", INSTEAD.get(name) or did_you_mean(name, known)
        )


def _most_cores(max_cores: int | None, max_workers: int | None, threads: int) -> int | None:
    """The most cores that a job takes: as it says, and no more than its workers can use."""
    if max_cores is not None:
        max_cores = count("max_cores", max_cores)
    limits = [max_cores, None if max_workers is None else max_workers * threads]
    return min((limit for limit in limits if limit is not None), default=None)


class _Mapping:
    """The units of one `map`: known beforehand, if its input is a list or another thing with a length."""

    def __init__(
        self, executor: Executor, workers: Workers, member: PoolMember, iterables: tuple[Iterable[Any], ...]
    ) -> None:
        self._executor = executor  # its workers end when it is dropped
        self._workers, self._member = workers, member
        self.pack, self.window = workers.pack, workers.window
        sized = all(isinstance(each, Sized) for each in iterables)
        count = min(map(len, iterables), default=0) if sized else 0  # type: ignore[arg-type]
        self._to_come = UnitsToCome(count, open=not sized)
        member.expect(self._to_come)

    def submit_packed(self, function: Any, args: Any, kwargs: Any) -> Future[Any]:
        future = self._workers.submit_packed(function, args, kwargs)
        self._to_come.left = max(0, self._to_come.left - 1)
        self._member.has_units(1)
        return future

    def all_read(self) -> None:
        self._to_come.open = False
