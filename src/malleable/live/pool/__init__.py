"""Worker processes that follow a width: one process and one connection per core.

`Pool` is a `concurrent.futures.Executor` whose number of busy workers can be changed while it works. It can
be used alone; a broker that divides a machine calls `set_width` and hears what is in use. Linux only.
"""

from malleable.live.pool.executor import Pool
from malleable.live.pool.units import BrokenPoolError, BrokenUnitError

__all__ = ["BrokenPoolError", "BrokenUnitError", "Pool"]
