"""Jobs that wait, in device memory: a ring where the first to come is the first to go, a heap by work left.

A row of a queue is work left, arrival, size, number and class of a job. Queue q has the rows from q·room on.
"""

from __future__ import annotations

from typing import Any

LEFT, BORN, SIZE, NAME, KIND = range(5)
COLUMNS = 5


def put(queue: Any, row: int, t: int, left: float, born: float, size: float, name: float, kind: int) -> None:
    """Write a job into a row."""
    queue[LEFT, row, t] = left
    queue[BORN, row, t] = born
    queue[SIZE, row, t] = size
    queue[NAME, row, t] = name
    queue[KIND, row, t] = kind


def copy(queue: Any, to: int, of: int, t: int) -> None:
    """Copy a row."""
    for column in range(COLUMNS):
        queue[column, to, t] = queue[column, of, t]


def earlier(queue: Any, row: int, t: int, left: float, name: float) -> bool:
    """Whether the job in a row goes before one with so much work left and that number."""
    other = queue[LEFT, row, t]
    return bool(other < left or (other == left and queue[NAME, row, t] < name))


def heap_in(
    queue: Any, first: int, length: int, t: int, left: float, born: float, size: float, name: float, kind: int
) -> None:
    """Put a job into a heap of so many."""
    hole = length
    while hole > 0:
        up = (hole - 1) >> 1
        if earlier(queue, first + up, t, left, name):
            break
        copy(queue, first + hole, first + up, t)
        hole = up
    put(queue, first + hole, t, left, born, size, name, kind)


def heap_out(queue: Any, first: int, length: int, t: int) -> None:
    """Take the first job out of a heap, which then has `length` jobs (the caller has read it)."""
    last = first + length
    left = queue[LEFT, last, t]
    name = queue[NAME, last, t]
    hole = 0
    while 2 * hole + 1 < length:
        child = 2 * hole + 1
        if child + 1 < length and earlier(
            queue, first + child + 1, t, queue[LEFT, first + child, t], queue[NAME, first + child, t]
        ):
            child += 1
        if not earlier(queue, first + child, t, left, name):
            break
        copy(queue, first + hole, first + child, t)
        hole = child
    copy(queue, first + hole, last, t)
