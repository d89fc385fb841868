"""The class kernel: virtual work clocks, O(m + log N) per event.

While all served jobs of class i get the same cores they progress alike, so one clock V_i (dV_i/dt = s_i)
and the marks V_i(start) + x at which jobs finish are all the state there is; the next departure is
min_i (top_i − V_i)/s_i. A change of cores changes s_i, never a mark.

The kernel is resumable: it takes the arrivals of a chunk up to `last` and returns; progress bars, Ctrl-C and
records cost nothing, and memory is O(jobs present). It is one function on purpose: array arguments passed to
helpers would be reference-counted at every event, so the heaps are inlined and everything else stays here.

Symbols: m classes, n cores, V clock, s speed, k width, N jobs present.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.engine.abi import (
    BIN_BITS,
    BIN_LOWEST,
    BINS,
    DONE,
    FIFO,
    GROW,
    INDEX,
    NEGATIVE,
    NOT_A_NUMBER,
    OVER_ALLOCATED,
    POOLS,
    SHARE,
    STUCK,
    inlined,
)
from malleable.engine.borrow import borrow
from malleable.engine.heaps import before, pop_max, pop_min, push, put_latest_last
from malleable.speedups._encoded import speed

# Rows of `clocks`, one column a class.
V, SPEED, INVERSE, WIDTH, TOP, SINCE, COST, BIN = range(8)
CLOCK_ROWS = 8
# Rows of `sums`, one column a class.
DEPARTURES, RESPONSE, SLOWDOWN, ARRIVALS, WORK, AREA = range(6)
SUM_ROWS = 6
# Entries of `scalars`.
NOW, USED, DURATION, USED_AREA, OVERLOAD, EVENTS = range(6)
SCALARS = 6
# Entries of `integers`.
PRESENT, WAITING, NEXT, KEY, CROWDED, IDENTITY, LARGE = range(7)
INTEGERS = 7

TOLERANCE = 1e-9
"""Relative over-allocation that is rounding."""
ROUNDING = 1e-10
"""Relative difference of two remaining sizes that may be rounding: marks carry eleven digits."""
GOLDEN = -7046029254386353131
"""2**64/φ as a signed integer: multiplicative hashing of the packed class counts."""
MEMORABLE = 8192
"""With more jobs than this a state hardly ever comes back, so it is not looked up."""


def signature(rule: Any) -> Any:
    """The types of `class_kernel`'s arguments, for a rule of the given type."""
    from numba import float64, int64  # noqa: PLC0415 - this module also runs without numba

    f1, f2, f3, i1 = float64[::1], float64[:, ::1], float64[:, :, ::1], int64[::1]
    return int64(
        rule, int64, float64, f1, f1, i1,
        f1, i1, f1, int64, int64,
        f1, i1, f2, f1, f3, i1,
        f3, i1, i1, i1, f2, int64,
        f2, f2, f2, f2, f1,
    )  # fmt: skip


@inlined
def histogram_bin(x: float) -> int:
    """The bin of a positive number: exponent and leading mantissa bits, clipped."""
    bits = np.float64(x).view(np.int64)
    index = (bits >> (52 - BIN_BITS)) - ((1023 + BIN_LOWEST) << BIN_BITS)
    return max(0, min(int(index), BINS - 1))


