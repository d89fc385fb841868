"""The sets of `width_sets` in a binary heap: who pays most for its next step on top, the oldest of equals.

`heap[0]` is the number of sets in it, and heap[1], heap[2], … are their columns, each before its two children
at 2i and 2i + 1. Plain functions that the engine compiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.policies.rules.width_sets import AGE, NARROW, VALUE, WIDER

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray


def _before(sets: FloatArray, one: int, other: int) -> bool:
    """Whether a set pays more than another, or as much and is older."""
    if sets[VALUE, one] == sets[VALUE, other]:
        return bool(sets[AGE, one] < sets[AGE, other])
    return bool(sets[VALUE, one] > sets[VALUE, other])


def push_set(heap: IntArray, sets: FloatArray, one: int) -> None:
    """Put a set into the heap, if it can step at all."""
    if sets[WIDER, one] <= sets[NARROW, one]:
        return
    heap[0] += 1
    at = int(heap[0])
    while at > 1 and _before(sets, one, heap[at // 2]):
        heap[at] = heap[at // 2]
        at //= 2
    heap[at] = one


def pop_set(heap: IntArray, sets: FloatArray) -> int:
    """Take the top of the heap; −1 if no job can step."""
    if heap[0] == 0:
        return -1
    top, last, size = int(heap[1]), int(heap[heap[0]]), int(heap[0]) - 1
    heap[0] = size
    at = 1
    while 2 * at <= size:
        child = 2 * at
        if child < size and _before(sets, heap[child + 1], heap[child]):
            child += 1
        if not _before(sets, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return top
