"""What a worker of the pool does: carry out the units of each message, and answer each of them at once."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import struct
import sys
import time
import traceback
import types
from functools import partial
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError
from malleable.execution.worker_loop import RemoteTraceback, portable
from malleable.live.workers.by_value import dumps_by_value
from malleable.live.workers.functions import Recent

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.workers.channel import Channel
    from malleable.live.workers.functions import InFile, InMessage

ANSWER = struct.Struct("!ciqd")
"""Before each answer: what it is, the process, the number of the unit, and the seconds that it took."""
HEAD = struct.Struct("!Q")
"""Before each message: how long its first part is, which says what the units are; their arguments follow."""
LIMIT_SECONDS = 0.020
"""Seconds after which the units of a message that have not begun are handed back."""
RESULT, ERROR, HANDED_BACK, UNREADY = b"r", b"e", b"b", b"u"
THREADED = re.compile(rb"blas|blis|mkl|omp")
"""In names of files of libraries with threads of their own; a name too many costs some time only."""
NO_UNIT = -1
NO_ARGUMENTS = pickle.dumps(((), {}))


def work(channel: Channel, threads: int) -> None:
    """Carry out units until the channel ends."""
    line = _Line(channel)
    functions = _Functions(threads)
    while (message := channel.receive()) is not None:
        key, content, units = _opened(message)
        function = functions.found(key, content)
        if not units:
            kind, answer = _carry_out(functions.initializer(function), NO_ARGUMENTS)
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


def _opened(message: memoryview) -> tuple[bytes, InMessage | InFile | None, list[tuple[int, memoryview]]]:
    """The key of a function, the function unless it came before, and numbers and arguments of units."""
    (size,) = HEAD.unpack_from(message)
    begin = HEAD.size + size
    key, content, sizes = pickle.loads(message[HEAD.size : begin])  # noqa: S301 - from our parent
    units = []
    for number, size in sizes:
        units.append((number, message[begin : begin + size]))
        begin += size
    return key, content, units


class _Line:
    """Where a worker answers. A unit may fork: the other process comes here too, and ends without a word."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()

    def say(self, kind: bytes, number: int, seconds: float = 0.0, answer: bytes = b"") -> None:
        if os.getpid() != self._pid:
            os._exit(0 if kind == RESULT else 1)
        _flush()
        self._channel.send(ANSWER.pack(kind, self._pid, number, seconds), answer)


def _carry_out(function: Callable[[], Any], arguments: bytes | memoryview) -> tuple[bytes, bytes]:
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
        self._module, self._assigned = "", dict[str, Any]()
        """The globals that the initializer has assigned, and those of which module they are."""

    def initializer(self, give: Callable[[], Any]) -> Callable[[], Any]:
        """The same initializer; the globals that it assigns are then those of all functions of its module.

        Functions that came by value have globals of their own, so they would not see them.
        """

        def initialize() -> None:
            function = give()
            names = _globals_of(function)
            before = dict(names)
            function()
            self._module = names.get("__name__", "")
            self._assigned = {
                name: value
                for name, value in names.items()
                if name not in before or before[name] is not value
            }

        return lambda: initialize

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
            if self._assigned and (names := _globals_of(function)).get("__name__") == self._module:
                names.update(self._assigned)
            if isinstance(function, types.FunctionType | types.BuiltinFunctionType):
                make = lambda: function  # noqa: E731 - the rest of what was sent is dropped
            return function

        return give

    def _limit_threads(self) -> None:
        """Narrow BLAS and OpenMP, where they have been loaded in spite of the variables they read."""
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        if not _has_threaded_library():
            return
        with contextlib.suppress(ImportError):
            import threadpoolctl  # noqa: PLC0415 - an extra, and not free to import

            threadpoolctl.threadpool_limits(self._threads)


def _has_threaded_library() -> bool:
    """Whether a library of the kinds that `threadpoolctl` knows is loaded; it takes longer to load itself."""
    try:
        with open("/proc/self/maps", "rb") as maps:  # noqa: PTH123 - pathlib is not loaded here
            return any(THREADED.search(line.rpartition(b"/")[2]) for line in maps)
    except OSError:
        return True


def _globals_of(function: Any) -> dict[str, Any]:
    """The globals of a function, or of that of a method, of a partial one, or of an object that is called."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__globals__"):
        function = getattr(type(function), "__call__", None)  # noqa: B004 - its globals are asked for
    return getattr(function, "__globals__", {})


def _flush() -> None:
    """Let what a unit has printed be seen before its outcome: a worker may be killed at any time."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()


def end(status: int) -> None:
    """End a forked worker without what its parent wanted to do in the end."""
    _flush()
    os._exit(status)
