"""The served jobs of a class in the order in which they finish: an array sorted by insertion.

Marks fall from the front to the back, so the next job to finish is the last, and taking it moves nothing. A
newcomer moves those that finish before it. `slots` says where the data of the job at each place stand
(arrival, size, number); it is a permutation, so the slots of places behind the last job are the free ones.
"""

from __future__ import annotations

from typing import Any

from malleable.engine.gpu.layout import NAMED, ROOM, STATISTICS


def insert(
    marks: Any, slots: Any, born: Any, sizes: Any, names: Any,
    i: int, length: int, mark: float, arrival: float, size: float, name: float,
) -> None:  # fmt: skip
    """Put a job among the `length` jobs of class i; there must be room."""
    front = i * ROOM
    p = front + length
    if not STATISTICS:
        while p > front and marks[p - 1] <= mark:
            marks[p] = marks[p - 1]
            p -= 1
        marks[p] = mark
        return
    slot = slots[p]
    while p > front:
        other = marks[p - 1]
        if other > mark or (other == mark and names[front + slots[p - 1]] > name):
            break
        marks[p] = other
        slots[p] = slots[p - 1]
        p -= 1
    marks[p] = mark
    slots[p] = slot
    born[front + slot] = arrival
    sizes[front + slot] = size
    if NAMED:
        names[front + slot] = name


def drop_longest(marks: Any, slots: Any, i: int, length: int) -> None:
    """Take the job with the most work left out of the `length` jobs of class i (the caller has read it)."""
    front = i * ROOM
    if STATISTICS:
        slot = slots[front]
        for p in range(front, front + length - 1):
            marks[p] = marks[p + 1]
            slots[p] = slots[p + 1]
        slots[front + length - 1] = slot
    else:
        for p in range(front, front + length - 1):
            marks[p] = marks[p + 1]
