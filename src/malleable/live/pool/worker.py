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
from malleable.live.pool.functions import Recent
from malleable.live.pool.units import LIMIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.pool.channel import Channel
    from malleable.live.pool.functions import InFile, InMessage

ANSWER = struct.Struct("!ciqd")
"""Before each answer: what it is, the process, the number of the unit, and the seconds that it took."""
RESULT, ERROR, HANDED_BACK, UNREADY = b"r", b"e", b"b", b"u"
NO_UNIT = -1
NO_ARGUMENTS = pickle.dumps(((), {}))


def work(channel: Channel, threads: int) -> None:
    """Carry out units until the channel ends."""
    line = _Line(channel)
    functions = _Functions(threads)
    while (message := channel.receive()) is not None:
        key, content, units = pickle.loads(message)  # noqa: S301 - from our parent
        function = functions.found(key, content)
        if units is None:
            kind, answer = _carry_out(function, NO_ARGUMENTS)
            if kind == ERROR:
                line.say(UNREADY, NO_UNIT, 0.0, answer)
            continue
        begun = time.perf_counter()
        for i, (number, arguments) in enumerate(units):
            if i > 0 and time.perf_counter() - begun > LIMIT_SECONDS:
                line.say(HANDED_BACK, number)
                break
            start = time.perf_counter()
            kind, answer = _carry_out(function, arguments)
            line.say(kind, number, time.perf_counter() - start, answer)


class _Line:
    """Where a worker answers. A unit may fork: the other process comes here too, and ends without a word."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()

    def say(self, kind: bytes, number: int, seconds: float = 0.0, answer: bytes = b"") -> None:
        if os.getpid() != self._pid:
            os._exit(0 if kind == RESULT else 1)
        _flush()
        self._channel.send(ANSWER.pack(kind, self._pid, number, seconds) + answer)


def _carry_out(function: Callable[[], Any], arguments: bytes) -> tuple[bytes, bytes]:
    try:
        args, kwargs = pickle.loads(arguments)  # noqa: S301 - from our parent
        outcome = function()(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - it is raised again by the future
        return ERROR, _packed_error(error)
    try:
        return RESULT, _dumps(outcome)
    except BaseException as error:  # noqa: BLE001 - a foreign class may even raise SystemExit here
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
    """The functions that have come, with their libraries held to the threads of this worker."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._kept: Recent[Callable[[], Any]] = Recent()
        self._modules = 0

    def found(self, key: bytes, content: InMessage | InFile | None) -> Callable[[], Any]:
        """What gives the function of a message: one that comes with it, or that came before."""
        kept = self._kept.get(key)
        if kept is None and content is not None:
            kept = self._giver(content)
            self._kept.put(key, kept, large=content.large)
        if kept is None:
            raise LookupError("a function was not sent")
        return kept

    def _giver(self, content: InMessage | InFile) -> Callable[[], Any]:
        make: Callable[[], Any] | None = None

        def give() -> Any:
            nonlocal make
            make = make or content.opened()
            function = make()
            self._limit_threads()
            if isinstance(function, types.FunctionType | types.BuiltinFunctionType):
                make = lambda: function  # noqa: E731 - the rest of what was sent is dropped
            return function

        return give

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
