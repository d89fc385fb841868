"""The job kernel: any policy that looks at every job, O(N) per event.

Rows of `jobs` are the jobs present, earliest arrival first; the rule writes cores for each. It is asked after
every arrival and departure, or every `period` if that is positive; a running job that is resized makes no
progress for `pause`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.engine.enforcement import check
from malleable.engine.kernels.class_kernel import (
    AREA,
    ARRIVALS,
    DEPARTURES,
    DURATION,
    EVENTS,
    NEXT,
    NOW,
    OVERLOAD,
    PRESENT,
    RESPONSE,
    SLOWDOWN,
    STOP,
    USED,
    USED_AREA,
    WORK,
    histogram_bin,
)
from malleable.engine.kernels.class_kernel import IDENTITY as COUNTER
from malleable.engine.rule_interface import (
    AGE,
    CLASS,
    COLUMNS,
    DONE,
    GROW,
    HELD,
    IDENTITY,
    REMAINING,
    RESTARTS,
    SIZE,
    STOPPED,
    STUCK,
    WEIGHT,
    inlined,
)
from malleable.engine.speedup_table import speed

# Columns of `private`: what the engine knows of a job and a rule need not.
ARRIVED, SPEED, RESUMES, STARTED = range(4)
PRIVATE = 4
# Entries of `scalars` beyond those of the class kernel.
TICK = 6
JOB_SCALARS = 7
NEVER = np.inf


def signature(rule: Any) -> Any:
    """The types of `job_kernel`'s arguments, for a rule of the given type."""
    from numba import float64, int64  # noqa: PLC0415 - this module also runs without numba

    f1, f2, i1 = float64[::1], float64[:, ::1], int64[::1]
    return int64(
        rule, float64, f1, f1, f1,
        float64, float64,
        f1, i1, f1, int64, int64,
        f1, i1, f1, f1, f2, f2, f1,
        f2, f2, f2, f2, f1,
    )  # fmt: skip


@inlined
def next_event(private: Any, jobs: Any, present: int, now: float) -> tuple[float, int]:
    """Time to the next departure (and whose), or to the end of a pause (and −1)."""
    wait = NEVER
    who = -1
    for j in range(present):
        if private[j, SPEED] > 0.0:
            d = jobs[j, REMAINING] / private[j, SPEED]
            if d < wait:
                wait = d
                who = j
        elif private[j, RESUMES] > now and private[j, RESUMES] - now < wait:
            wait = private[j, RESUMES] - now
            who = -1
    return wait, who


