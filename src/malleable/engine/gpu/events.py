"""From event to event: one replication, in one thread.

While all served jobs of a class get the same cores they progress alike, so one clock V per class (dV/dt = s)
and the marks V(start) + x at which jobs finish are all the state there is, as in `engine.kernels`, whose
every decision and tie this follows. What differs is where things stand: clocks, speeds and counts of all
classes in registers, marks in the thread's local memory, queues in device memory, and the cores of a state in
a table over class counts that all threads share.

Symbols: m classes, n cores, V clock, s speed, k width, N jobs present.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from malleable.engine.gpu.arrivals import earliest, poisson_job, renewal_draws
from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.layout import (
    AREA,
    ARRIVALS,
    CLASS_SUMS,
    COUNTED,
    COUNTERS,
    DEPARTURES,
    DISCIPLINE,
    DRAWN,
    DURATION,
    GIVEN,
    HEAD,
    JOB,
    LOGGED,
    NAMED,
    NEXT_CLASS,
    NEXT_SIZE,
    NEXT_TIME,
    NOW,
    OUTSIDE,
    OVERLOAD,
    POISSON,
    PRESENT,
    REALS,
    RENEWAL,
    RESPONSE,
    ROOM,
    RULE_ON_DEVICE,
    SERVED,
    SLOWDOWN,
    SOURCE,
    STATISTICS,
    STATUS,
    TABLE_ROW,
    USED_AREA,
    WAITING,
    WHOLE,
    WORK,
    M,
)
from malleable.engine.gpu.marks import drop_longest, insert
from malleable.engine.gpu.queues import BORN, KIND, LEFT, NAME, SIZE, heap_in, heap_out, put
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
    STUCK,
    TOLERANCE,
)
from malleable.engine.speedup_table import speed

ROUNDING = 1e-10
"""Relative difference of two remaining sizes that may be rounding."""
LOWEST = 2.0**BIN_LOWEST
PER_OCTAVE = float(1 << BIN_BITS)
UNROLLED = 8
"""Classes whose clocks, speeds and counts are kept in registers."""


def rule(counts: Any, cores: float, table: Any, out: Any) -> None:
    """Stands for the policy's rule, by which the kernel is specialised."""


def histogram_bin(x: float) -> int:
    """The bin of a positive number: exponent and leading bits of the mantissa, as the CPU engine has it."""
    if not x >= LOWEST:
        return 0
    mantissa, exponent = math.frexp(x)
    octave = exponent - 1 - BIN_LOWEST
    return min((octave << BIN_BITS) + int((2.0 * mantissa - 1.0) * PER_OCTAVE), BINS - 1)


def chosen_count(values: Any, i: int) -> Any:
    """values[i], written so that the values may stand in registers: those have no addresses.

    As a sum in which all other terms are 0: of a choice between values the compiler would make an address
    again. From nine classes on, the values are in memory.
    """
    if M > UNROLLED:
        return values[i]
    found = values[0] if i == 0 else 0
    if M > 1:
        found += values[1] if i == 1 else 0
    if M > 2:
        found += values[2] if i == 2 else 0
    if M > 3:
        found += values[3] if i == 3 else 0
    if M > 4:
        found += values[4] if i == 4 else 0
    if M > 5:
        found += values[5] if i == 5 else 0
    if M > 6:
        found += values[6] if i == 6 else 0
    if M > 7:
        found += values[7] if i == 7 else 0
    return found


def chosen(values: Any, i: int) -> Any:
    """The same for clocks and marks, which may be infinite but are not negative."""
    if M > UNROLLED:
        return values[i]
    found = values[0] if i == 0 else 0.0
    if M > 1:
        found += values[1] if i == 1 else 0.0
    if M > 2:
        found += values[2] if i == 2 else 0.0
    if M > 3:
        found += values[3] if i == 3 else 0.0
    if M > 4:
        found += values[4] if i == 4 else 0.0
    if M > 5:
        found += values[5] if i == 5 else 0.0
    if M > 6:
        found += values[6] if i == 6 else 0.0
    if M > 7:
        found += values[7] if i == 7 else 0.0
    return found


