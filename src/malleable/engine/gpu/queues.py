"""Jobs that wait, in device memory: a ring where the first to come is the first to go, a heap by work left.

A row of a queue is work left, arrival, size, number and class of a job. Queue q has the rows from q·room on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.engine.gpu.layout import DISCIPLINE, STATISTICS
from malleable.engine.rule_interface import FIFO

LEFT, BORN, SIZE, NAME, KIND = range(5)
COLUMNS = 5
ONE = np.int32(1)


def put(queue: Any, row: Any, t: int, left: float, born: float, size: float, name: float, kind: Any) -> None:
    """Write what is needed of a job into a row: its class only where a queue has jobs of all of them."""
    place = np.uint32(row)
    queue[LEFT, place, t] = left
    queue[NAME, place, t] = name
    if STATISTICS:
        queue[BORN, place, t] = born
        queue[SIZE, place, t] = size
    if DISCIPLINE == FIFO:
        queue[KIND, place, t] = kind


def copy(queue: Any, to: Any, of: Any, t: int) -> None:
    """Copy a row of a heap."""
    here, there = np.uint32(to), np.uint32(of)
    queue[LEFT, here, t] = queue[LEFT, there, t]
    queue[NAME, here, t] = queue[NAME, there, t]
    if STATISTICS:
        queue[BORN, here, t] = queue[BORN, there, t]
        queue[SIZE, here, t] = queue[SIZE, there, t]


def earlier(queue: Any, row: Any, t: int, left: float, name: float) -> bool:
    """Whether the job in a row goes before one with so much work left and that number."""
    place = np.uint32(row)
    other = queue[LEFT, place, t]
    return bool(other < left or (other == left and queue[NAME, place, t] < name))


def heap_in(
    queue: Any, first: Any, length: Any, t: int, left: float, born: float, size: float, name: float
) -> None:
    """Put a job into a heap of so many, all of one class."""
    hole = np.int32(length)
    while hole > 0:
        up = np.int32((hole - ONE) >> ONE)
        if earlier(queue, first + up, t, left, name):
            break
        copy(queue, first + hole, first + up, t)
        hole = up
    put(queue, first + hole, t, left, born, size, name, ONE)


def heap_out(queue: Any, first: Any, length: Any, t: int) -> None:
    """Take the first job out of a heap, which then has `length` jobs (the caller has read it)."""
    last = np.uint32(first + length)
    left = queue[LEFT, last, t]
    name = queue[NAME, last, t]
    hole = np.int32(0)
    child = ONE
    while child < length:
        if child + ONE < length and earlier(
            queue, first + child + ONE, t, queue[LEFT, np.uint32(first + child), t],
            queue[NAME, np.uint32(first + child), t],
        ):  # fmt: skip
            child = np.int32(child + ONE)
        if not earlier(queue, first + child, t, left, name):
            break
        copy(queue, first + hole, first + child, t)
        hole = child
        child = np.int32(hole + hole + ONE)
    copy(queue, first + hole, last, t)
