"""joblib on as many cores as the broker grants: what scikit-learn's `n_jobs=-1` uses becomes malleable.

    import malleable.live.joblib
    with joblib.parallel_config(backend="malleable"):
        search.fit(X, y)

A call of `joblib.Parallel` is a job; a batch of its tasks is a unit. Batches are shorter than those of other
backends, because a job gives a core back when the unit in hand is done. Worker processes are kept for the
next calls, those of the last few sets of options. Parallel calls inside a task run in sequence: the cores are
in use already.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import Executor as AnyExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError, MalleableError
from malleable.execution.worker_processes import available
from malleable.live.clients.executor import Executor
from malleable.live.clients.shared_arrays import SharedArrays, call_packed
from malleable.live.system.listeners import tell
from malleable.live.workers.by_value import dumps_by_value, pack

try:
    from joblib.parallel import (
        AutoBatchingMixin,
        FallbackToBackend,
        ParallelBackendBase,
        SequentialBackend,
        register_parallel_backend,
    )
except ImportError:
    raise ExecutionError("this needs joblib, which is not installed", "pip install joblib") from None

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE_BYTES = 1_000_000
"""Arrays from this size on are shared, unless joblib is told otherwise."""
MOST_KEPT = 4
"""Executors that are kept for further calls; each has a thread, a fork server, and perhaps workers."""
_kept: list[tuple[tuple[Any, ...], Executor]] = []
"""Executors that no call uses, with the options that they were made with, the one used last at the end."""
_keeping = threading.Lock()


def _take(key: tuple[Any, ...]) -> Executor | None:
    """An Executor with these options that no call uses."""
    with _keeping:
        for place in reversed(range(len(_kept))):
            if _kept[place][0] == key:
                return _kept.pop(place)[1]
    return None


def _keep(key: tuple[Any, ...], executor: Executor) -> None:
    """Keep an Executor for the next call; of too many, end the one that was used longest ago."""
    with _keeping:
        _kept.append((key, executor))
        own = [entry for entry in _kept if entry[0][0] == os.getpid()]  # others are a parent's
        ended = own[:-MOST_KEPT]
        for entry in ended:
            _kept.remove(entry)
    for _, each in ended:
        each.shutdown(wait=False)


class MalleableBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # untyped
    """The backend named "malleable"; options are those of `malleable.live.Executor`."""

    supports_retrieve_callback = True
    supports_inner_max_num_threads = True
    default_n_jobs = -1
    MIN_IDEAL_BATCH_DURATION = 0.02
    MAX_IDEAL_BATCH_DURATION = 0.25

    def __init__(
        self,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
        job_class: str = "joblib",
        **options: Any,
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._options = {"job_class": job_class, "threads": inner_max_num_threads or 1, **options}
        self._executor: Executor | None = None
        self._arrays: SharedArrays | None = None
        self._callbacks: AnyExecutor | None = None
        self._key: tuple[Any, ...] = ()

    @property
    def supports_sharedmem(self) -> bool:
        """Whether tasks see the caller's memory: those of calls inside a task do, as they run in sequence."""
        return (self.nesting_level or 0) > 0

    uses_threads = supports_sharedmem

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """The most tasks at a time: as many as there are CPUs, if they were all granted."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None or self.supports_sharedmem:
            return 1
        return n_jobs if n_jobs > 0 else max(available() + 1 + n_jobs, 1)

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        temp_folder: str | None = None,
        max_nbytes: int | None = LARGE_BYTES,
        mmap_mode: str | None = "r",
        **_others: Any,
    ) -> int:
        """Have an Executor for a call, one that was used before if there is one."""
        most = self.effective_n_jobs(n_jobs)
        if most == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        options = {**self._options, "max_workers": None if n_jobs == -1 else most}
        self._key = os.getpid(), *sorted(options.items(), key=str)
        self._executor = _take(self._key) or Executor(**options)
        self._arrays = SharedArrays(max_nbytes, temp_folder) if max_nbytes and mmap_mode else None
        # What joblib does when a batch is done, such as packing the next one, must not hold the pool up.
        self._callbacks = ThreadPoolExecutor(1, "malleable-joblib")
        return most

    def submit(self, func: Any, callback: Callable[[Future[Any]], Any] | None = None) -> Future[Any]:
        """Have a batch carried out; errors of any kind are those of the future."""
        future = self._submit(func)
        if callback is not None:
            future.add_done_callback(lambda done: self._call_back(callback, done))
        return future

    def _submit(self, batch: Any) -> Future[Any]:
        failed: Future[Any] = Future()
        executor, arrays = self._executor, self._arrays
        if executor is None:
            failed.set_exception(CancelledError())
            return failed
        try:
            dumps = dumps_by_value if arrays is None else arrays.dumps
            return executor.submit(call_packed, pack(batch, "a task", dumps))
        except (
            MalleableError,
            RuntimeError,
        ) as error:  # it cannot be sent, is refused, or is over
            failed.set_exception(error)
            return failed

    def _call_back(self, callback: Callable[[Future[Any]], Any], done: Future[Any]) -> None:
        callbacks = self._callbacks
        if callbacks is not None:
            with suppress(RuntimeError):  # the call is over
                callbacks.submit(tell, callback, done)

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The results of a batch."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """End all batches now, those in hand too."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.kill_workers()
            executor.shutdown()
        self.terminate()
        if ensure_ready:
            self.configure(self.parallel.n_jobs, self.parallel, **self.parallel._backend_kwargs)  # noqa: SLF001

    def terminate(self) -> None:
        """Keep the Executor for the next call; it is idle, so it holds no core."""
        if self._executor is not None:
            _keep(self._key, self._executor)
        if self._callbacks is not None:
            self._callbacks.shutdown(wait=False)
        if self._arrays is not None:
            self._arrays.close()
        self._executor = self._callbacks = self._arrays = None
        self.reset_batch_stats()

    def get_nested_backend(self) -> tuple[ParallelBackendBase, int | None]:
        """Calls inside a task run in sequence; unpickling this makes the backend known in the worker, too."""
        return MalleableBackend(nesting_level=(self.nesting_level or 0) + 1), None


register_parallel_backend("malleable", MalleableBackend)
