"""Heaps of jobs for the class kernel, written for inlining: one array for all classes, no slices.

`served[i]` is an interval heap (van Leeuwen & Wood): a complete binary tree whose node p holds the elements
2p (its minimum) and 2p+1 (its maximum), and the interval of a node contains those of its children. So both
the next job to finish and the one with the most work left are at the root. `waiting[i]` is an ordinary
binary heap by remaining size, or a ring (first in, first out). A job is a row (key, arrival, size, id);
waiting rows also carry the class.
"""

from __future__ import annotations

from typing import Any

from malleable.engine.abi import inlined

FIELDS = 4
WAITING_FIELDS = 5


@inlined
def before(key: float, identity: float, other_key: float, other_identity: float) -> bool:
    """Whether a waiting job stands before another: by key, then by arrival."""
    return key < other_key or (key == other_key and identity < other_identity)


@inlined
def put_latest_last(h: Any, i: int, size: int) -> None:
    """Have the latest of the jobs with the largest key at the root of class i's interval heap.

    The heap orders keys only. Jobs with equal keys may change places, and one that equals the root's maximum
    has such a job at the root's minimum or in one of its children.
    """
    last = 1 if size > 1 else 0
    key = h[i, last, 0]
    tied = size > 1 and h[i, 0, 0] == key
    for child in range(2, min(size, 6)):
        tied = tied or h[i, child, 0] == key
    if tied:
        for j in range(size):
            if h[i, j, 0] == key and h[i, j, 3] > h[i, last, 3]:
                for f in range(1, 4):
                    t = h[i, j, f]
                    h[i, j, f] = h[i, last, f]
                    h[i, last, f] = t


@inlined
def push(  # noqa: C901 - a push to either side
    h: Any, i: int, size: int, key: float, arrival: float, work: float, identity: float
) -> None:
    """Add a job to class i's interval heap that holds `size` jobs."""
    hole = size
    low_side = True
    if hole & 1:
        # A partner exists in the same node: the smaller one becomes the node's minimum.
        low_side = key < h[i, hole - 1, 0]
        if low_side:
            for f in range(4):
                h[i, hole, f] = h[i, hole - 1, f]
            hole -= 1
    elif hole > 1:
        # A new node: it belongs to the high side only if it exceeds the interval of its parent.
        low_side = key <= h[i, (((hole >> 1) - 1) & ~1) + 1, 0]
    if low_side:
        while hole > 1:
            parent = ((hole >> 1) - 1) >> 1
            up = 2 * parent
            if key >= h[i, up, 0]:
                break
            for f in range(4):
                h[i, hole, f] = h[i, up, f]
            hole = up
    else:
        while hole > 1:
            parent = ((hole >> 1) - 1) >> 1
            up = 2 * parent + 1
            if key <= h[i, up, 0]:
                break
            for f in range(4):
                h[i, hole, f] = h[i, up, f]
            hole = up
    h[i, hole, 0] = key
    h[i, hole, 1] = arrival
    h[i, hole, 2] = work
    h[i, hole, 3] = identity


@inlined
def pop_min(h: Any, i: int, size: int) -> None:
    """Remove the root's minimum from class i's interval heap of `size` jobs (the caller has read it)."""
    last = size - 1
    if last > 0:
        key = h[i, last, 0]
        arrival = h[i, last, 1]
        work = h[i, last, 2]
        identity = h[i, last, 3]
        hole = 0
        while True:
            # The job to place may exceed the node's maximum: then they change places.
            if hole + 1 < last and h[i, hole + 1, 0] < key:
                t = key
                key = h[i, hole + 1, 0]
                h[i, hole + 1, 0] = t
                t = arrival
                arrival = h[i, hole + 1, 1]
                h[i, hole + 1, 1] = t
                t = work
                work = h[i, hole + 1, 2]
                h[i, hole + 1, 2] = t
                t = identity
                identity = h[i, hole + 1, 3]
                h[i, hole + 1, 3] = t
            child = 2 * hole + 2
            if child >= last:
                break
            if child + 2 < last and h[i, child + 2, 0] < h[i, child, 0]:
                child += 2
            if h[i, child, 0] >= key:
                break
            for f in range(4):
                h[i, hole, f] = h[i, child, f]
            hole = child
        h[i, hole, 0] = key
        h[i, hole, 1] = arrival
        h[i, hole, 2] = work
        h[i, hole, 3] = identity


@inlined
def pop_max(h: Any, i: int, size: int) -> None:
    """Remove the root's maximum from class i's interval heap of `size` jobs (the caller has read it)."""
    last = size - 1
    if last > 1:
        key = h[i, last, 0]
        arrival = h[i, last, 1]
        work = h[i, last, 2]
        identity = h[i, last, 3]
        hole = 1
        while True:
            # The job to place may fall short of the node's minimum: then they change places.
            if hole < last and key < h[i, hole - 1, 0]:
                t = key
                key = h[i, hole - 1, 0]
                h[i, hole - 1, 0] = t
                t = arrival
                arrival = h[i, hole - 1, 1]
                h[i, hole - 1, 1] = t
                t = work
                work = h[i, hole - 1, 2]
                h[i, hole - 1, 2] = t
                t = identity
                identity = h[i, hole - 1, 3]
                h[i, hole - 1, 3] = t
            # The children of node p = hole >> 1 are 2p+1 and 2p+2; a node with one job keeps it on the left.
            left = 2 * (hole - 1) + 2
            if left >= last:
                break
            child = left + 1 if left + 1 < last else left
            right = left + 2
            if right < last:
                other = right + 1 if right + 1 < last else right
                if h[i, other, 0] > h[i, child, 0]:
                    child = other
            if h[i, child, 0] <= key:
                break
            for f in range(4):
                h[i, hole, f] = h[i, child, f]
            hole = child
            if not hole & 1:
                break
        h[i, hole, 0] = key
        h[i, hole, 1] = arrival
        h[i, hole, 2] = work
        h[i, hole, 3] = identity