def store(values: Any, i: int, value: Any) -> None:
    """values[i] = value, likewise."""
    if M > UNROLLED:
        values[i] = value
        return
    old = values[0]
    values[0] = value if i == 0 else old
    if M > 1:
        old = values[1]
        values[1] = value if i == 1 else old
    if M > 2:
        old = values[2]
        values[2] = value if i == 2 else old
    if M > 3:
        old = values[3]
        values[3] = value if i == 3 else old
    if M > 4:
        old = values[4]
        values[4] = value if i == 4 else old
    if M > 5:
        old = values[5]
        values[5] = value if i == 5 else old
    if M > 6:
        old = values[6]
        values[6] = value if i == 6 else old
    if M > 7:
        old = values[7]
        values[7] = value if i == 7 else old


def tabulated(speeds: Any, row: int, s: Any, inverse: Any) -> float:
    """Read the speeds of a state from the table; the cores in use, or minus a status."""
    start = row * TABLE_ROW
    for i in range(M):
        s[i] = speeds[start + 1 + i]
        inverse[i] = speeds[start + 1 + M + i]
    return float(speeds[start])


def decided(
    count: Any, n: float, rule_table: Any, encoded: Any, asked: Any, width: Any, s: Any, inverse: Any
) -> float:
    """Ask the rule for the speeds of a state; the cores in use, or minus a status."""
    for i in range(M):
        asked[i] = np.float64(count[i])
    rule(asked, n, rule_table, width)
    used = 0.0
    status = 0
    for i in range(M):
        k = width[i]
        s[i] = 0.0
        if count[i] > 0:
            if math.isnan(k):
                status = NOT_A_NUMBER
            elif k < 0.0:
                status = NEGATIVE
            s[i] = speed(encoded, i, k)
            used += asked[i] * k
        inverse[i] = 1.0 / s[i] if s[i] > 0.0 else math.inf
    if used > n * (1.0 + TOLERANCE):
        status = OVER_ALLOCATED
    return used if status == 0 else -float(status)


