"""Where the threads of a launch keep what they need: measured on an H200, `benchmarks.bench_gpu variants`.

What a thread needs at every event stands in registers and in the memory that its block shares. Both are few,
and the more a thread has, the fewer threads are resident, whose waiting could be filled with other work.
"""

from __future__ import annotations

from typing import NamedTuple

from malleable.engine.gpu.kernels import DEVICE, LOCAL, SHARED
from malleable.engine.gpu.layout import CLASS_TALLIES

MOST_SHARED = 48 << 10
"""Bytes of memory that a block may share."""
MOST_THREADS, FEWEST_THREADS = 128, 32
"""Threads per block."""
FEWEST_HOT, MOST_HOT, NEAR_BYTES = 8, 24, 1536
"""Marks of a class in shared memory, and bytes of it per thread at most."""
FEW_CLASSES, FEW_REGISTERS, QUEUE_REGISTERS, MANY_REGISTERS = 3, 80, 96, 128
"""Registers per thread: what few classes need, what they need where jobs often wait, and what as many threads
as shared memory is for can have."""
MOST_LOCAL = 1 << 15
"""Bytes of local memory per thread up to which marks are kept there."""


class Placement(NamedTuple):
    """Part of what a kernel is made for (see `Specialisation`)."""

    memory: str
    """Where marks stand."""
    hot: int
    """Marks of a class that stand in the memory that a block shares."""
    threads: int
    """Threads per block."""
    registers: int | None
    """Registers per thread at most."""


def placement(
    classes: int,
    room: int,
    wanted: str,
    *,
    statistics: bool,
    named: bool,
    queues: bool = False,
    hot: int | None = None,
    registers: int | None = None,
) -> Placement:
    """Where it is fastest, if it fits; `hot` and `registers` are chosen where they are not given.

    `queues` says that jobs often wait.
    """
    each = 36 if named else 28 if statistics else 8
    if wanted == DEVICE or classes * room * each > MOST_LOCAL:
        return Placement(DEVICE, 0, MOST_THREADS, registers)
    if wanted == LOCAL or 8 * classes * CLASS_TALLIES * FEWEST_THREADS > MOST_SHARED:
        return Placement(LOCAL, 0, MOST_THREADS, registers)
    near = 0 if statistics else _hot(classes, room, hot)
    bytes_near = 8 * classes * (near + CLASS_TALLIES)
    fitting = (t for t in (MOST_THREADS, MOST_THREADS // 2) if t * bytes_near <= MOST_SHARED)
    if registers is None and not statistics:
        few = classes <= FEW_CLASSES and near <= FEWEST_HOT
        registers = (QUEUE_REGISTERS if queues else FEW_REGISTERS) if few else MANY_REGISTERS
    return Placement(SHARED, near, next(fitting, FEWEST_THREADS), registers)


def _hot(classes: int, room: int, wanted: int | None) -> int:
    """Most of the marks that are ever there, up to where too few threads would be resident."""
    chosen = wanted or min(max(room // 4, FEWEST_HOT), MOST_HOT)
    fitting = NEAR_BYTES // (8 * classes) - CLASS_TALLIES
    return max(min(chosen, room, fitting), 0)
