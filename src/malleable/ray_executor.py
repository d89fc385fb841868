"""Run tasks on a Ray cluster: an ordinary `concurrent.futures.Executor`. The only importer of ray.

    with RayExecutor("ray://head:10001") as executor:
        compare("paper", [64, 256], ["wham", "equi"], load=0.25, executor=executor)

The address may also be "auto" (a cluster that this machine belongs to) or "local" (one made for the purpose).
Every node needs malleable in the same version. Policies from files of yours travel with the tasks.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, Self

from malleable.errors import ExecutionError, to_install

if TYPE_CHECKING:
    from collections.abc import Callable

LOCAL = "local"


class RayExecutor(Executor):
    """Tasks on the Ray cluster at `address`; leaving it disconnects, and ends a local cluster."""

    def __init__(self, address: str = "auto", **options: Any) -> None:
        self._ray = _import()
        try:
            self._ray.init(
                None if address == LOCAL else address, log_to_driver=False, logging_level="error", **options
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            hint = "start one with `ray start --head`, or give --ray local for a cluster of this machine"
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ExecutionError(
                f"cannot connect to a Ray cluster at {address!r}: {reason:.120}", hint
            ) from None
        self._remote = self._ray.remote(_call)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a task off; its future holds the outcome, or the error that it ended with."""
        _send_along(self._ray)
        ref = self._remote.remote(function, args, kwargs)
        future: Future[Any] = _RayFuture(self._ray, ref)
        future.set_running_or_notify_cancel()
        ref.future().add_done_callback(lambda done: _pass_on(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Disconnect."""
        self._ray.shutdown()

    def __enter__(self) -> Self:
        return self


class _RayFuture(Future[Any]):
    """A future whose cancellation reaches the cluster, even after the task has started."""

    def __init__(self, ray: Any, ref: Any) -> None:
        super().__init__()
        self._ray, self._ref = ray, ref

    def cancel(self) -> bool:
        if not self.done():
            self._ray.cancel(self._ref)
        return super().cancel()


def _call(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _pass_on(done: Future[Any], future: Future[Any]) -> None:
    """Copy the outcome; Ray wraps errors in one of its own, whose cause is what was raised."""
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(getattr(error, "cause", None) or error)


def _send_along(ray: Any) -> None:
    """Have modules that came from a path of the user's pickled whole: nodes cannot import them."""
    for name, module in list(sys.modules.items()):
        if os.sep in name:
            ray.cloudpickle.register_pickle_by_value(module)


def _import() -> Any:
    try:
        import ray  # noqa: PLC0415 - an extra, and heavy
    except ImportError:
        problem = "running on a Ray cluster needs ray, which is not installed"
        raise ExecutionError(problem, to_install("ray")) from None
    return ray