def replicate(  # noqa: C901, PLR0912, PLR0915 - one function: what it keeps in registers cannot be passed on
    t: int,
    n: float,
    last: int,
    drain: int,
    key: int,
    mean_gap: float,
    numbers: Any,
    costs: Any,
    bounds: Any,
    kinds: Any,
    laws: Any,
    speeds: Any,
    limits: Any,
    strides: Any,
    fixed: Any,
    slots_of: Any,
    encoded: Any,
    rule_tables: Any,
    given_times: Any,
    given_classes: Any,
    given_sizes: Any,
    reals: Any,
    whole: Any,
    marks: Any,
    slots: Any,
    born: Any,
    sizes: Any,
    names: Any,
    queue: Any,
    sums: Any,
    histogram: Any,
    every: int,
    log: Any,
) -> None:
    """Take the jobs of replication t up to number `last` (and all departures, if `drain`).

    `numbers[t]` is the replication's number, by which its jobs are drawn.
    """
    job = whole[JOB, t]
    V = cuda.local.array(M, np.float64)
    s = cuda.local.array(M, np.float64)
    inverse = cuda.local.array(M, np.float64)
    top = cuda.local.array(M, np.float64)
    count = cuda.local.array(M, np.int32)
    served = cuda.local.array(M, np.int32)
    waiting = cuda.local.array(M, np.int32)
    limit = cuda.local.array(M, np.int32)
    stride = cuda.local.array(M, np.int32)
    following = cuda.local.array(M, np.float64)
    following_size = cuda.local.array(M, np.float64)
    drawn = cuda.local.array(M, np.int64)
    gone = cuda.local.array(M, np.int32)
    area = cuda.local.array(M, np.float64)
    counted = cuda.local.array(COUNTED, np.float64)
    asked = cuda.local.array(M, np.float64)
    width = cuda.local.array(M, np.float64)

    replication = numbers[t]
    counts = (t >> 5) % every == 0
    copy = (t >> 5) // every % histogram.shape[0]
    now = reals[NOW, t]
    next_time = reals[NEXT_TIME, t]
    next_size = reals[NEXT_SIZE, t]
    next_class = int(whole[NEXT_CLASS, t])
    room = queue.shape[1] // (1 if DISCIPLINE == FIFO else M)
    present = 0
    queued = 0
    row = 0
    full = False
    for i in range(M):
        first = WHOLE + COUNTERS * i
        count[i] = whole[first + PRESENT, t]
        served[i] = whole[first + SERVED, t]
        waiting[i] = whole[first + WAITING, t]
        limit[i] = limits[i]
        stride[i] = strides[i]
        present += count[i]
        queued += waiting[i]
        row += count[i] * stride[i]
        V[i] = reals[REALS + i, t]
        top[i] = marks[i * ROOM + served[i] - 1] if served[i] > 0 else math.inf
        if SOURCE == RENEWAL:
            following[i] = reals[REALS + M + i, t]
            following_size[i] = reals[REALS + 2 * M + i, t]
            drawn[i] = whole[first + DRAWN, t]
        gone[i] = 0
        area[i] = 0.0
        for k in range(CLASS_SUMS):
            counted[CLASS_SUMS * i + k] = 0.0
        counted[CLASS_SUMS * i + ARRIVALS] = -np.float64(count[i])
        full = full or served[i] >= ROOM or waiting[i] >= room
    started = now
    used = 0.0
    used_area = 0.0
    overload = 0.0
    status = DONE

    if whole[STATUS, t] == -1:
        # The first job of all.
        if SOURCE == POISSON:
            gap, next_class, next_size = poisson_job(job, replication, key, mean_gap, bounds, kinds, laws)
            next_time = gap
        elif SOURCE == RENEWAL:
            for i in range(M):
                following[i], following_size[i] = renewal_draws(0, i, replication, key, bounds, kinds, laws)
                drawn[i] = 1
            next_class = earliest(following)
            next_time = chosen(following, next_class)
            next_size = chosen(following_size, next_class)
        elif job < last:
            next_time = given_times[t, job]
            next_class = int(given_classes[t, job])
            next_size = given_sizes[t, job]

    while True:
        # The cores of the state. In a crowd every job served has one.
        if DISCIPLINE == POOLS:
            used = 0.0
            for i in range(M):
                used += np.float64(served[i]) * fixed[i]
                s[i] = fixed[M + i]
                inverse[i] = fixed[2 * M + i]
        elif DISCIPLINE != SHARE and present >= n:
            used = min(np.float64(present), n)
            for i in range(M):
                s[i] = 1.0
                inverse[i] = 1.0
        elif present > 0:
            inside = True
            for i in range(M):
                inside = inside and count[i] <= limit[i]
            if inside:
                used = tabulated(speeds, row, s, inverse)
            elif RULE_ON_DEVICE:
                used = decided(count, n, rule_tables[:, t], encoded, asked, width, s, inverse)
            else:
                status = OUTSIDE
                break
            if used < 0.0:
                status = int(-used)
                break
        else:
            used = 0.0
            for i in range(M):
                s[i] = 0.0
                inverse[i] = 1.0
        if full:
            status = GROW
            break

        wait = math.inf
        who = -1
        for i in range(M):
            d = (top[i] - V[i]) * inverse[i]
            if d < wait:
                wait = d
                who = i
        gap = math.inf
        if job < last:
            gap = next_time - now
        elif not drain:
            break
        elif who < 0:
            status = STUCK if present > 0 else DONE
            break

        departing = wait <= gap
        dt = max(wait if departing else gap, 0.0)
        for i in range(M):
            V[i] += s[i] * dt
        used_area += used * dt
        if present > n:
            overload += dt

        # The job of class j that enters service below, if j >= 0: work left, arrival, size, number.
        j = -1
        left = 0.0
        arrival = 0.0
        size = 0.0
        name = 0.0
        if departing:
            now += dt
            length = chosen_count(served, who) - 1
            front = who * ROOM
            store(V, who, chosen(top, who))
            store(served, who, length)
            c = CLASS_SUMS * who
            for i in range(M):
                gone[i] += 1 if i == who else 0
                area[i] += now - started if i == who else 0.0
            if STATISTICS:
                slot = front + slots[front + length]
                work = sizes[slot]
                response = now - born[slot]
                slowdown = response / work
                counted[c + WORK] += work
                counted[c + RESPONSE] += response
                counted[c + SLOWDOWN] += slowdown
                if counts:
                    first = 2 * BINS * who
                    cuda.atomic.add(histogram, (copy, first + histogram_bin(response)), np.uint32(1))
                    cuda.atomic.add(histogram, (copy, first + BINS + histogram_bin(slowdown)), np.uint32(1))
                if LOGGED:
                    log[t, int(names[slot])] = now
            store(count, who, chosen_count(count, who) - 1)
            present -= 1
            row -= chosen_count(stride, who)
            if DISCIPLINE != SHARE and queued > 0:
                # A job that waits may start: the best by c/x, or the head of a queue.
                q = -1
                if DISCIPLINE == INDEX:
                    best = -1.0
                    first_name = math.inf
                    for i in range(M):
                        if waiting[i] > 0:
                            value = costs[i] / queue[LEFT, i * room, t]
                            its_name = queue[NAME, i * room, t]
                            if value > best or (value == best and its_name < first_name):
                                best = value
                                first_name = its_name
                                q = i
                elif DISCIPLINE == FIFO:
                    q = 0
                elif chosen_count(waiting, who) > 0:
                    q = who
                if q >= 0:
                    head = 0
                    if DISCIPLINE != INDEX:
                        head = int(whole[WHOLE + COUNTERS * q + HEAD, t])
                    place = q * room + head
                    left = queue[LEFT, place, t]
                    arrival = queue[BORN, place, t]
                    size = queue[SIZE, place, t]
                    name = queue[NAME, place, t]
                    j = int(queue[KIND, place, t])
                    queued -= 1
                    store(waiting, q, chosen_count(waiting, q) - 1)
                    if DISCIPLINE == INDEX:
                        heap_out(queue, q * room, chosen_count(waiting, q), t)
                    else:
                        whole[WHOLE + COUNTERS * q + HEAD, t] = head + 1 if head + 1 < room else 0
            if length == 0:
                store(V, who, 0.0)
                store(top, who, math.inf)
            else:
                store(top, who, marks[front + length - 1])
        else:
            now = next_time
            j = next_class
            left = next_size
            arrival = now
            size = left
            name = np.float64(job) if NAMED else now
            job += 1
            for i in range(M):
                area[i] -= now - started if i == j else 0.0
            store(count, j, chosen_count(count, j) + 1)
            present += 1
            row += chosen_count(stride, j)
            # The job after it.
            if SOURCE == POISSON:
                later, next_class, next_size = poisson_job(
                    job, replication, key, mean_gap, bounds, kinds, laws
                )
                next_time = now + later
            elif SOURCE == RENEWAL:
                later, following_x = renewal_draws(
                    chosen_count(drawn, j), j, replication, key, bounds, kinds, laws
                )
                store(drawn, j, chosen_count(drawn, j) + 1)
                store(following, j, now + later)
                store(following_size, j, following_x)
                next_class = earliest(following)
                next_time = chosen(following, next_class)
                next_size = chosen(following_size, next_class)
            elif SOURCE == GIVEN and job < last:
                next_time = given_times[t, job]
                next_class = int(given_classes[t, job])
                next_size = given_sizes[t, job]
            # Who waits: the class of the job that joins a queue, -1 if none does.
            w = -1
            kind = j
            if DISCIPLINE == POOLS:
                if chosen_count(served, j) >= slots_of[j]:
                    w = j
            elif DISCIPLINE == FIFO:
                if present > n:
                    w = 0
            elif DISCIPLINE == INDEX and present > n:
                # Where c/x is the same but for rounding, the newcomer goes last.
                worst = costs[j] / left * (1.0 - ROUNDING)
                latest = name
                w = j
                victim = -1
                for i in range(M):
                    if served[i] > 0:
                        value = costs[i] / (marks[i * ROOM] - V[i])
                        its_name = names[i * ROOM + slots[i * ROOM]] if STATISTICS else 0.0
                        if value < worst or (value == worst and its_name > latest):
                            worst = value
                            latest = its_name
                            victim = i
                if victim >= 0:
                    # The victim's longest job makes way, and the newcomer is served at once.
                    w = victim
                    kind = victim
                    front = victim * ROOM
                    kept_left = marks[front] - chosen(V, victim)
                    kept_born = 0.0
                    kept_size = 0.0
                    kept_name = 0.0
                    if STATISTICS:
                        kept_born = born[front + slots[front]]
                        kept_size = sizes[front + slots[front]]
                        kept_name = names[front + slots[front]]
                    length = chosen_count(served, victim)
                    drop_longest(marks, slots, victim, length)
                    store(served, victim, length - 1)
                    if length == 1:
                        store(V, victim, 0.0)
                        store(top, victim, math.inf)
                    length = chosen_count(served, j)
                    if length == 0:
                        store(V, j, 0.0)
                    mark = chosen(V, j) + left
                    insert(marks, slots, born, sizes, names, j, length, mark, arrival, size, name)
                    store(served, j, length + 1)
                    store(top, j, min(chosen(top, j), mark))
                    left = kept_left
                    arrival = kept_born
                    size = kept_size
                    name = kept_name
            if DISCIPLINE != SHARE and w >= 0:
                length = chosen_count(waiting, w)
                if DISCIPLINE == INDEX:
                    heap_in(queue, w * room, length, t, left, arrival, size, name, kind)
                else:
                    hole = int(whole[WHOLE + COUNTERS * w + HEAD, t]) + length
                    if hole >= room:
                        hole -= room
                    put(queue, w * room + hole, t, left, arrival, size, name, kind)
                store(waiting, w, length + 1)
                queued += 1
                if length + 1 >= room:
                    full = True
                j = -1

        if j >= 0:
            length = chosen_count(served, j)
            if length == 0:
                store(V, j, 0.0)
            mark = chosen(V, j) + left
            insert(marks, slots, born, sizes, names, j, length, mark, arrival, size, name)
            store(served, j, length + 1)
            store(top, j, min(chosen(top, j), mark))
            if length + 1 >= ROOM:
                full = True

    duration = now - started
    for i in range(M):
        first = WHOLE + COUNTERS * i
        c = CLASS_SUMS * i
        counted[c + DEPARTURES] = np.float64(gone[i])
        counted[c + AREA] = area[i] + np.float64(count[i]) * duration
        counted[c + ARRIVALS] += np.float64(count[i]) + counted[c + DEPARTURES]
        for k in range(CLASS_SUMS):
            sums[c + k, t] += counted[c + k]
        whole[first + PRESENT, t] = count[i]
        whole[first + SERVED, t] = served[i]
        whole[first + WAITING, t] = waiting[i]
        reals[REALS + i, t] = V[i]
        if SOURCE == RENEWAL:
            whole[first + DRAWN, t] = drawn[i]
            reals[REALS + M + i, t] = following[i]
            reals[REALS + 2 * M + i, t] = following_size[i]
    sums[CLASS_SUMS * M + DURATION, t] += duration
    sums[CLASS_SUMS * M + USED_AREA, t] += used_area
    sums[CLASS_SUMS * M + OVERLOAD, t] += overload
    reals[NOW, t] = now
    reals[NEXT_TIME, t] = next_time
    reals[NEXT_SIZE, t] = next_size
    whole[JOB, t] = job
    whole[NEXT_CLASS, t] = next_class
    whole[STATUS, t] = status
