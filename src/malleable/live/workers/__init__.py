"""Worker processes that follow a width: one process and one connection per core.

`Pool` is a `concurrent.futures.Executor` whose number of busy workers can be changed while it works. It can
be used alone; a broker that divides a machine calls `set_width` and hears what is in use. Linux only.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of `typing`; workers are forked from a process that imports next to nothing
if TYPE_CHECKING:
    from typing import Any

    from malleable.live.workers.broken import BrokenPoolError as BrokenPoolError
    from malleable.live.workers.broken import BrokenUnitError as BrokenUnitError
    from malleable.live.workers.executor import Pool as Pool

__all__ = ["BrokenPoolError", "BrokenUnitError", "Pool"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'malleable.live.workers' has no attribute {name!r}")
    if name == "Pool":
        from malleable.live.workers.executor import Pool  # noqa: PLC0415 - see above

        return Pool
    from malleable.live.workers import broken  # noqa: PLC0415 - see above

    return getattr(broken, name)