def job_kernel(  # noqa: C901, PLR0912, PLR0915 - one function, for the reason given in `kernels`
    rule: Any,
    n: float,
    table: Any,
    encoded: Any,
    costs: Any,
    period: float,
    pause: float,
    times: Any,
    classes: Any,
    sizes: Any,
    last: int,
    drain: int,
    scalars: Any,
    integers: Any,
    since: Any,
    counts: Any,
    jobs: Any,
    private: Any,
    out: Any,
    sums: Any,
    responses: Any,
    slowdowns: Any,
    widths: Any,
    log: Any,
) -> int:
    """Take the arrivals up to `last` (and all departures, if `drain`); return why it stopped."""
    m = counts.shape[0]
    now = scalars[NOW]
    started = now
    used = scalars[USED]
    tick = scalars[TICK]
    present = integers[PRESENT]
    a = integers[NEXT]
    identity = integers[COUNTER]
    used_area = overload = 0.0
    events = 0
    status = DONE
    wide = widths.shape[1] > 1
    while True:
        if integers[STOP] != 0:
            status = STOPPED
            break
        wait, who = next_event(private, jobs, present, now)
        if a < last:
            gap = times[a] - now
        elif drain:
            gap = NEVER
        else:
            break
        beat = tick - now if period > 0.0 and present > 0 else NEVER
        if min(wait, gap, beat) == NEVER:
            status = STUCK if present > 0 else DONE
            break
        arriving = gap < wait and gap <= beat
        departing = not arriving and wait <= beat and who >= 0
        if arriving and present + 1 >= jobs.shape[0]:
            status = GROW
            break

        dt = max(min(wait, gap, beat), 0.0)
        for j in range(present):
            done = private[j, SPEED] * dt
            jobs[j, REMAINING] -= done
            if wide and done > 0.0:
                widths[int(jobs[j, CLASS]), histogram_bin(jobs[j, HELD])] += done
        used_area += used * dt
        if present > n:
            overload += dt
        now = times[a] if arriving else now + dt

        ask = period <= 0.0
        if arriving:
            i = classes[a]
            sums[ARRIVALS, i] += 1.0
            sums[AREA, i] += counts[i] * (now - since[i])
            since[i] = now
            counts[i] += 1.0
            jobs[present, CLASS] = i
            jobs[present, REMAINING] = sizes[a]
            jobs[present, AGE] = 0.0
            jobs[present, WEIGHT] = costs[i]
            jobs[present, HELD] = 0.0
            jobs[present, SIZE] = sizes[a]
            jobs[present, RESTARTS] = 0.0
            jobs[present, IDENTITY] = identity
            private[present, ARRIVED] = now
            private[present, SPEED] = 0.0
            private[present, RESUMES] = -1.0
            private[present, STARTED] = 0.0
            if present == 0 and period > 0.0:
                # Rounds happen at multiples of the period, whether or not jobs are present.
                tick = np.ceil(now / period) * period
            present += 1
            identity += 1
            a += 1
            events += 1
        elif departing:
            i = int(jobs[who, CLASS])
            response = now - private[who, ARRIVED]
            slowdown = response / jobs[who, SIZE]
            sums[DEPARTURES, i] += 1.0
            sums[WORK, i] += jobs[who, SIZE]
            sums[RESPONSE, i] += response
            sums[SLOWDOWN, i] += slowdown
            responses[i, histogram_bin(response)] += 1.0
            slowdowns[i, histogram_bin(slowdown)] += 1.0
            if log.shape[0] > 0:
                log[int(jobs[who, IDENTITY])] = now
            sums[AREA, i] += counts[i] * (now - since[i])
            since[i] = now
            counts[i] -= 1.0
            used -= jobs[who, HELD]
            present -= 1
            for j in range(who, present):
                for column in range(COLUMNS):
                    jobs[j, column] = jobs[j + 1, column]
                for column in range(PRIVATE):
                    private[j, column] = private[j + 1, column]
            events += 1
        elif wait <= beat:
            ask = False
        else:
            now = tick
            tick += period
            ask = True

        if ask and present > 0:
            for j in range(present):
                jobs[j, AGE] = now - private[j, ARRIVED]
                out[j] = 0.0
            rule(jobs[:present], n, table, out[:present])
            status = check(out, present, n)
            if status != DONE:
                break
            used = 0.0
            for j in range(present):
                k = out[j]
                used += k
                if k != jobs[j, HELD]:
                    if k > 0.0:
                        jobs[j, RESTARTS] += private[j, STARTED]
                        if private[j, STARTED] > 0.0 and pause > 0.0:
                            private[j, RESUMES] = now + pause
                        private[j, STARTED] = 1.0
                    jobs[j, HELD] = k
                    private[j, SPEED] = speed(encoded, int(jobs[j, CLASS]), k)
        if pause > 0.0:
            for j in range(present):
                resumed = private[j, RESUMES] <= now
                private[j, SPEED] = speed(encoded, int(jobs[j, CLASS]), jobs[j, HELD]) if resumed else 0.0

    for i in range(m):
        sums[AREA, i] += counts[i] * (now - since[i])
        since[i] = now
    scalars[NOW] = now
    scalars[USED] = used
    scalars[TICK] = tick
    scalars[DURATION] += now - started
    scalars[USED_AREA] += used_area
    scalars[OVERLOAD] += overload
    scalars[EVENTS] += events
    integers[PRESENT] = present
    integers[NEXT] = a
    integers[COUNTER] = identity
    return status
