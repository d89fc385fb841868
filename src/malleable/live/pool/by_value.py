"""Pickle by value what another process cannot import: what `__main__` defines, lambdas and closures."""

from __future__ import annotations

import pickle
from typing import Any

from malleable.errors import ExecutionError, to_install

try:
    import cloudpickle
except ImportError:
    raise ExecutionError(
        "worker pools need cloudpickle, which is not installed", to_install("live")
    ) from None


def dumps_by_value(what: Any) -> bytes:
    """Bytes that plain `pickle.loads` reads, where cloudpickle is installed."""
    return bytes(cloudpickle.dumps(what, pickle.HIGHEST_PROTOCOL))