def class_kernel(  # noqa: C901, PLR0912, PLR0915 - one function, for the reason given above
    rule: Any,
    discipline: int,
    n: float,
    table: Any,
    encoded: Any,
    slots: Any,
    times: Any,
    classes: Any,
    sizes: Any,
    last: int,
    drain: int,
    scalars: Any,
    integers: Any,
    clocks: Any,
    counts: Any,
    served: Any,
    lengths: Any,
    waiting: Any,
    queued: Any,
    heads: Any,
    memo_keys: Any,
    memo: Any,
    memo_bits: int,
    sums: Any,
    responses: Any,
    slowdowns: Any,
    widths: Any,
    log: Any,
) -> int:
    """Take the arrivals up to `last` (and all departures, if `drain`); return why it stopped."""
    slots = borrow(slots)
    times = borrow(times)
    classes = borrow(classes)
    sizes = borrow(sizes)
    clocks = borrow(clocks)
    counts = borrow(counts)
    served = borrow(served)
    lengths = borrow(lengths)
    waiting = borrow(waiting)
    queued = borrow(queued)
    heads = borrow(heads)
    memo_keys = borrow(memo_keys)
    memo = borrow(memo)
    sums = borrow(sums)
    responses = borrow(responses)
    slowdowns = borrow(slowdowns)
    widths = borrow(widths)
    log = borrow(log)
    m = counts.shape[0]
    capacity = served.shape[1]
    room = waiting.shape[1]
    now = scalars[NOW]
    used = scalars[USED]
    used_area = 0.0
    overload = 0.0
    started = now
    present = integers[PRESENT]
    queue = integers[WAITING]
    a = integers[NEXT]
    key = integers[KEY]
    crowded = integers[CROWDED]
    identity = integers[IDENTITY]
    events = 0
    status = DONE
    field = 63 // m
    memo_mask = (1 << memo_bits) - 1
    small = np.float64(1 << min(field, 31))
    large = integers[LARGE]
    logging = log.shape[0] > 0
    wide = widths.shape[1] > 1

    while True:
        # The next departure, and whether an arrival comes first.
        wait = np.inf
        who = -1
        for i in range(m):
            d = (clocks[TOP, i] - clocks[V, i]) * clocks[INVERSE, i]
            if d < wait:
                wait = d
                who = i
        if a < last:
            gap = times[a] - now
        elif drain:
            gap = np.inf
            if who < 0:
                status = STUCK if present > 0 else DONE
                break
        else:
            break

        departing = wait <= gap
        # Room for whatever this event may move, so that it can be repeated after the arrays have grown.
        full = queue + 1 >= room
        if departing:
            if queue > 0:
                for i in range(m):
                    full = full or lengths[i] + 1 >= capacity
        else:
            full = full or lengths[classes[a]] + 1 >= capacity
        if full:
            status = GROW
            break

        dt = max(wait if departing else gap, 0.0)
        for i in range(m):
            clocks[V, i] += clocks[SPEED, i] * dt
        used_area += used * dt
        if present > n:
            overload += dt
        if wide:
            for i in range(m):
                widths[i, np.int64(clocks[BIN, i])] += clocks[SPEED, i] * lengths[i] * dt
        events += 1

        # A job of class j with work x left enters service below if j >= 0.
        j: Any = -1
        x = 0.0
        arrived = 0.0
        work = 0.0
        name = 0.0
        if departing:
            now += dt
            arrived = served[who, 0, 1]
            work = served[who, 0, 2]
            name = served[who, 0, 3]
            clocks[V, who] = clocks[TOP, who]
            pop_min(served, who, lengths[who])
            lengths[who] -= 1
            response = now - arrived
            slowdown = response / work
            sums[DEPARTURES, who] += 1.0
            sums[WORK, who] += work
            sums[RESPONSE, who] += response
            sums[SLOWDOWN, who] += slowdown
            responses[who, histogram_bin(response)] += 1.0
            slowdowns[who, histogram_bin(slowdown)] += 1.0
            if logging:
                log[np.int64(name)] = now
            sums[AREA, who] += counts[who] * (now - clocks[SINCE, who])
            clocks[SINCE, who] = now
            if counts[who] == small:
                large -= 1
            counts[who] -= 1.0
            present -= 1
            key -= 1 << (who * field)
            if queue > 0:
                # Somebody may start: the best by c/x, or the head of a queue.
                best = -1.0
                q = -1
                if discipline == INDEX:
                    for i in range(m):
                        if queued[i] > 0:
                            value = clocks[COST, i] / waiting[i, 0, 0]
                            if value > best or (value == best and waiting[i, 0, 3] < waiting[q, 0, 3]):
                                best = value
                                q = i
                elif discipline == FIFO:
                    q = 0
                elif queued[who] > 0:
                    q = who
                if q >= 0:
                    head = 0 if discipline == INDEX else heads[q]
                    x = waiting[q, head, 0]
                    arrived = waiting[q, head, 1]
                    work = waiting[q, head, 2]
                    name = waiting[q, head, 3]
                    j = np.int64(waiting[q, head, 4])
                    queue -= 1
                    queued[q] -= 1
                    if discipline == INDEX:
                        end = queued[q]
                        hole = 0
                        while True:
                            child = 2 * hole + 1
                            if child >= end:
                                break
                            if child + 1 < end and before(
                                waiting[q, child + 1, 0], waiting[q, child + 1, 3],
                                waiting[q, child, 0], waiting[q, child, 3],
                            ):  # fmt: skip
                                child += 1
                            if before(
                                waiting[q, end, 0],
                                waiting[q, end, 3],
                                waiting[q, child, 0],
                                waiting[q, child, 3],
                            ):
                                break
                            for f in range(5):
                                waiting[q, hole, f] = waiting[q, child, f]
                            hole = child
                        for f in range(5):
                            waiting[q, hole, f] = waiting[q, end, f]
                    else:
                        heads[q] = head + 1 if head + 1 < room else 0
            if lengths[who] == 0:
                clocks[V, who] = 0.0
                clocks[TOP, who] = np.inf
            else:
                clocks[TOP, who] = served[who, 0, 0]
        else:
            now = times[a]
            j = classes[a]
            x = sizes[a]
            arrived = now
            work = x
            name = np.float64(identity)
            a += 1
            identity += 1
            sums[ARRIVALS, j] += 1.0
            sums[AREA, j] += counts[j] * (now - clocks[SINCE, j])
            clocks[SINCE, j] = now
            counts[j] += 1.0
            if counts[j] == small:
                large += 1
            present += 1
            key += 1 << (j * field)
            # Who waits: w = class of the job that joins a queue, -1 for nobody.
            w = -1
            if discipline == POOLS:
                if lengths[j] >= slots[j]:
                    w = j
            elif discipline == FIFO:
                if present > n:
                    w = 0
            elif discipline == INDEX and present > n:
                # The newcomer goes before nobody whose c/x is the same but for rounding.
                worst = clocks[COST, j] / x * (1.0 - ROUNDING)
                latest = name
                w = j
                for i in range(m):
                    if lengths[i] > 0:
                        side = 1 if lengths[i] > 1 else 0
                        value = clocks[COST, i] / (served[i, side, 0] - clocks[V, i])
                        if value <= worst:
                            put_latest_last(served, i, lengths[i])
                            if value < worst or served[i, side, 3] > latest:
                                worst = value
                                latest = served[i, side, 3]
                                w = i
                                queued[m] = 1
                if queued[m] == 1:
                    # Class w's longest job makes way; it takes the newcomer's place in the hand.
                    queued[m] = 0
                    side = 1 if lengths[w] > 1 else 0
                    kept_x = served[w, side, 0] - clocks[V, w]
                    kept_arrived = served[w, side, 1]
                    kept_work = served[w, side, 2]
                    kept_name = served[w, side, 3]
                    pop_max(served, w, lengths[w])
                    lengths[w] -= 1
                    if lengths[w] == 0:
                        clocks[V, w] = 0.0
                        clocks[TOP, w] = np.inf
                    else:
                        clocks[TOP, w] = served[w, 0, 0]
                    # The newcomer is served at once: push it here by swapping roles with the kept job.
                    if lengths[j] == 0:
                        clocks[V, j] = 0.0
                    push(served, j, lengths[j], clocks[V, j] + x, arrived, work, name)
                    lengths[j] += 1
                    clocks[TOP, j] = served[j, 0, 0]
                    x = kept_x
                    arrived = kept_arrived
                    work = kept_work
                    name = kept_name
                    j = w
            if w >= 0:
                if discipline == INDEX:
                    hole = queued[w]
                    while hole > 0:
                        parent = (hole - 1) >> 1
                        if before(waiting[w, parent, 0], waiting[w, parent, 3], x, name):
                            break
                        for f in range(5):
                            waiting[w, hole, f] = waiting[w, parent, f]
                        hole = parent
                else:
                    hole = heads[w] + queued[w]
                    if hole >= room:
                        hole -= room
                waiting[w, hole, 0] = x
                waiting[w, hole, 1] = arrived
                waiting[w, hole, 2] = work
                waiting[w, hole, 3] = name
                waiting[w, hole, 4] = np.float64(j)
                queued[w] += 1
                queue += 1
                j = -1

        if j >= 0:
            if lengths[j] == 0:
                clocks[V, j] = 0.0
            push(served, j, lengths[j], clocks[V, j] + x, arrived, work, name)
            lengths[j] += 1
            clocks[TOP, j] = served[j, 0, 0]

        # New widths. In a crowd everybody served has one core.
        if discipline == POOLS:
            used = 0.0
            for i in range(m):
                used += lengths[i] * clocks[WIDTH, i]
        elif present >= n and discipline != SHARE:
            used = min(np.float64(present), n)
            if crowded == 0:
                crowded = 1
                for i in range(m):
                    clocks[SPEED, i] = 1.0
                    clocks[INVERSE, i] = 1.0
                    clocks[WIDTH, i] = 1.0
                    clocks[BIN, i] = np.float64(histogram_bin(1.0))
        elif present > 0:
            crowded = 0
            spot = ((key * GOLDEN) >> (64 - memo_bits)) & memo_mask
            memorable = large == 0 and present < MEMORABLE
            if memorable and memo_keys[spot] == key:
                for i in range(m):
                    clocks[SPEED, i] = memo[spot, i]
                    clocks[INVERSE, i] = 1.0 / memo[spot, i]
                used = memo[spot, m]
                if wide:
                    for i in range(m):
                        clocks[BIN, i] = memo[spot, m + 1 + i]
            else:
                rule(counts, n, table, clocks[WIDTH])
                used = 0.0
                for i in range(m):
                    k = clocks[WIDTH, i]
                    if counts[i] > 0.0:
                        if np.isnan(k):
                            status = NOT_A_NUMBER
                        elif k < 0.0:
                            status = NEGATIVE
                        s = speed(encoded, i, k)
                        used += counts[i] * k
                    else:
                        s = 0.0
                    clocks[SPEED, i] = s
                    clocks[INVERSE, i] = 1.0 / s if s > 0.0 else np.inf
                    clocks[BIN, i] = np.float64(histogram_bin(k))
                if used > n * (1.0 + TOLERANCE):
                    status = OVER_ALLOCATED
                if status != DONE:
                    break
                if memorable:
                    memo_keys[spot] = key
                    for i in range(m):
                        memo[spot, i] = clocks[SPEED, i]
                        memo[spot, m + 1 + i] = clocks[BIN, i]
                    memo[spot, m] = used
        else:
            used = 0.0

    for i in range(m):
        sums[AREA, i] += counts[i] * (now - clocks[SINCE, i])
        clocks[SINCE, i] = now
    scalars[NOW] = now
    scalars[USED] = used
    scalars[DURATION] += now - started
    scalars[USED_AREA] += used_area
    scalars[OVERLOAD] += overload
    scalars[EVENTS] += events
    integers[PRESENT] = present
    integers[WAITING] = queue
    integers[NEXT] = a
    integers[KEY] = key
    integers[CROWDED] = crowded
    integers[IDENTITY] = identity
    integers[LARGE] = large
    return status
