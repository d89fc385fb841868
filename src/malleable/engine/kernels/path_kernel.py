"""A short path of a job rule: who was present, with how much left and how fast, at random moments.

Value functions are fitted to such paths. One moment is drawn in each interval between two events; weighted
by the lengths of the intervals, the moments are a sample of all times. The jobs of all moments stand in
three long arrays, one moment after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.compiling import AS_ARGUMENT, JOB_RULE, RuleAddress, compiled
from malleable.engine.rule_interface import (
    AGE,
    CLASS,
    COLUMNS,
    HELD,
    IDENTITY,
    REMAINING,
    RESTARTS,
    SIZE,
    WEIGHT,
)
from malleable.engine.speedup_table import speed

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray
    from malleable.engine.rule_interface import Program

MOST_PRESENT = 4096
"""A path on which more jobs than this are present at once ends there."""
JOBS_PER_MOMENT = 64
"""Room for the jobs of all moments, on average; a path that fills it ends there."""


class Path(NamedTuple):
    """The moments of a path and the jobs present at them."""

    durations: FloatArray
    """Length of the interval that a moment stands for."""
    moments: IntArray
    """For each job that was present, the moment."""
    classes: IntArray
    remaining: FloatArray
    speeds: FloatArray


def signature(rule: Any) -> Any:
    """The types of `path_kernel`'s arguments, for a rule of the given type."""
    from numba import float64, int64  # noqa: PLC0415 - this module also runs without numba

    f1, f2, i1 = float64[::1], float64[:, ::1], int64[::1]
    return int64(
        rule, f1, f1, f1, float64, f1, i1, f1, f1, f2, f1, f1, f1, i1, i1, f1, f1
    )  # fmt: skip


def path(
    program: Program, encoded: FloatArray, costs: FloatArray, cores: float, chunk: Any, draws: FloatArray
) -> Path:
    """The path of a rule on the jobs of a chunk, one moment for each of the draws (uniform on 0 to 1)."""
    moments, room = len(draws), JOBS_PER_MOMENT * len(draws)
    durations, counts = np.zeros(moments), np.zeros(moments, np.int64)
    classes, remaining, speeds = np.zeros(room, np.int64), np.zeros(room), np.zeros(room)
    jobs, rates, out = np.zeros((MOST_PRESENT, COLUMNS)), np.zeros(MOST_PRESENT), np.zeros(MOST_PRESENT)
    rule = RuleAddress(compiled(program.rule, JOB_RULE), JOB_RULE)
    kernel = compiled(path_kernel, signature(AS_ARGUMENT[JOB_RULE]))
    seen = kernel(
        rule, program.table.copy(), encoded, costs, cores, chunk.times, chunk.classes, chunk.sizes, draws,
        jobs, rates, out, durations, counts, classes, remaining, speeds,
    )  # fmt: skip
    filled = int(counts[:seen].sum())
    owners = np.repeat(np.arange(seen), counts[:seen])
    return Path(durations[:seen], owners, classes[:filled], remaining[:filled], speeds[:filled])


def path_kernel(  # noqa: C901 - one function, for the reason given in `kernels`
    rule: Any,
    table: Any,
    encoded: Any,
    costs: Any,
    cores: float,
    times: Any,
    kinds: Any,
    sizes: Any,
    draws: Any,
    jobs: Any,
    rates: Any,
    out: Any,
    durations: Any,
    counts: Any,
    classes: Any,
    remaining: Any,
    speeds: Any,
) -> int:
    """Go from event to event and write down a moment of each interval; how many were written."""
    now = 0.0
    present = arrived = filled = moment = 0
    while moment < draws.shape[0] and arrived < times.shape[0]:
        wait = np.inf
        who = -1
        for j in range(present):
            if rates[j] > 0.0 and jobs[j, REMAINING] / rates[j] < wait:
                wait = jobs[j, REMAINING] / rates[j]
                who = j
        gap = times[arrived] - now
        arriving = gap < wait
        dt = max(min(gap, wait), 0.0)
        if filled + present > classes.shape[0] or present + 1 >= jobs.shape[0]:
            break
        since = draws[moment] * dt
        for j in range(present):
            classes[filled] = int(jobs[j, CLASS])
            remaining[filled] = max(jobs[j, REMAINING] - rates[j] * since, 0.0)
            speeds[filled] = rates[j]
            jobs[j, REMAINING] -= rates[j] * dt
            jobs[j, AGE] += dt
            filled += 1
        durations[moment], counts[moment] = dt, present
        moment += 1
        if arriving:
            now = times[arrived]
            i = kinds[arrived]
            jobs[present, CLASS] = i
            jobs[present, REMAINING] = jobs[present, SIZE] = sizes[arrived]
            jobs[present, AGE] = jobs[present, HELD] = jobs[present, RESTARTS] = 0.0
            jobs[present, WEIGHT] = costs[i]
            jobs[present, IDENTITY] = arrived
            present += 1
            arrived += 1
        else:
            now += dt
            present -= 1
            for j in range(who, present):
                for column in range(COLUMNS):
                    jobs[j, column] = jobs[j + 1, column]
        if present > 0:
            for j in range(present):
                out[j] = 0.0
            rule(jobs[:present], cores, table, out[:present])
            for j in range(present):
                jobs[j, HELD] = out[j]
                rates[j] = speed(encoded, int(jobs[j, CLASS]), out[j])
    return moment
