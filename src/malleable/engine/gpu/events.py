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
from malleable.engine.gpu.class_state import add, chosen, decided, load, save, store, tabulated
from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.job_orders import (
    BORN,
    KIND,
    LEFT,
    NAME,
    SIZE,
    drop_longest,
    heap_in,
    heap_out,
    insert,
    mark_at,
    put,
)
from malleable.engine.gpu.layout import (
    AREA_TALLY,
    CLASS_SUMS,
    CLASS_TALLIES,
    COUNTERS,
    DISCIPLINE,
    DURATION,
    GIVEN,
    GONE,
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
    RENEWAL,
    ROOM,
    RULE_ON_DEVICE,
    SOURCE,
    STATISTICS,
    STATUS,
    TALLIES,
    USED_AREA,
    WHOLE,
    WORK_TALLY,
    Arrays,
    M,
    Parameters,
    histogram_bin,
)
from malleable.engine.rule_interface import BINS, DONE, FIFO, GROW, INDEX, POOLS, SHARE, STUCK

ROUNDING = 1e-10
"""Relative difference of two remaining sizes that may be rounding."""
ZERO, ONE, MINUS_ONE = np.int32(0), np.int32(1), np.int32(-1)
NO_CLASS = MINUS_ONE
"""A number of a class where there is none."""


