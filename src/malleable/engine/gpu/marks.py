"""The served jobs of a class in the order in which they finish: an array sorted by insertion.

Marks fall from the front to the back, so the next job to finish is the last, and taking it moves nothing. A
newcomer moves those that finish before it. The first places stand near the thread (`near`, in the memory that
its block shares), the others, which are rarely needed, in `marks`. `slots` says where the data of the job at
each place stand (arrival, size, number); it is a permutation, so the slots of places behind the last job are
the free ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from malleable.engine.gpu.layout import HOT, NAMED, ROOM, STATISTICS

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
