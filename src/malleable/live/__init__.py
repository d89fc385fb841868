"""Live: real jobs on real cores, divided by the very policies that the simulator runs."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # that of `typing`, which takes as long to import as all the rest of this
if TYPE_CHECKING:
    from typing import Any

    from malleable.live.clients.executor import Executor as Executor

__all__ = ["Executor"]

if sys.platform != "linux":
    from malleable.errors import UnsupportedError

    raise UnsupportedError(
        f"malleable.live needs Linux, and this is {sys.platform}",
        "everything else works here: bound, allocate, simulate, compare, fit, replay, paper",
    )


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'malleable.live' has no attribute {name!r}")
    from malleable.live.clients.executor import Executor  # noqa: PLC0415 - loaded when it is first used

    globals()[name] = Executor
    return Executor
