"""What a replication knows of each class: in registers, between launches in device memory; and their speeds.

One value per class, read and written by a class that is known only at run time.

Clocks, counts and speeds of all classes stand in registers, and registers have no addresses: `values[i]`
with an i that is computed would put all of them into memory. So all classes are gone through, each with a
fixed number, and the one that is meant is taken. From nine classes on the values are in memory, and are
addressed.

All whole numbers are 32 bits wide, and places are unsigned: of a Python integer numba would make 64 bits,
which take two registers and two instructions, and would test whether a signed place counts from the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from malleable.engine.gpu.job_orders import mark_at
from malleable.engine.gpu.layout import (
    AREA,
    AREA_TALLY,
    ARRIVALS,
    CLASS_SUMS,
    CLASS_TALLIES,
    COUNTERS,
    DEPARTURES,
    DISCIPLINE,
    DRAWN,
    GONE,
    PRESENT,
    REALS,
    RENEWAL,
    RESPONSE,
    ROOM,
    SAMPLED,
    SERVED,
    SLOWDOWN,
    SOURCE,
    STATISTICS,
    TABLE_ROW,
    TALLIES,
    WAITING,
    WHOLE,
    WORK,
    WORK_TALLY,
    Arrays,
    M,
)
from malleable.engine.rule_interface import (
    DONE,
    FIFO,
    GROW,
    NEGATIVE,
    NOT_A_NUMBER,
    OVER_ALLOCATED,
    SHARE,
    TOLERANCE,
)
from malleable.engine.speedup_table import speed

UNROLLED = 8
"""Classes whose clocks, speeds and counts are kept in registers."""


def chosen(values: Any, i: Any, none: Any) -> Any:
    """values[i]; `none` is a zero of the same type."""
    if M > UNROLLED:
        return values[np.uint32(i)]
    found = none
    for k in range(M):
        if np.int32(k) == i:
            found = values[k]
    return found


def store(values: Any, i: Any, value: Any) -> None:
    """values[i] = value."""
    if M > UNROLLED:
        values[np.uint32(i)] = value
        return
    for k in range(M):
        if np.int32(k) == i:
            values[k] = value


def add(values: Any, i: Any, value: Any) -> None:
    """values[i] += value."""
    if M > UNROLLED:
        values[np.uint32(i)] += value
        return
    for k in range(M):
        if np.int32(k) == i:
            values[k] += value


def rule(counts: Any, cores: float, table: Any, out: Any) -> None:
    """Stands for the policy's rule, by which the kernel is specialised."""


def tabulated(speeds: Any, row: Any, s: Any, inverse: Any) -> float:
    """Read the speeds of a state from the table; the cores in use, or minus a status."""
    start = np.uint32(row * TABLE_ROW)
    for i in range(M):
        s[i] = speeds[np.uint32(start + 1 + i)]
        inverse[i] = speeds[np.uint32(start + 1 + M + i)]
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


ZERO, ONE = np.int32(0), np.int32(1)


def load(
    t: int, room: Any, limits: Any, a: Arrays, marks: Any, near: Any,
    V: Any, top: Any, count: Any, served: Any, waiting: Any, limit: Any,
    following: Any, following_size: Any, drawn: Any,
) -> Any:  # fmt: skip
    """Fill the arrays of a thread; jobs present and waiting, and whether a room is full already."""
    reals, whole = a.reals, a.whole
    present = ZERO
    queued = ZERO
    status = DONE
    for i in range(M):
        first = WHOLE + COUNTERS * i
        served[i] = np.int32(whole[first + SERVED, t])
        waiting[i] = np.int32(whole[first + WAITING, t]) if DISCIPLINE != SHARE else ZERO
        limit[i] = np.int32(limits[i])
        count[i] = np.int32(whole[first + PRESENT, t])
        present = np.int32(present + count[i])
        queued = np.int32(queued + waiting[i])
        V[i] = reals[REALS + i, t]
        top[i] = mark_at(near, marks, i, np.int32(served[i] - ONE)) if served[i] > 0 else math.inf
        if SOURCE == RENEWAL:
            following[i] = reals[REALS + M + i, t]
            following_size[i] = reals[REALS + 2 * M + i, t]
            drawn[i] = whole[first + DRAWN, t]
        for k in range(CLASS_TALLIES):
            near[np.uint32(TALLIES + CLASS_TALLIES * i + k)] = 0.0
        if served[i] >= ROOM or (DISCIPLINE != SHARE and waiting[i] >= room):
            status = GROW
    return present, queued, status


def save(
    t: int, duration: float, a: Arrays, near: Any,
    V: Any, count: Any, served: Any, waiting: Any, following: Any, following_size: Any, drawn: Any,
    responses: Any, slowdowns: Any,
) -> None:  # fmt: skip
    """Add what was counted to the sums, and keep the state for the next launch."""
    reals, whole, sums = a.reals, a.whole, a.sums
    for i in range(M):
        first = WHOLE + COUNTERS * i
        c = CLASS_SUMS * i
        if DISCIPLINE != FIFO:
            count[i] = np.int32(served[i] + waiting[i])
        before = whole[first + PRESENT, t]
        tally = np.uint32(TALLIES + CLASS_TALLIES * i)
        gone = near[np.uint32(tally + GONE)]
        sums[c + DEPARTURES, t] += gone
        sums[c + AREA, t] += near[np.uint32(tally + AREA_TALLY)] + np.float64(count[i]) * duration
        sums[c + ARRIVALS, t] += gone + np.float64(count[i] - before)
        sums[c + WORK, t] += near[np.uint32(tally + WORK_TALLY)]
        if STATISTICS:
            sums[c + SAMPLED, t] += gone
            sums[c + RESPONSE, t] += responses[i]
            sums[c + SLOWDOWN, t] += slowdowns[i]
        whole[first + PRESENT, t] = count[i]
        whole[first + SERVED, t] = served[i]
        whole[first + WAITING, t] = waiting[i]
        reals[REALS + i, t] = V[i]
        if SOURCE == RENEWAL:
            whole[first + DRAWN, t] = drawn[i]
            reals[REALS + M + i, t] = following[i]
            reals[REALS + 2 * M + i, t] = following_size[i]