def replicate(  # noqa: C901, PLR0912, PLR0915 - one function: what it keeps in registers cannot be passed on
    t: int,
    last: int,
    drain: int,
    p: Parameters,
    a: Arrays,
    marks: Any,
    slots: Any,
    born: Any,
    sizes: Any,
    names: Any,
    near: Any,
) -> None:
    """Take the jobs of replication t up to number `last` (and all departures, if `drain`).

    The jobs that are served stand where the kernel has put them: in `marks`, `slots`, …, or in `near`.
    """
    V = cuda.local.array(M, np.float64)
    s = cuda.local.array(M, np.float64)
    inverse = cuda.local.array(M, np.float64)
    top = cuda.local.array(M, np.float64)
    count = cuda.local.array(M, np.int32)
    served = cuda.local.array(M, np.int32)
    waiting = cuda.local.array(M, np.int32)
    limit = cuda.local.array(M, np.int32)
    following = cuda.local.array(M, np.float64)
    following_size = cuda.local.array(M, np.float64)
    drawn = cuda.local.array(M, np.int64)
    responses = cuda.local.array(M, np.float64)
    slowdowns = cuda.local.array(M, np.float64)
    asked = cuda.local.array(M, np.float64)
    width = cuda.local.array(M, np.float64)

    n, costs = p.n, p.costs
    reals, whole, queue, sums = a.reals, a.whole, a.queue, a.sums
    replication = a.numbers[t]
    job = whole[JOB, t]
    now = reals[NOW, t]
    next_time = reals[NEXT_TIME, t]
    next_size = reals[NEXT_SIZE, t]
    next_class = np.int32(whole[NEXT_CLASS, t])
    room = np.int32(queue.shape[1] // (1 if DISCIPLINE == FIFO else M))
    # N >= n, and N > n: n need not be whole.
    crowd = np.int32(math.ceil(n))
    most = np.int32(math.floor(n))
    for i in range(M):
        responses[i] = 0.0
        slowdowns[i] = 0.0
    present, queued, status = load(
        t, room, p.limits, a, marks, near,
        V, top, count, served, waiting, limit, following, following_size, drawn,
    )  # fmt: skip
    started = now
    used = 0.0
    used_area = 0.0
    overload = 0.0

    if whole[STATUS, t] == -1:
        # The first job of all.
        if SOURCE == POISSON:
            next_time, next_class, next_size = poisson_job(
                job, replication, p.key, p.mean_gap, p.bounds, p.kinds, p.laws
            )
        elif SOURCE == RENEWAL:
            for i in range(M):
                following[i], following_size[i] = renewal_draws(
                    0, i, replication, p.key, p.bounds, p.kinds, p.laws
                )
                drawn[i] = 1
            next_class = earliest(following)
            next_time = chosen(following, next_class, 0.0)
            next_size = chosen(following_size, next_class, 0.0)
        elif job < last:
            next_time = a.given_times[t, job]
            next_class = np.int32(a.given_classes[t, job])
            next_size = a.given_sizes[t, job]

    while status == DONE:
        # The cores of the state. In a crowd every job served has one.
        if DISCIPLINE == POOLS:
            used = 0.0
            for i in range(M):
                used += np.float64(served[i]) * p.fixed[i]
                s[i] = p.fixed[M + i]
                inverse[i] = p.fixed[2 * M + i]
        elif DISCIPLINE != SHARE and present >= crowd:
            used = min(np.float64(present), n)
            for i in range(M):
                s[i] = 1.0
                inverse[i] = 1.0
        else:
            # No job waits here.
            inside = True
            row = ZERO
            for i in range(M - 1, -1, -1):
                inside = inside and served[i] <= limit[i]
                row = np.int32(row * (limit[i] + ONE) + served[i])
            if inside:
                used = tabulated(p.speeds, row, s, inverse)
            elif RULE_ON_DEVICE:
                used = decided(served, n, a.rule_tables[:, t], p.encoded, asked, width, s, inverse)
            else:
                status = OUTSIDE
                break

        wait = math.inf
        who = NO_CLASS
        for i in range(M):
            d = (top[i] - V[i]) * inverse[i]
            if d < wait:
                wait = d
                who = np.int32(i)
        gap = math.inf
        if job < last:
            gap = next_time - now
        elif not drain:
            break
        elif who < 0:
            status = int(-used) if used < 0.0 else STUCK if present > 0 else DONE
            break

        departing = wait <= gap
        dt = max(wait if departing else gap, 0.0)
        for i in range(M):
            V[i] += s[i] * dt
        # Tested late, so that all of a row of the table is asked for at once.
        if used < 0.0:
            status = int(-used)
            break
        used_area += used * dt
        if present > most:
            overload += dt

        # The job of class j that enters service below, if j >= 0: work left, arrival, size, number.
        j = NO_CLASS
        left = 0.0
        arrival = 0.0
        size = 0.0
        name = 0.0
        if departing:
            now += dt
            length = np.int32(chosen(served, who, ZERO) - ONE)
            # An empty class starts again at 0.
            store(V, who, chosen(top, who, 0.0) if length > 0 else 0.0)
            store(top, who, mark_at(near, marks, who, np.int32(length - ONE)) if length > 0 else math.inf)
            store(served, who, length)
            tally = np.uint32(TALLIES + CLASS_TALLIES * who)
            near[np.uint32(tally + GONE)] += 1.0
            near[np.uint32(tally + AREA_TALLY)] += now - started
            present = np.int32(present - ONE)
            if DISCIPLINE == FIFO:
                add(count, who, MINUS_ONE)
            if STATISTICS:
                slot = np.uint32(who * ROOM + slots[np.uint32(who * ROOM + length)])
                response = now - born[slot]
                slowdown = response / sizes[slot]
                near[np.uint32(tally + WORK_TALLY)] += sizes[slot]
                responses[np.uint32(who)] += response
                slowdowns[np.uint32(who)] += slowdown
                copy = (t >> 5) % a.histogram.shape[0]
                at = 2 * BINS * who
                cuda.atomic.add(a.histogram, (copy, at + histogram_bin(response)), np.uint32(1))
                cuda.atomic.add(a.histogram, (copy, at + BINS + histogram_bin(slowdown)), np.uint32(1))
                if LOGGED:
                    a.log[t, int(names[slot])] = now
            if DISCIPLINE != SHARE and queued > 0:
                # A job that waits may start: the best by c/x, or the head of a queue.
                q = NO_CLASS
                if DISCIPLINE == INDEX:
                    best = -1.0
                    first_name = math.inf
                    for i in range(M):
                        if waiting[i] > 0:
                            value = costs[i] / queue[LEFT, np.uint32(i * room), t]
                            its_name = queue[NAME, np.uint32(i * room), t]
                            if value > best or (value == best and its_name < first_name):
                                best = value
                                first_name = its_name
                                q = np.int32(i)
                elif DISCIPLINE == FIFO:
                    q = ZERO
                elif chosen(waiting, who, ZERO) > 0:
                    q = who
                if q >= 0:
                    head = ZERO
                    if DISCIPLINE != INDEX:
                        head = np.int32(whole[WHOLE + COUNTERS * q + HEAD, t])
                    place = np.uint32(q * room + head)
                    left = queue[LEFT, place, t]
                    if STATISTICS:
                        arrival = queue[BORN, place, t]
                        size = queue[SIZE, place, t]
                        name = queue[NAME, place, t]
                    j = q if DISCIPLINE != FIFO else np.int32(queue[KIND, place, t])
                    queued = np.int32(queued - ONE)
                    # By FIFO the one queue is counted with the first class.
                    rest = np.int32(chosen(waiting, q, ZERO) - ONE)
                    store(waiting, q, rest)
                    if DISCIPLINE == INDEX:
                        heap_out(queue, np.int32(q * room), rest, t)
                    else:
                        whole[WHOLE + COUNTERS * q + HEAD, t] = head + 1 if head + 1 < room else 0
        else:
            now = next_time
            j = next_class
            left = next_size
            arrival = now
            size = left
            name = np.float64(job) if NAMED else now
            job += 1
            tally = np.uint32(TALLIES + CLASS_TALLIES * j)
            near[np.uint32(tally + AREA_TALLY)] += started - now
            if not STATISTICS:
                near[np.uint32(tally + WORK_TALLY)] += left
            present = np.int32(present + ONE)
            if DISCIPLINE == FIFO:
                add(count, j, ONE)
            # The job after it.
            if SOURCE == POISSON:
                later, next_class, next_size = poisson_job(
                    job, replication, p.key, p.mean_gap, p.bounds, p.kinds, p.laws
                )
                next_time = now + later
            elif SOURCE == RENEWAL:
                later, following_x = renewal_draws(
                    chosen(drawn, j, 0), j, replication, p.key, p.bounds, p.kinds, p.laws
                )
                add(drawn, j, 1)
                store(following, j, now + later)
                store(following_size, j, following_x)
                next_class = earliest(following)
                next_time = chosen(following, next_class, 0.0)
                next_size = chosen(following_size, next_class, 0.0)
            elif SOURCE == GIVEN and job < last:
                next_time = a.given_times[t, job]
                next_class = np.int32(a.given_classes[t, job])
                next_size = a.given_sizes[t, job]
            if DISCIPLINE != SHARE:
                # The queue that a job of class `kind` joins, if w >= 0: the newcomer, or one that makes way.
                w = NO_CLASS
                kind = j
                kept_left = left
                kept_born = arrival
                kept_size = size
                kept_name = name
                if DISCIPLINE == POOLS:
                    if chosen(served, j, ZERO) >= p.slots_of[j]:
                        w = j
                        j = NO_CLASS
                elif present > most:
                    w = j if DISCIPLINE == INDEX else ZERO
                    victim = NO_CLASS
                    if DISCIPLINE == INDEX:
                        # Where c/x is the same but for rounding, the newcomer goes last.
                        worst = costs[j] / left * (1.0 - ROUNDING)
                        latest = name
                        for i in range(M):
                            if served[i] > 0:
                                value = costs[i] / (mark_at(near, marks, i, ZERO) - V[i])
                                its_name = (
                                    names[np.uint32(i * ROOM + slots[np.uint32(i * ROOM)])]
                                    if STATISTICS
                                    else 0.0
                                )
                                if value < worst or (value == worst and its_name > latest):
                                    worst = value
                                    latest = its_name
                                    victim = np.int32(i)
                    if victim >= 0:
                        # The victim's longest job makes way, and the newcomer is served at once.
                        w = victim
                        kind = victim
                        kept_left = mark_at(near, marks, victim, ZERO) - chosen(V, victim, 0.0)
                        if STATISTICS:
                            slot = np.uint32(victim * ROOM + slots[np.uint32(victim * ROOM)])
                            kept_born = born[slot]
                            kept_size = sizes[slot]
                            kept_name = names[slot]
                        length = np.int32(chosen(served, victim, ZERO) - ONE)
                        drop_longest(near, marks, slots, victim, np.int32(length + ONE))
                        store(served, victim, length)
                        if length == 0:
                            store(V, victim, 0.0)
                            store(top, victim, math.inf)
                    else:
                        j = NO_CLASS
                if w >= 0:
                    length = chosen(waiting, w, ZERO)
                    if DISCIPLINE == INDEX:
                        first = np.int32(w * room)
                        heap_in(queue, first, length, t, kept_left, kept_born, kept_size, kept_name)
                    else:
                        hole = np.int32(whole[WHOLE + COUNTERS * w + HEAD, t] + length)
                        if hole >= room:
                            hole = np.int32(hole - room)
                        behind = np.int32(w * room + hole)
                        put(queue, behind, t, kept_left, kept_born, kept_size, kept_name, kind)
                    length = np.int32(length + ONE)
                    store(waiting, w, length)
                    queued = np.int32(queued + ONE)
                    if length >= room:
                        status = GROW

        if j >= 0:
            length = chosen(served, j, ZERO)
            mark = (chosen(V, j, 0.0) if length > 0 else 0.0) + left
            if DISCIPLINE != SHARE and length == 0:
                store(V, j, 0.0)
            least = chosen(top, j, 0.0)
            insert(near, marks, slots, born, sizes, names, j, length, least, mark, arrival, size, name)
            length = np.int32(length + ONE)
            store(served, j, length)
            store(top, j, min(least, mark))
            if length >= ROOM:
                status = GROW

    duration = now - started
    save(
        t, duration, a, near,
        V, count, served, waiting, following, following_size, drawn, responses, slowdowns,
    )  # fmt: skip
    sums[CLASS_SUMS * M + DURATION, t] += duration
    sums[CLASS_SUMS * M + USED_AREA, t] += used_area
    sums[CLASS_SUMS * M + OVERLOAD, t] += overload
    reals[NOW, t] = now
    reals[NEXT_TIME, t] = next_time
    reals[NEXT_SIZE, t] = next_size
    whole[JOB, t] = job
    whole[NEXT_CLASS, t] = next_class
    whole[STATUS, t] = status
