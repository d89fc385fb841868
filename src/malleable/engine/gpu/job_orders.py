"""The jobs of a class in order: those served, by when they finish, and those that wait.

The served jobs of a class in the order in which they finish: an array sorted by insertion.

Marks fall from the front to the back, so the next job to finish is the last, and taking it moves nothing. A
newcomer moves those that finish before it. The first places stand near the thread (`near`, in the memory that
its block shares), the others, which are rarely needed, in `marks`. `slots` says where the data of the job at
each place stand (arrival, size, number); it is a permutation, so the slots of places behind the last job are
the free ones.

Jobs that wait, in device memory: a ring where the first to come is the first to go, a heap by work left.

A row of a queue is work left, arrival, size, number and class of a job. Queue q has the rows from q·room on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from malleable.engine.gpu.layout import DISCIPLINE, HOT, NAMED, ROOM, STATISTICS
from malleable.engine.rule_interface import FIFO

ONE = np.int32(1)


def mark_at(near: Any, marks: Any, i: Any, place: Any) -> Any:
    """The mark at a place of class i."""
    if HOT > 0 and place < HOT:
        return near[np.uint32(i * HOT + place)]
    return marks[np.uint32(i * ROOM + place)]


def put_mark(near: Any, marks: Any, i: Any, place: Any, mark: float) -> None:
    """Write the mark at a place of class i."""
    if HOT > 0 and place < HOT:
        near[np.uint32(i * HOT + place)] = mark
    else:
        marks[np.uint32(i * ROOM + place)] = mark


def insert(
    near: Any, marks: Any, slots: Any, born: Any, sizes: Any, names: Any,
    i: Any, length: Any, top: float, mark: float, arrival: float, size: float, name: float,
) -> None:  # fmt: skip
    """Put a job among the `length` jobs of class i, the last of which has mark `top`; there must be room."""
    p = np.int32(length)
    front = np.int32(i * ROOM)
    slot = slots[np.uint32(front + p)] if STATISTICS else 0
    other = top
    while other <= mark:
        before = np.int32(p - ONE)
        if STATISTICS:
            its_slot = slots[np.uint32(front + before)]
            if other == mark and names[np.uint32(front + its_slot)] > name:
                break
            slots[np.uint32(front + p)] = its_slot
        put_mark(near, marks, i, p, other)
        p = before
        other = mark_at(near, marks, i, np.int32(p - ONE)) if p > 0 else math.inf
    put_mark(near, marks, i, p, mark)
    if STATISTICS:
        slots[np.uint32(front + p)] = slot
        where = np.uint32(front + slot)
        born[where] = arrival
        sizes[where] = size
        if NAMED:
            names[where] = name


def drop_longest(near: Any, marks: Any, slots: Any, i: Any, length: Any) -> None:
    """Take the job with the most work left out of the `length` jobs of class i (the caller has read it)."""
    front = np.int32(i * ROOM)
    slot = slots[np.uint32(front)] if STATISTICS else 0
    p = np.int32(0)
    end = np.int32(length - ONE)
    while p < end:
        after = np.int32(p + ONE)
        put_mark(near, marks, i, p, mark_at(near, marks, i, after))
        if STATISTICS:
            slots[np.uint32(front + p)] = slots[np.uint32(front + after)]
        p = after
    if STATISTICS:
        slots[np.uint32(front + end)] = slot


LEFT, BORN, SIZE, NAME, KIND = range(5)
COLUMNS = 5


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
