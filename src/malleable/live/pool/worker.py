"""What a worker of the pool does: carry out the units of each message, and answer each of them at once."""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import sys
import time
import traceback
import types
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError
from malleable.execution.worker_loop import RemoteTraceback, portable
from malleable.live.pool.by_value import dumps_by_value
from malleable.live.pool.units import LIMIT_SECONDS

if TYPE_CHECKING:
    from malleable.live.pool.channel import Channel

ANSWER = struct.Struct("!cd")
"""Before each answer: what it is, and the seconds that the unit took."""
RESULT, ERROR, HANDED_BACK = b"r", b"e", b"b"
KEPT = 64
"""Functions that a worker keeps unpacked."""


def work(channel: Channel, threads: int) -> None:
    """Carry out units until the channel ends."""
    functions = _Functions(threads)
    while (message := channel.receive()) is not None:
        begun = time.perf_counter()
        for i, (function, arguments) in enumerate(pickle.loads(message)):  # noqa: S301 - from our parent
            if i > 0 and time.perf_counter() - begun > LIMIT_SECONDS:
                channel.send(ANSWER.pack(HANDED_BACK, 0.0))
                break
            start = time.perf_counter()
            kind, answer = _carry_out(functions, function, arguments)
            _flush()
            channel.send(ANSWER.pack(kind, time.perf_counter() - start) + answer)


def _carry_out(functions: _Functions, function: bytes, arguments: bytes) -> tuple[bytes, bytes]:
    try:
        args, kwargs = pickle.loads(arguments)  # noqa: S301 - from our parent
        outcome = functions.get(function)(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - it is raised again by the future
        return ERROR, _packed_error(error)
    try:
        return RESULT, _dumps(outcome)
    except Exception as error:  # noqa: BLE001 - whatever a foreign class does when it is pickled
        problem = f"the result, a {type(outcome).__name__}, cannot be sent back: {error!s:.200}"
        return ERROR, _packed_error(ExecutionError(problem, "return plain data: numbers, lists, arrays"))


def _packed_error(error: BaseException) -> bytes:
    trace = RemoteTraceback("".join(traceback.format_exception(error)))
    return _dumps((portable(error, _dumps), trace))


def _dumps(what: Any) -> bytes:
    """Pickled; by value what this process cannot import, which is what came by value."""
    try:
        return pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - whatever a foreign class does when it is pickled
        return dumps_by_value(what)


class _Functions:
    """The functions that have come, unpacked, with their libraries held to the threads of this worker."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._kept: dict[bytes, Any] = {}
        self._modules = 0

    def get(self, packed: bytes) -> Any:
        if packed in self._kept:
            return self._kept[packed]
        function = pickle.loads(packed)  # noqa: S301 - from our parent
        self._limit_threads()
        if isinstance(function, types.FunctionType | types.BuiltinFunctionType):
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[packed] = function
        return function

    def _limit_threads(self) -> None:
        """Narrow BLAS and OpenMP, where they have been loaded in spite of the variables they read."""
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        with contextlib.suppress(ImportError):
            import threadpoolctl  # noqa: PLC0415 - an extra, and not free to import

            threadpoolctl.threadpool_limits(self._threads)


def _flush() -> None:
    """Let what a unit has printed be seen before its outcome: a worker may be killed at any time."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()


def end(status: int) -> None:
    """End a forked worker without what its parent wanted to do in the end."""
    _flush()
    os._exit(status)
