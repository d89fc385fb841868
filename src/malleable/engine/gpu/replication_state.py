"""Between launches: what a replication knows of each class, from device memory and back to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

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
    TALLIES,
    WAITING,
    WHOLE,
    WORK,
    WORK_TALLY,
    Arrays,
    M,
)
from malleable.engine.gpu.marks import mark_at
from malleable.engine.rule_interface import DONE, FIFO, GROW, SHARE

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
