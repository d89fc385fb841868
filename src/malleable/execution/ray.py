"""Run tasks on a Ray cluster: an ordinary `concurrent.futures.Executor`. The only importer of ray.

    with RayExecutor("ray://head:10001") as executor:
        compare("paper", [64, 256], ["wham", "equi"], load=0.25, executor=executor)

The address may also be "auto" (a cluster that this machine belongs to) or "local" (one made for the purpose).
Every node needs malleable in the same version. Policies from files of yours travel with the tasks.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from malleable.errors import ExecutionError, to_install

if TYPE_CHECKING:
    from collections.abc import Callable

LOCAL = "local"
AUTO = "auto"
CLIENT = "ray://"
CLIENT_PORT = 10001
PATIENCE = 5.0
"""Seconds that a cluster may take to accept a connection, and to say a word; Ray itself waits for minutes."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client begins in HTTP/2, which Ray speaks: the preface and empty settings (RFC 9113, 3.4)."""
RETRIES = "8"
"""How often, once a second, Ray asks a server that does not know it; 20 without this."""
START = "start one with `ray start --head`, or give --ray local for a cluster of this machine"


class RayExecutor(Executor):
    """Tasks on the Ray cluster at `address`; leaving it disconnects, and ends a local cluster."""

    def __init__(self, address: str = AUTO, **options: Any) -> None:
        self._ray = _import()
        _check(address)
        try:
            self._ray.init(
                None if address == LOCAL else address, log_to_driver=False, logging_level="error", **options
            )
        except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise _no_cluster(address, reason) from None
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


def _check(address: str) -> None:
    """See that a Ray server answers at the address before Ray itself waits for one."""
    if address.startswith(CLIENT) and importlib.util.find_spec("grpc") is None:
        hint = "pip install 'malleable[ray]', which brings ray[client]"
        raise ExecutionError(f"{CLIENT} addresses need ray[client], which is not installed", hint)
    asked = os.environ.get("RAY_ADDRESS", "") if address == AUTO else address
    if asked in {"", AUTO, LOCAL}:
        return
    try:
        place = urlsplit(asked if "://" in asked else f"//{asked}")
        host, port = place.hostname, place.port
    except ValueError as error:
        raise _no_cluster(address, str(error)) from None
    if host is None or (port is None and not asked.startswith(CLIENT)):
        raise _no_cluster(address, "this is no host:port")
    try:
        with socket.create_connection((host, port or CLIENT_PORT), timeout=PATIENCE) as line:
            if os.environ.get("RAY_USE_TLS", "0") in {"", "0"}:
                line.sendall(HELLO)
                if line.recv(4)[3:] != HELLO[-6:-5]:
                    raise _no_cluster(address, "what answers there is not Ray")
    except TimeoutError:
        raise _no_cluster(address, "no answer") from None
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error) or type(error).__name__) from None


def _no_cluster(address: str, reason: str) -> ExecutionError:
    return ExecutionError(f"cannot connect to a Ray cluster at {address!r}: {reason:.120}", START)


def _import() -> Any:
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", RETRIES)  # read when it is imported
    try:
        import ray  # noqa: PLC0415 - an extra, and heavy
    except ImportError:
        problem = "running on a Ray cluster needs ray, which is not installed"
        raise ExecutionError(problem, to_install("ray")) from None
    return ray
