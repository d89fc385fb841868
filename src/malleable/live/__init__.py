"""Live: real jobs on real cores, divided by the very policies that the simulator runs."""

from __future__ import annotations

TYPE_CHECKING = False  # that of `typing`, which takes as long to import as all the rest of this
if TYPE_CHECKING:
    from typing import Any

    from malleable.live.clients.executor import Executor as Executor

__all__ = ["Executor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'malleable.live' has no attribute {name!r}")
    from malleable.live.clients.executor import Executor  # noqa: PLC0415 - loaded when it is first used

    globals()[name] = Executor
    return Executor
