"""Start processes that are bound to some CPUs from their first instruction on."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def bound_to(cpus: Iterable[int]) -> Iterator[None]:
    """Have this thread, and so the processes that it starts, run on these CPUs (Linux)."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
