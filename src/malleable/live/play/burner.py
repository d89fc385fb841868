"""A process that keeps one CPU busy while it is told to, and counts the CPU time: `burner.py FILE PLACE CPU`.

It shares a file of numbers with its parent: at 2·PLACE what to do (0 idle, 1 burn, 2 end), behind it the CPU
time burned so far. It imports next to nothing, so that it starts at once, and ends with its parent.
"""

from __future__ import annotations

import mmap
import os
import sys
import time

IDLE, BURN, END = 0.0, 1.0, 2.0
SLICE = 0.0005
"""Seconds between two looks at what to do."""


def main(path: str, place: int, cpu: int) -> None:
    """Burn and idle as told, until told to end or the parent is gone."""
    os.sched_setaffinity(0, {cpu})
    parent = os.getppid()
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as shared:  # noqa: PTH123 - imports little
        numbers = memoryview(shared).cast("d")
        try:
            while numbers[2 * place] != END and os.getppid() == parent:
                if numbers[2 * place] == BURN:
                    numbers[2 * place + 1] += _burn()
                else:
                    time.sleep(SLICE)
        finally:
            numbers.release()


def _burn() -> float:
    """Burn for a moment; the CPU time that it took."""
    started, end = time.process_time(), time.perf_counter() + SLICE
    while time.perf_counter() < end:
        pass
    return time.process_time() - started


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
