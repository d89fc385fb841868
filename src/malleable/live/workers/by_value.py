"""Pickle by value what another process cannot import: what `__main__` defines, lambdas and closures.

A pool begins before cloudpickle is loaded, which it is while the processes of the pool start.
"""

from __future__ import annotations

import pickle
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from malleable.errors import ExecutionError, to_install

if TYPE_CHECKING:
    from collections.abc import Callable

if find_spec("cloudpickle") is None:
    raise ExecutionError("worker pools need cloudpickle, which is not installed", to_install("live"))
Packed = TypeVar("Packed")


def dumps_by_value(what: Any) -> bytes:
    """Bytes that plain `pickle.loads` reads, where cloudpickle is installed."""
    import cloudpickle  # noqa: PLC0415 - see above

    return bytes(cloudpickle.dumps(what, pickle.HIGHEST_PROTOCOL))


def pickler_by_value(file: Any, in_stream: Callable[[pickle.PickleBuffer], bool]) -> pickle.Pickler:
    """A pickler that asks of each array whether its content is to be part of the pickle."""
    import cloudpickle  # noqa: PLC0415 - see above

    made: pickle.Pickler = cloudpickle.Pickler(file, pickle.HIGHEST_PROTOCOL, in_stream)
    return made


def pack(what: Any, role: str, dumps: Callable[[Any], Packed]) -> Packed:
    """What is sent to a worker; one clear error for what cannot be sent."""
    try:
        return dumps(what)
    except Exception as error:
        hint = "locks, open files, generators and connections cannot; open them in the unit"
        raise ExecutionError(f"{role} cannot be sent to a worker: {error!s:.200}", hint) from error


def name_of(function: Callable[..., Any]) -> str:
    """How to call a function in a message."""
    return str(getattr(function, "__qualname__", None) or repr(function)[:80])
