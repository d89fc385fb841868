"""The served jobs of each class in the order in which they finish: sorted blocks, written for inlining.

A class's jobs stand in blocks; within a block marks fall, from block to block they rise, and a ring lists
the blocks in order. The next job to finish is the last of the first block, so taking it moves nothing; the
one with the most work left is the first of the last. A newcomer looks for its block in the ring (`tops` has
the largest mark of each) and shifts some of the block's jobs by one. A full block is split; only the first
and the last block ever shrink, so all others stay at least half full.

For some jobs this is an insertion into a sorted array, for a million a B-tree of two levels. A heap moves
log N jobs at every departure, along a path that no processor can guess.

`cells` holds pairs (mark, place) by block and position; a place is a row of `jobs`, which does not move while
the job lives. `fill` counts the jobs of every block but the first, whose end is `NEXT`. Jobs with equal marks
stand in order of their names. Arrays are flat, with rows of constant length where that can be: the kernel has
more arrays than a processor has registers.
"""

from __future__ import annotations

from typing import Any

from malleable.engine.rule_interface import inlined

# A row of `jobs`.
ARRIVAL, WORK, NAME, KIND = range(4)
JOB_BITS = 2
# A row of `shelf`, one per class: where the first block stands in the ring and starts in `cells`, the cell of
# the next job to finish (before the start if there is none), blocks, jobs; jobs that wait, their head; slots.
FRONT, START, NEXT, BLOCKS, LENGTH, QUEUED, HEAD, SLOTS = range(8)
SHELF_BITS = 3

INDEX_MASK = (1 << 40) - 1
"""An index `& INDEX_MASK` is visibly not negative: compiled code need not test for counting from the end."""


@inlined
def insert(  # noqa: C901, PLR0912, PLR0915 - find the block, split it if it is full, shift
    cells: Any,
    fill: Any,
    spare: Any,
    spares: int,
    ring: Any,
    tops: Any,
    shelf: Any,
    jobs: Any,
    size: int,
    i: int,
    mark: float,
    place: int,
) -> int:
    """Put a job of class i on the shelf; there must be a spare block, and the number left is returned."""
    mask = ring.shape[1] - 1
    name = jobs[(place << JOB_BITS) + NAME]
    row = i << SHELF_BITS
    front = shelf[row + FRONT] & INDEX_MASK
    low = 0
    high = (shelf[row + BLOCKS] & INDEX_MASK) - 1
    while low < high:
        middle = (low + high) >> 1
        spot = (front + middle) & mask
        top = tops[i, spot]
        if top == mark:
            # The name of the block's first job decides.
            rival = int(cells[2 * size * (ring[i, spot] & INDEX_MASK) + 1]) & INDEX_MASK
            goes_on = jobs[(rival << JOB_BITS) + NAME] < name
        else:
            goes_on = top < mark
        if goes_on:
            low = middle + 1
        else:
            high = middle
    spot = (front + low) & mask
    block = ring[i, spot] & INDEX_MASK
    if low == 0:
        fill[block] = ((shelf[row + NEXT] - shelf[row + START]) >> 1) + 1
    if fill[block] == size:
        # The larger half goes to a spare block behind this one.
        spares -= 1
        other = spare[spares & INDEX_MASK] & INDEX_MASK
        for c in range(size):
            cells[2 * size * other + c] = cells[2 * size * block + c]
            cells[2 * size * block + c] = cells[2 * size * block + size + c]
        fill[other] = size >> 1
        fill[block] = size >> 1
        if low == 0:
            shelf[row + NEXT] = shelf[row + START] + size - 2
        for d in range(shelf[row + BLOCKS], low + 1, -1):
            ring[i, (front + d) & mask] = ring[i, (front + d - 1) & mask]
            tops[i, (front + d) & mask] = tops[i, (front + d - 1) & mask]
        behind = (spot + 1) & mask
        ring[i, behind] = other
        tops[i, behind] = cells[2 * size * other]
        tops[i, spot] = cells[2 * size * block]
        shelf[row + BLOCKS] += 1
        rival = int(cells[2 * size * block + 1]) & INDEX_MASK
        if tops[i, spot] < mark or (tops[i, spot] == mark and jobs[(rival << JOB_BITS) + NAME] < name):
            spot = behind
            block = other
            low = 1
    first = (2 * size * block) & INDEX_MASK
    p = (first + 2 * fill[block]) & INDEX_MASK
    fill[block] += 1
    while p > first:
        other_mark = cells[(p - 2) & INDEX_MASK]
        rival = int(cells[(p - 1) & INDEX_MASK]) & INDEX_MASK
        if other_mark > mark or (other_mark == mark and jobs[(rival << JOB_BITS) + NAME] > name):
            break
        cells[p & INDEX_MASK] = other_mark
        cells[(p & INDEX_MASK) + 1] = cells[(p - 1) & INDEX_MASK]
        p -= 2
    p &= INDEX_MASK
    cells[p] = mark
    cells[p + 1] = place
    if p == first:
        tops[i, spot] = mark
    if low == 0:
        shelf[row + NEXT] += 2
    return spares


