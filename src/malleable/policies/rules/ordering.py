"""Orders of the jobs, sorted or in a heap, as plain functions that rules call and the engine compiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.rule_interface import REMAINING, WEIGHT
from malleable.policies.rules.tolerances import DUST, TINY

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

FEW = 32
"""Up to so many jobs, insertion sort is faster than any other."""


def ascending(keys: FloatArray) -> IntArray:
    """Positions by increasing key, equal keys as they stand: insertion sort of short runs, then merging.

    (NumPy's stable argsort would do, but takes numba seconds to compile for every rule.)
    """
    size = keys.shape[0]
    order, merged = np.empty(size, np.int64), np.empty(size if size > FEW else 0, np.int64)
    for start in range(0, size, FEW):
        for j in range(start, min(start + FEW, size)):
            i = j
            while i > start and keys[order[i - 1]] > keys[j]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = j
    run = FEW
    while run < size:
        for start in range(0, size, 2 * run):
            merge(keys, order, merged, start, run)
        order, merged = merged, order
        run *= 2
    return order


def merge(keys: FloatArray, order: IntArray, merged: IntArray, start: int, run: int) -> None:
    """Merge two sorted runs of `order` from `start` on into `merged`; the left one wins ties."""
    middle = min(start + run, order.shape[0])
    end = min(middle + run, order.shape[0])
    left, right = start, middle
    for position in range(start, end):
        if right >= end or (left < middle and keys[order[left]] <= keys[order[right]]):
            merged[position] = order[left]
            left += 1
        else:
            merged[position] = order[right]
            right += 1


def by_remaining(jobs: FloatArray) -> IntArray:
    """Job positions by increasing remaining size, earlier arrivals first among equals."""
    size = jobs.shape[0]
    keys = np.empty(size)
    for j in range(size):
        keys[j] = jobs[j, REMAINING]
    return ascending(keys)


def by_index(jobs: FloatArray) -> IntArray:
    """Job positions by decreasing c/x, earlier arrivals first among equals."""
    size = jobs.shape[0]
    keys = np.empty(size)
    for j in range(size):
        keys[j] = -jobs[j, WEIGHT] / max(jobs[j, REMAINING], TINY)
    return ascending(keys)


def one_core_each(jobs: FloatArray, cores: float, out: FloatArray) -> None:
    """One core for each of the ⌊cores⌋ jobs with the largest c/x; `out` is 0 before."""
    size = jobs.shape[0]
    served = math.floor(cores + DUST)
    if size <= served:
        for j in range(size):
            out[j] = 1.0
        return
    order = by_index(jobs)
    for position in range(served):
        out[order[position]] = 1.0


def heap_of(
    before: Callable[[Any, int, int], bool],
) -> tuple[
    Callable[[IntArray, Any, int], None], Callable[[IntArray, Any], int], Callable[[IntArray, Any, int], None]
]:
    """`push(heap, of, one)`, `pop(heap, of)` and `sink(heap, of, at)` for the order `before(of, one, other)`.

    `heap[0]` is how many things there are, and heap[1], heap[2], … are their numbers, each before its two
    children at 2i and 2i + 1.
    """

    def push(heap: IntArray, of: Any, one: int) -> None:
        """Put one more into the heap."""
        heap[0] += 1
        at = int(heap[0])
        while at > 1 and before(of, one, heap[at // 2]):
            heap[at] = heap[at // 2]
            at //= 2
        heap[at] = one

    def pop(heap: IntArray, of: Any) -> int:
        """Take the first out of the heap; −1 where it is empty."""
        if heap[0] == 0:
            return -1
        top = int(heap[1])
        heap[1] = heap[heap[0]]
        heap[0] -= 1
        sink(heap, of, 1)
        return top

    def sink(heap: IntArray, of: Any, at: int) -> None:
        """Let what stands there, and is not what it was, go below those that now come before it."""
        size, one = int(heap[0]), int(heap[at])
        while 2 * at <= size:
            child = 2 * at
            if child < size and before(of, heap[child + 1], heap[child]):
                child += 1
            if not before(of, heap[child], one):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = one

    return push, pop, sink
