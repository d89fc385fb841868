"""The class kernel: virtual work clocks, O(m + log N) per event.

While all served jobs of class i get the same cores they progress alike, so one clock V_i (dV_i/dt = s_i)
and the marks V_i(start) + x at which jobs finish are all the state there is; the next departure is
min_i (top_i − V_i)/s_i. A change of cores changes s_i, never a mark.

The kernel is resumable: it takes the arrivals of a chunk up to `last` and returns; progress bars, Ctrl-C and
records cost nothing, and memory is O(jobs present). It is one function on purpose: array arguments passed to
helpers would be reference-counted at every event, so the shelves are inlined and everything else stays here.
What is kept for each class stands in one row of constant length, so that one address serves for all of it.

Symbols: m classes, n cores, V clock, s speed, k width, N jobs present.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from malleable.engine.intrinsics import prefetch, unowned_view
from malleable.engine.job_log import (
    CHANGE_CLOCK,
    CHANGES,
    CORE_CLOCK,
    CURRENT,
    END,
    HELD_AREA,
    RENT,
    RENT_CLOCK,
    START,
    add_usage,
    join_slices,
    rent_until,
)
from malleable.engine.job_log import FIRST as SLICES
from malleable.engine.job_log import LENGTH as SLICE
from malleable.engine.mark_blocks import (
    ARRIVAL,
    BLOCKS,
    FRONT,
    HEAD,
    INDEX_MASK,
    JOB_BITS,
    KIND,
    LENGTH,
    NAME,
    QUEUED,
    SHELF_BITS,
    SLOTS,
    call_up,
    drop_first,
    drop_last,
    insert,
    queue_up,
)
from malleable.engine.mark_blocks import NEXT as UPNEXT
from malleable.engine.mark_blocks import WORK as SIZE
from malleable.engine.rule_interface import (
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
    STOPPED,
    STUCK,
    TOLERANCE,
    inlined,
)
from malleable.engine.speedup_table import speed

# A row of `state`, one per class: first what the next event needs, then the sums of a record.
V, SPEED, INVERSE, TOP, COUNT, COST, BIN, BEFORE, SUMS = range(9)
STATE_BITS = 4
# The sums, for each class.
DEPARTURES, RESPONSE, SLOWDOWN, ARRIVALS, WORK, AREA, RESIZES = range(7)
"""Resizes are counted by the job kernel only: here they cost nothing, and all jobs of a class are resized."""
SUM_ROWS = 7
# Entries of `scalars`.
NOW, USED, DURATION, USED_AREA, OVERLOAD, EVENTS = range(6)
# Entries of `integers`.
PRESENT, WAITING, NEXT, KEY, CROWDED, IDENTITY, IDLE, SPARES, STOP = range(9)
INTEGERS = 9
# A row of `memo`: the key's bits, cores in use, then speeds and their inverses; if logging, widths too.
MEMO_KEY, MEMO_USED, MEMO_SPEEDS = range(3)

ROUNDING = 1e-10
"""Relative difference of two remaining sizes that may be rounding: marks carry eleven digits."""
GOLDEN = -7046029254386353131
"""2**64/φ as a signed integer: multiplicative hashing of the packed class counts."""
LOGGING = False
"""Whether every job is noted; `logging_class_kernel` does it."""
MEMORABLE = 8192
"""With more jobs than this a state hardly ever comes back, so it is not looked up."""


def signature(rule: Any) -> Any:
    """The types of `class_kernel`'s arguments, for a rule of the given type."""
    from numba import float64, int64  # noqa: PLC0415 - this module also runs without numba

    f1, f2, f3 = float64[::1], float64[:, ::1], float64[:, :, ::1]
    i1, i2 = int64[::1], int64[:, ::1]
    return int64(
        rule, int64, float64, f1, f1,
        f1, i1, f1, int64, int64,
        f1, i1, f1, i1, f1, f1,
        f1, i1, i1, i2, f2, int64, f1, i1, f3,
        i1, f1, f2, int64,
        f1, f2, f2, f2, f2, f1, f2,
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
    times: Any,
    classes: Any,
    sizes: Any,
    last: int,
    drain: int,
    scalars: Any,
    integers: Any,
    state: Any,
    shelf: Any,
    asked: Any,
    width: Any,
    cells: Any,
    fill: Any,
    spare: Any,
    ring: Any,
    tops: Any,
    size: int,
    jobs: Any,
    idle: Any,
    waiting: Any,
    memo_keys: Any,
    memo: Any,
    memo_bins: Any,
    memo_bits: int,
    histograms: Any,
    widths: Any,
    log: Any,
    served: Any,
    usage: Any,
    slices: Any,
    paid: Any,
) -> int:
    """Take the arrivals up to `last` (and all departures, if `drain`); return why it stopped."""
    times = unowned_view(times)
    classes = unowned_view(classes)
    sizes = unowned_view(sizes)
    state = unowned_view(state)
    shelf = unowned_view(shelf)
    asked = unowned_view(asked)
    width = unowned_view(width)
    cells = unowned_view(cells)
    fill = unowned_view(fill)
    spare = unowned_view(spare)
    ring = unowned_view(ring)
    tops = unowned_view(tops)
    jobs = unowned_view(jobs)
    idle = unowned_view(idle)
    waiting = unowned_view(waiting)
    memo_keys = unowned_view(memo_keys)
    memo = unowned_view(memo)
    memo_bins = unowned_view(memo_bins)
    histograms = unowned_view(histograms)
    widths = unowned_view(widths)
    log = unowned_view(log)
    served = unowned_view(served)
    usage = unowned_view(usage)
    slices = unowned_view(slices)
    paid = unowned_view(paid)
    m = asked.shape[0]
    room = waiting.shape[1]
    now = scalars[NOW]
    used = scalars[USED]
    used_area = 0.0
    overload = 0.0
    started = now
    present = integers[PRESENT]
    present_before = present
    queue = integers[WAITING]
    a = integers[NEXT]
    first = a
    key = integers[KEY]
    crowded = integers[CROWDED]
    unused = integers[IDLE]
    spares = integers[SPARES]
    status = DONE
    field = 63 // m
    memo_row = memo.shape[0] >> memo_bits
    memorable = min(MEMORABLE, 1 << min(field, 31))
    wide = widths.shape[1] > 1
    for i in range(m):
        state[(i << STATE_BITS) + BEFORE] = (
            state[(i << STATE_BITS) + COUNT] + state[(i << STATE_BITS) + SUMS + DEPARTURES]
        )

    while True:
        if integers[STOP] != 0:
            status = STOPPED
            break
        # The next departure, and whether an arrival comes first.
        wait = np.inf
        who = -1
        for i in range(m):
            c = (i << STATE_BITS) & INDEX_MASK
            d = (state[c + TOP] - state[c + V]) * state[c + INVERSE]
            if d < wait:
                wait = d
                who = i
        if a < last:
            gap = times[a & INDEX_MASK] - now
        elif drain:
            gap = np.inf
            if who < 0:
                status = STUCK if present > 0 else DONE
                break
        else:
            break

        departing = wait <= gap
        # Room for whatever this event may move, so that it can be repeated after the arrays have grown.
        if spares == 0 or unused == 0 or queue + 1 >= room:
            status = GROW
            break

        dt = max(wait if departing else gap, 0.0)
        for i in range(m):
            c = (i << STATE_BITS) & INDEX_MASK
            state[c + V] += state[c + SPEED] * dt
        used_area += used * dt
        if present > n:
            overload += dt
        if wide:
            for i in range(m):
                c = (i << STATE_BITS) & INDEX_MASK
                progress = state[c + SPEED] * shelf[(i << SHELF_BITS) + LENGTH] * dt
                widths[i, np.int64(state[c + BIN])] += progress
        if LOGGING:
            if now + dt >= slices[SLICES] + slices[SLICE] * usage.shape[1]:
                join_slices(usage, slices, now + dt)
            rent = rent_until(paid, slices, now + dt)
            for i in range(m):
                if shelf[(i << SHELF_BITS) + LENGTH] > 0:
                    served[i, CORE_CLOCK] += served[i, CURRENT] * dt
                    served[i, RENT_CLOCK] += served[i, CURRENT] * rent
                    held = served[i, CURRENT] * shelf[(i << SHELF_BITS) + LENGTH]
                    add_usage(usage, slices, i, now, now + dt, held)
                else:
                    served[i, CORE_CLOCK] = 0.0
                    served[i, RENT_CLOCK] = 0.0
        enters = -1

        # The job at `place`, of class j and with work x left, enters service below if j >= 0.
        j: Any = -1
        x = 0.0
        place: Any = 0
        if departing:
            now += dt
            who &= INDEX_MASK
            c = who << STATE_BITS
            r = who << SHELF_BITS
            place = np.int64(cells[(shelf[r + UPNEXT] & INDEX_MASK) + 1]) & INDEX_MASK
            state[c + V] = state[c + TOP]
            spares = drop_first(fill, spare, spares, ring, shelf, size, who)
            shelf[r + LENGTH] -= 1
            work = jobs[(place << JOB_BITS) + SIZE]
            response = now - jobs[(place << JOB_BITS) + ARRIVAL]
            slowdown = response / work
            state[c + SUMS + DEPARTURES] += 1.0
            state[c + SUMS + WORK] += work
            state[c + SUMS + RESPONSE] += response
            state[c + SUMS + SLOWDOWN] += slowdown
            histograms[2 * BINS * who + histogram_bin(response)] += 1.0
            histograms[2 * BINS * who + BINS + histogram_bin(slowdown)] += 1.0
            if LOGGING:
                name_of = np.int64(jobs[(place << JOB_BITS) + NAME])
                log[END, name_of] = now
                log[HELD_AREA, name_of] += served[who, CORE_CLOCK]
                log[RENT, name_of] += served[who, RENT_CLOCK]
                log[CHANGES, name_of] += served[who, CHANGE_CLOCK]
            idle[unused & INDEX_MASK] = place
            unused += 1
            state[c + SUMS + AREA] += now - started
            state[c + COUNT] -= 1.0
            present -= 1
            key -= 1 << (who * field)
            if queue > 0:
                # A job that waits may start: the best by c/x, or the head of a queue.
                best = -1.0
                q = -1
                if discipline == INDEX:
                    earliest = np.inf
                    for i in range(m):
                        if shelf[(i << SHELF_BITS) + QUEUED] > 0:
                            value = state[(i << STATE_BITS) + COST] / waiting[i, 0, 0]
                            name = jobs[(np.int64(waiting[i, 0, 1]) << JOB_BITS) + NAME]
                            if value > best or (value == best and name < earliest):
                                best = value
                                earliest = name
                                q = i
                elif discipline == FIFO:
                    q = 0
                elif shelf[r + QUEUED] > 0:
                    q = who
                if q >= 0:
                    head = 0 if discipline == INDEX else shelf[(q << SHELF_BITS) + HEAD]
                    x = waiting[q, head, 0]
                    place = np.int64(waiting[q, head, 1]) & INDEX_MASK
                    j = np.int64(jobs[(place << JOB_BITS) + KIND])
                    queue -= 1
                    shelf[(q << SHELF_BITS) + QUEUED] -= 1
                    if discipline == INDEX:
                        call_up(waiting, jobs, q, shelf[(q << SHELF_BITS) + QUEUED])
                    else:
                        shelf[(q << SHELF_BITS) + HEAD] = head + 1 if head + 1 < room else 0
            if shelf[r + LENGTH] == 0:
                state[c + V] = 0.0
                state[c + TOP] = np.inf
            else:
                state[c + TOP] = cells[shelf[r + UPNEXT] & INDEX_MASK]
                # The one after the next: by then its row will be here.
                prefetch(jobs, np.int64(cells[shelf[r + UPNEXT] - 1]) << JOB_BITS)
        else:
            now = times[a & INDEX_MASK]
            j = classes[a & INDEX_MASK] & INDEX_MASK
            x = sizes[a & INDEX_MASK]
            unused -= 1
            place = idle[unused & INDEX_MASK] & INDEX_MASK
            jobs[(place << JOB_BITS) + ARRIVAL] = now
            jobs[(place << JOB_BITS) + SIZE] = x
            jobs[(place << JOB_BITS) + NAME] = np.float64(integers[IDENTITY] + (a - first))
            jobs[(place << JOB_BITS) + KIND] = np.float64(j)
            a += 1
            c = j << STATE_BITS
            state[c + SUMS + AREA] -= now - started
            state[c + COUNT] += 1.0
            present += 1
            key += 1 << (j * field)
            # Who waits: w = class of the job that joins a queue, -1 if none does.
            w = -1
            if discipline == POOLS:
                if shelf[(j << SHELF_BITS) + LENGTH] >= shelf[(j << SHELF_BITS) + SLOTS]:
                    w = j
            elif discipline == FIFO:
                if present > n:
                    w = 0
            elif discipline == INDEX and present > n:
                # Where c/x is the same but for rounding, the newcomer goes last.
                worst = state[c + COST] / x * (1.0 - ROUNDING)
                latest = jobs[(place << JOB_BITS) + NAME]
                w = j
                victim = -1
                for i in range(m):
                    r = i << SHELF_BITS
                    if shelf[r + LENGTH] > 0:
                        block = ring[i, (shelf[r + FRONT] + shelf[r + BLOCKS] - 1) & (ring.shape[1] - 1)]
                        longest = 2 * size * block
                        value = state[(i << STATE_BITS) + COST] / (
                            cells[longest] - state[(i << STATE_BITS) + V]
                        )
                        name = jobs[(np.int64(cells[longest + 1]) << JOB_BITS) + NAME]
                        if value < worst or (value == worst and name > latest):
                            worst = value
                            latest = name
                            w = i
                            victim = longest
                if victim >= 0:
                    # Class w's longest job makes way, and the newcomer is served at once.
                    kept_x = cells[victim] - state[(w << STATE_BITS) + V]
                    kept = np.int64(cells[victim + 1]) & INDEX_MASK
                    spares = drop_last(cells, fill, spare, spares, ring, tops, shelf, size, w)
                    shelf[(w << SHELF_BITS) + LENGTH] -= 1
                    if shelf[(w << SHELF_BITS) + LENGTH] == 0:
                        state[(w << STATE_BITS) + V] = 0.0
                        state[(w << STATE_BITS) + TOP] = np.inf
                    if shelf[(j << SHELF_BITS) + LENGTH] == 0:
                        state[c + V] = 0.0
                    mark = state[c + V] + x
                    spares = insert(cells, fill, spare, spares, ring, tops, shelf, jobs, size, j, mark, place)
                    shelf[(j << SHELF_BITS) + LENGTH] += 1
                    state[c + TOP] = min(state[c + TOP], mark)
                    if LOGGING:
                        name_of = np.int64(jobs[(kept << JOB_BITS) + NAME])
                        log[HELD_AREA, name_of] += served[w, CORE_CLOCK]
                        log[RENT, name_of] += served[w, RENT_CLOCK]
                        log[CHANGES, name_of] += served[w, CHANGE_CLOCK]
                        enters = place
                    x = kept_x
                    place = kept
            if w >= 0:
                r = w << SHELF_BITS
                if discipline == INDEX:
                    queue_up(waiting, jobs, w, shelf[r + QUEUED], x, place)
                else:
                    hole = shelf[r + HEAD] + shelf[r + QUEUED]
                    if hole >= room:
                        hole -= room
                    waiting[w, hole, 0] = x
                    waiting[w, hole, 1] = np.float64(place)
                shelf[r + QUEUED] += 1
                queue += 1
                j = -1

        if j >= 0:
            j &= INDEX_MASK
            c = j << STATE_BITS
            if shelf[(j << SHELF_BITS) + LENGTH] == 0:
                state[c + V] = 0.0
            mark = state[c + V] + x
            spares = insert(cells, fill, spare, spares, ring, tops, shelf, jobs, size, j, mark, place)
            shelf[(j << SHELF_BITS) + LENGTH] += 1
            state[c + TOP] = min(state[c + TOP], mark)
            if LOGGING:
                enters = place

        # New widths. In a crowd every job served has one core.
        if discipline == POOLS:
            used = 0.0
            for i in range(m):
                used += shelf[(i << SHELF_BITS) + LENGTH] * width[i]
        elif present >= n and discipline != SHARE:
            used = min(np.float64(present), n)
            if crowded == 0:
                crowded = 1
                for i in range(m):
                    state[(i << STATE_BITS) + SPEED] = 1.0
                    state[(i << STATE_BITS) + INVERSE] = 1.0
                    state[(i << STATE_BITS) + BIN] = np.float64(histogram_bin(1.0))
                    width[i] = 1.0
        elif present > 0:
            crowded = 0
            spot = (((key * GOLDEN) >> (64 - memo_bits)) & ((1 << memo_bits) - 1) & INDEX_MASK) * memo_row
            spot &= INDEX_MASK
            if present < memorable and memo_keys[spot] == key:
                used = memo[spot + MEMO_USED]
                for i in range(m):
                    c = (i << STATE_BITS) & INDEX_MASK
                    state[c + SPEED] = memo[(spot + MEMO_SPEEDS + i) & INDEX_MASK]
                    state[c + INVERSE] = memo[(spot + MEMO_SPEEDS + m + i) & INDEX_MASK]
                if wide:
                    for i in range(m):
                        state[(i << STATE_BITS) + BIN] = memo_bins[spot // memo_row, i]
                if LOGGING:
                    for i in range(m):
                        width[i] = memo[spot + MEMO_SPEEDS + 2 * m + i]
            else:
                for i in range(m):
                    asked[i] = state[(i << STATE_BITS) + COUNT]
                rule(asked, n, table, width)
                used = 0.0
                for i in range(m):
                    k = width[i]
                    s = 0.0
                    if asked[i] > 0.0:
                        if np.isnan(k):
                            status = NOT_A_NUMBER
                        elif k < 0.0:
                            status = NEGATIVE
                        s = speed(encoded, i, k)
                        used += asked[i] * k
                    state[(i << STATE_BITS) + SPEED] = s
                    state[(i << STATE_BITS) + INVERSE] = 1.0 / s if s > 0.0 else np.inf
                    state[(i << STATE_BITS) + BIN] = np.float64(histogram_bin(k))
                if used > n * (1.0 + TOLERANCE):
                    status = OVER_ALLOCATED
                if status != DONE:
                    break
                if present < memorable:
                    memo_keys[spot] = key
                    memo[spot + MEMO_USED] = used
                    for i in range(m):
                        memo[spot + MEMO_SPEEDS + i] = state[(i << STATE_BITS) + SPEED]
                        memo[spot + MEMO_SPEEDS + m + i] = state[(i << STATE_BITS) + INVERSE]
                    if wide:
                        for i in range(m):
                            memo_bins[spot // memo_row, i] = state[(i << STATE_BITS) + BIN]
                    if LOGGING:
                        for i in range(m):
                            memo[spot + MEMO_SPEEDS + 2 * m + i] = width[i]
        else:
            used = 0.0
        if LOGGING:
            for i in range(m):
                if shelf[(i << SHELF_BITS) + LENGTH] > 0:
                    if width[i] != served[i, CURRENT]:
                        served[i, CHANGE_CLOCK] += 1.0
                    served[i, CURRENT] = width[i]
            if enters >= 0:
                kind_of = np.int64(jobs[(enters << JOB_BITS) + KIND])
                name_of = np.int64(jobs[(enters << JOB_BITS) + NAME])
                log[HELD_AREA, name_of] -= served[kind_of, CORE_CLOCK]
                log[RENT, name_of] -= served[kind_of, RENT_CLOCK]
                log[CHANGES, name_of] -= served[kind_of, CHANGE_CLOCK]
                if np.isnan(log[START, name_of]):
                    log[START, name_of] = now
                else:
                    log[CHANGES, name_of] += 1.0

    for i in range(m):
        c = i << STATE_BITS
        # ∫N dt = N(end)·T − Σ arrivals + Σ departures, all times since the start of this call.
        state[c + SUMS + AREA] += state[c + COUNT] * (now - started)
        state[c + SUMS + ARRIVALS] += state[c + COUNT] + state[c + SUMS + DEPARTURES] - state[c + BEFORE]
    scalars[NOW] = now
    scalars[USED] = used
    scalars[DURATION] += now - started
    scalars[USED_AREA] += used_area
    scalars[OVERLOAD] += overload
    scalars[EVENTS] += 2 * (a - first) + present_before - present
    integers[PRESENT] = present
    integers[WAITING] = queue
    integers[NEXT] = a
    integers[KEY] = key
    integers[CROWDED] = crowded
    integers[IDENTITY] += a - first
    integers[IDLE] = unused
    integers[SPARES] = spares
    return status


logging_class_kernel = FunctionType(
    class_kernel.__code__, {**globals(), "LOGGING": True}, "logging_class_kernel"
)
"""The same, and every job is noted in `log`, and the cores of each class over time in `usage`."""
logging_class_kernel.__qualname__ = "logging_class_kernel"