@inlined
def drop_first(fill: Any, spare: Any, spares: int, ring: Any, shelf: Any, size: int, i: int) -> int:
    """Take the next job to finish off class i's shelf (the caller has read it); returns the spare blocks."""
    row = i << SHELF_BITS
    shelf[row + NEXT] -= 2
    if shelf[row + NEXT] < shelf[row + START] and shelf[row + BLOCKS] > 1:
        spare[spares] = ring[i, shelf[row + FRONT]]
        spares += 1
        shelf[row + BLOCKS] -= 1
        shelf[row + FRONT] = (shelf[row + FRONT] + 1) & (ring.shape[1] - 1)
        block = ring[i, shelf[row + FRONT]]
        shelf[row + START] = 2 * size * block
        shelf[row + NEXT] = 2 * (size * block + fill[block]) - 2
    return spares


@inlined
def drop_last(
    cells: Any, fill: Any, spare: Any, spares: int, ring: Any, tops: Any, shelf: Any, size: int, i: int
) -> int:
    """Take the job with the most work left off class i's shelf (the caller has read it)."""
    row = i << SHELF_BITS
    spot = (shelf[row + FRONT] + shelf[row + BLOCKS] - 1) & (ring.shape[1] - 1)
    block = ring[i, spot] & INDEX_MASK
    first = 2 * size * block
    if shelf[row + BLOCKS] == 1:
        fill[block] = ((shelf[row + NEXT] - first) >> 1) + 1
        shelf[row + NEXT] -= 2
    fill[block] -= 1
    for c in range(2 * fill[block]):
        cells[first + c] = cells[first + c + 2]
    tops[i, spot] = cells[first]
    if fill[block] == 0 and shelf[row + BLOCKS] > 1:
        spare[spares] = block
        spares += 1
        shelf[row + BLOCKS] -= 1
    return spares


@inlined
def queue_up(waiting: Any, jobs: Any, q: int, length: int, x: float, place: int) -> None:
    """Put a job into heap q of those that wait, by work left and then by name."""
    hole = length
    while hole > 0:
        up = (hole - 1) >> 1
        rival = int(waiting[q, up, 1])
        if waiting[q, up, 0] < x or (
            waiting[q, up, 0] == x and jobs[(rival << JOB_BITS) + NAME] < jobs[(place << JOB_BITS) + NAME]
        ):
            break
        waiting[q, hole, 0] = waiting[q, up, 0]
        waiting[q, hole, 1] = waiting[q, up, 1]
        hole = up
    waiting[q, hole, 0] = x
    waiting[q, hole, 1] = place


@inlined
def call_up(waiting: Any, jobs: Any, q: int, length: int) -> None:
    """Take the first job out of heap q, which then has `length` jobs (the caller has read it)."""
    x = waiting[q, length, 0]
    place = int(waiting[q, length, 1])
    hole = 0
    while 2 * hole + 1 < length:
        child = 2 * hole + 1
        mine = int(waiting[q, child, 1])
        if child + 1 < length:
            other = int(waiting[q, child + 1, 1])
            if waiting[q, child + 1, 0] < waiting[q, child, 0] or (
                waiting[q, child + 1, 0] == waiting[q, child, 0]
                and jobs[(other << JOB_BITS) + NAME] < jobs[(mine << JOB_BITS) + NAME]
            ):
                child += 1
                mine = other
        if x < waiting[q, child, 0] or (
            x == waiting[q, child, 0] and jobs[(place << JOB_BITS) + NAME] < jobs[(mine << JOB_BITS) + NAME]
        ):
            break
        waiting[q, hole, 0] = waiting[q, child, 0]
        waiting[q, hole, 1] = waiting[q, child, 1]
        hole = child
    waiting[q, hole, 0] = x
    waiting[q, hole, 1] = place
