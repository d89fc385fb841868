"""The job kernel: any policy that looks at every job, O(N) per event.

Rows of `jobs` are the jobs present, earliest arrival first; the rule writes cores for each. It is asked after
every arrival and departure, or every `period` if that is positive, and whenever the number of cores changes.
What it proposes goes through `legal_widths`, which plain workloads skip. A job that ran before and is given
other cores is resized: it loses work and stands still for as long as its class says, and cannot be resized
again within its quiet time; when that ends the rule is asked again.

At the same time, departures and ends of pauses come first, then arrivals, then changes of the cores, then
ends of quiet times, then rounds. Where machines demand things of jobs, a departure is at the same time as
what comes before it by rounding: a job that is done but for the last digits is not resized any more.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from malleable.engine.enforcement import check
from malleable.engine.job_log import (
    CHANGES,
    END,
    FIRST,
    HELD_AREA,
    LENGTH,
    RENT,
    START,
    add_usage,
    join_slices,
    rent_until,
)
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
    RESIZES,
    RESPONSE,
    SLOWDOWN,
    STOP,
    USED,
    USED_AREA,
    WORK,
    histogram_bin,
)
from malleable.engine.kernels.class_kernel import IDENTITY as COUNTER
from malleable.engine.legal_widths import copy_rows, legalise, set_aside
from malleable.engine.residual_table import expected_remaining
from malleable.engine.rule_interface import (
    AGE,
    CLASS,
    COLUMNS,
    DONE,
    GROW,
    HELD,
    IDENTITY,
    MORE_CAPACITY,
    REMAINING,
    RESTARTS,
    SAME_TIME,
    SIZE,
    STOPPED,
    STUCK,
    TOLERANCE,
    WEIGHT,
    inlined,
)
from malleable.engine.speedup_table import speed
from malleable.engine.width_table import LIMIT, PAUSES, PLAIN, limit, pause_between

# Columns of `private`: what the engine knows of a job and a rule need not.
ARRIVED, SPEED, RESUMES, STARTED = range(4)
PRIVATE = 4
# Rows of `memory`: until when a job is quiet, the width that it has chosen for good (0: none yet), and
# whether it keeps its cores at this decision, whatever is proposed.
CALM, KEPT, PINNED = range(3)
MEMORY = 2
"""Rows that are kept from one decision to the next."""
MEMORY_ROWS = 3
# Entries of `scalars` beyond those of the class kernel.
TICK, CORES, CAPACITY, LATE = 6, 7, 8, 9
"""The next round, the cores there are now, the integral of their number, the end of the known changes."""
JOB_SCALARS = 10
# Entries of `integers` beyond those of the class kernel.
CHANGE = 9
"""The next change of the number of cores."""
JOB_INTEGERS = 10
NEVER = np.inf
DEMANDING = True
"""Whether jobs may have limits, or sizes that the rule must not see; `plain_job_kernel` has none of that."""
LOGGING = False
"""Whether every job is noted; the `logging` kernels do it."""
AT_ARRIVAL, AT_CHANGE, AT_CALM, AT_ROUND = range(4)


def signature(rule: Any) -> Any:
    """The types of `job_kernel`'s arguments, for a rule of the given type."""
    from numba import float64, int64  # noqa: PLC0415 - this module also runs without numba

    f1, f2, i1 = float64[::1], float64[:, ::1], int64[::1]
    return int64(
        rule, f1, f1, f1,
        float64, int64, int64, f1, f1,
        f1, i1, f1, f1, int64, int64, f1, f1,
        f1, i1, f1, f1, f2, f2, f2, f1, f2, f1, i1,
        f2, f2, f2, f2, f2, f2, f1, f2,
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


@inlined
def is_done(private: Any, jobs: Any, j: int, now: float) -> bool:
    """Whether a job leaves at this very time, but for rounding."""
    return bool(private[j, SPEED] > 0.0 and jobs[j, REMAINING] <= private[j, SPEED] * SAME_TIME * now)


@inlined
def end_of_quiet(memory: Any, present: int, now: float) -> float:
    """When the next quiet time ends."""
    soonest = NEVER
    for j in range(present):
        if now < memory[CALM, j] < soonest:
            soonest = memory[CALM, j]
    return soonest


def hide_sizes(view: Any, residual: Any) -> None:
    """Put what is left on average, given the work done, in the place of what is left."""
    for j in range(view.shape[0]):
        done = view[j, SIZE] - view[j, REMAINING]
        view[j, REMAINING] = expected_remaining(residual, int(view[j, CLASS]), done)
        view[j, SIZE] = done + view[j, REMAINING]


def ask_rule(
    rule: Any,
    jobs: Any,
    memory: Any,
    present: int,
    now: float,
    n: float,
    table: Any,
    limits: Any,
    residual: Any,
    sharing: int,
    sees_all: int,
    view: Any,
    part: Any,
    rows: Any,
    out: Any,
) -> int:
    """Ask the rule about the jobs that can move, and make what it proposes legal."""
    pinned = memory[PINNED]
    movable, free = set_aside(jobs[:present], memory[CALM], now, n, limits, rows, pinned)
    for j in range(present):
        out[j] = jobs[j, HELD] if pinned[j] == 1.0 else 0.0
    if movable == 0 or free < 1.0 - TOLERANCE:
        return DONE
    asked = copy_rows(jobs[:present], rows, movable, sees_all, view)
    if residual[0] != 0.0:
        hide_sizes(view[:asked], residual)
    cores = n if sees_all != 0 else free
    part[:asked] = 0.0
    rule(view[:asked], cores, table, part[:asked])
    status = check(part, asked, cores, sharing)
    if status != DONE:
        for j in range(asked):
            out[j] = part[j]
        return status
    if sees_all != 0:
        for position in range(movable):
            part[position] = part[rows[position]]
    legalise(jobs, rows, movable, memory[KEPT], free, limits, part)
    for position in range(movable):
        out[rows[position]] = part[position]
    return check(out, present, n, 1)


def job_kernel(  # noqa: C901, PLR0912, PLR0915 - one function, for the reason given in `kernels`
    rule: Any,
    table: Any,
    encoded: Any,
    costs: Any,
    period: float,
    sharing: int,
    sees_all: int,
    limits: Any,
    residual: Any,
    times: Any,
    classes: Any,
    sizes: Any,
    weights: Any,
    last: int,
    drain: int,
    change_times: Any,
    change_cores: Any,
    scalars: Any,
    integers: Any,
    since: Any,
    counts: Any,
    jobs: Any,
    private: Any,
    memory: Any,
    out: Any,
    view: Any,
    part: Any,
    rows: Any,
    sums: Any,
    responses: Any,
    slowdowns: Any,
    widths: Any,
    log: Any,
    usage: Any,
    slices: Any,
    paid: Any,
) -> int:
    """Take the arrivals up to `last` (and all departures, if `drain`); return why it stopped."""
    m = counts.shape[0]
    now = scalars[NOW]
    started = now
    used = scalars[USED]
    tick = scalars[TICK]
    n = scalars[CORES]
    present = integers[PRESENT]
    a = integers[NEXT]
    change = integers[CHANGE]
    identity = integers[COUNTER]
    used_area = overload = capacity = 0.0
    events = 0
    status = DONE
    wide = widths.shape[1] > 1
    plain = limits[PLAIN] != 0.0
    direct = plain and residual[0] == 0.0
    while True:
        if integers[STOP] != 0:
            status = STOPPED
            break
        wait, who = next_event(private, jobs, present, now)
        if a < last:
            gap = times[a] - now
        elif drain and present > 0:
            gap = NEVER
        else:
            break
        beat = tick - now if period > 0.0 and present > 0 else NEVER
        what = AT_ROUND
        moment = tick
        if DEMANDING and not plain and period <= 0.0:
            calm = end_of_quiet(memory, present, now)
            if calm - now <= beat and calm < NEVER:
                beat, what, moment = calm - now, AT_CALM, calm
        if change < change_times.shape[0]:
            if change_times[change] - now <= beat:
                beat, what, moment = change_times[change] - now, AT_CHANGE, change_times[change]
        elif min(wait, gap, beat) > scalars[LATE] - now:
            status = MORE_CAPACITY
            break
        if min(wait, gap, beat) == NEVER:
            status = STUCK if present > 0 else DONE
            break
        slack = 0.0 if plain or who < 0 else SAME_TIME * now
        arriving = gap < wait - slack and gap <= beat
        departing = not arriving and wait - slack <= beat and who >= 0
        if arriving and present + 1 >= jobs.shape[0]:
            status = GROW
            break

        dt = max(min(wait, gap, beat), 0.0)
        for j in range(present):
            done = private[j, SPEED] * dt
            jobs[j, REMAINING] -= done
            if wide and done > 0.0:
                widths[int(jobs[j, CLASS]), histogram_bin(jobs[j, HELD])] += done
        if LOGGING:
            if now + dt >= slices[FIRST] + slices[LENGTH] * usage.shape[1]:
                join_slices(usage, slices, now + dt)
            rent = rent_until(paid, slices, now + dt)
            for j in range(present):
                if jobs[j, HELD] > 0.0:
                    log[HELD_AREA, int(jobs[j, IDENTITY])] += jobs[j, HELD] * dt
                    log[RENT, int(jobs[j, IDENTITY])] += jobs[j, HELD] * rent
                    add_usage(usage, slices, int(jobs[j, CLASS]), now, now + dt, float(jobs[j, HELD]))
        used_area += used * dt
        capacity += n * dt
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
            jobs[present, WEIGHT] = weights[a] if weights.shape[0] > 0 else costs[i]
            jobs[present, HELD] = 0.0
            jobs[present, SIZE] = sizes[a]
            jobs[present, RESTARTS] = 0.0
            jobs[present, IDENTITY] = identity
            memory[CALM, present] = memory[KEPT, present] = 0.0
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
            if LOGGING:
                log[END, int(jobs[who, IDENTITY])] = now
                log[CHANGES, int(jobs[who, IDENTITY])] = jobs[who, RESTARTS]
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
                # In this loop and for every workload: on its own it would keep the compiler from a good copy.
                for line in range(MEMORY):
                    memory[line, j] = memory[line, j + 1]
            events += 1
        elif wait <= beat:
            ask = False
        else:
            now = moment
            ask = True
            if what == AT_CHANGE:
                n = change_cores[change]
                change += 1
            elif what == AT_ROUND:
                tick += period

        if ask and present > 0:
            for j in range(present):
                jobs[j, AGE] = now - private[j, ARRIVED]
                out[j] = 0.0
            if DEMANDING and not direct:
                if n >= 1.0:
                    status = ask_rule(
                        rule, jobs, memory, present, now, n, table, limits, residual, sharing, sees_all,
                        view, part, rows, out,
                    )  # fmt: skip
            elif n >= 1.0:
                rule(jobs[:present], n, table, out[:present])
                status = check(out, present, n, sharing)
            if status != DONE:
                break
            used = 0.0
            for j in range(present):
                k = out[j]
                if DEMANDING and not plain and is_done(private, jobs, j, now):
                    k = jobs[j, HELD]
                used += k
                if k != jobs[j, HELD]:
                    if k > 0.0:
                        i = int(jobs[j, CLASS])
                        if LOGGING and private[j, STARTED] == 0.0:
                            log[START, int(jobs[j, IDENTITY])] = now
                        jobs[j, RESTARTS] += private[j, STARTED]
                        sums[RESIZES, i] += private[j, STARTED]
                        if DEMANDING and not plain and private[j, STARTED] > 0.0:
                            pause = pause_between(limits, i, float(jobs[j, HELD]), k)
                            if pause > 0.0:
                                private[j, RESUMES] = now + pause
                            memory[CALM, j] = now + limit(limits, i, LIMIT.QUIET)
                            lost = limit(limits, i, LIMIT.WORK)
                            jobs[j, REMAINING] = min(jobs[j, REMAINING] + lost, jobs[j, SIZE])
                        private[j, STARTED] = 1.0
                        memory[KEPT, j] = k
                    jobs[j, HELD] = k
                    private[j, SPEED] = speed(encoded, int(jobs[j, CLASS]), k)
        if DEMANDING and limits[PAUSES] != 0.0:
            for j in range(present):
                resumed = private[j, RESUMES] <= now
                private[j, SPEED] = speed(encoded, int(jobs[j, CLASS]), jobs[j, HELD]) if resumed else 0.0

    for i in range(m):
        sums[AREA, i] += counts[i] * (now - since[i])
        since[i] = now
    scalars[NOW] = now
    scalars[USED] = used
    scalars[TICK] = tick
    scalars[CORES] = n
    scalars[CAPACITY] += capacity
    scalars[DURATION] += now - started
    scalars[USED_AREA] += used_area
    scalars[OVERLOAD] += overload
    scalars[EVENTS] += events
    integers[PRESENT] = present
    integers[NEXT] = a
    integers[CHANGE] = change
    integers[COUNTER] = identity
    return status


def _copy(name: str, **flags: bool) -> FunctionType:
    """The kernel under another name, with other flags."""
    copy = FunctionType(job_kernel.__code__, {**globals(), **flags}, name)
    copy.__qualname__ = name
    return copy


plain_job_kernel = _copy("plain_job_kernel", DEMANDING=False)
"""The same for jobs without limits whose sizes are known: smaller, so quicker to compile and to run."""
logging_job_kernel = _copy("logging_job_kernel", LOGGING=True)
"""The same, and every job is noted in `log`, and the cores of each class over time in `usage`."""
logging_plain_job_kernel = _copy("logging_plain_job_kernel", DEMANDING=False, LOGGING=True)
