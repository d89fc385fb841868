"""Job rules: policies that look at every single job, as plain functions that the engine compiles.

A rule is `rule(jobs, cores, table, out)`: `jobs` has one row a job, earliest arrival first, with the columns
of `engine.rule_interface`; `table` is what `prepare` computed once; the cores of each job go into `out`. It
is plain Python over numbers, so the very same function runs interpreted here, compiled in the simulator, and
may call other module-level functions of the same kind: those below, and those of `engine.speedup_table`.

A table starts with the encoded speedups; the rule's own numbers follow at `int(table[1])`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from malleable.contracts import Allocation, FloatArray, Policy
from malleable.engine.enforcement import enforce
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
    ClassProgram,
    JobProgram,
)
from malleable.engine.speedup_table import encode
from malleable.model import ConditionWarning, Workload
from malleable.policies.rules.market_allocation import DUST, usable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.model.jobs import IntArray, Jobs

TINY = 1e-200
"""Stands for a remaining size of 0 where it would divide."""
FEW = 32
"""Up to so many jobs, insertion sort is faster than any other."""


class Timing(NamedTuple):
    """How often to ask a policy again at the least (0: at arrivals and departures only), and the time
    without progress after each resize of a running job."""  # noqa: D205, D209 - one sentence

    period: float
    pause: float


class JobRule(Policy):
    """A policy given by a job rule.

    Subclasses are frozen dataclasses that set `rule = staticmethod(function)`, and override `prepare` if the
    rule needs more than the encoded speedups. `uses_speedups` says whether the rule reads the class of a job
    only to find its speedup; jobs that bring their own speedup are then taken as classes of their own.
    """

    rule: ClassVar[Any]
    """A staticmethod: `rule(jobs, cores, table, out)`."""
    uses_speedups: ClassVar[bool] = True

    @property
    def period(self) -> float | None:
        """Ask again at least this often; 0: at arrivals and departures only."""
        return 0.0

    @property
    def pause(self) -> float | None:
        """Time without progress after a running job was resized."""
        return 0.0

    def timing(self, workload: Workload) -> Timing:  # noqa: ARG002 - defaults may depend on the time scale
        """The period and the pause on this workload."""
        return Timing(float(self.period or 0.0), float(self.pause or 0.0))

    def prepare(self, workload: Workload, cores: float) -> FloatArray:  # noqa: ARG002 - others need it
        """Everything slow, once: the numbers that the rule reads."""
        return encode(workload.speedups)

    def program(self, workload: Workload, cores: float) -> ClassProgram | JobProgram:
        timing = self.timing(workload)
        return JobProgram(self.rule, self.prepare(workload, cores), timing.period, timing.pause)

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        """Run the rule, interpreted.

        With `integer`, widths that are not whole are rounded down and the cores that this frees are given
        back one each, to the largest fractions first, then to the earliest.
        """
        cores = usable(cores, integer=integer)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        workload, index = jobs.workload, jobs.class_index
        if self.uses_speedups and jobs.own_speedups is not None:
            workload, index = _a_class_each(jobs), jobs.speedup_index
        widths = np.zeros(len(jobs))
        self.rule(job_rows(jobs, index), cores, _prepared(self, workload, cores), widths)
        widths = enforce(widths, len(jobs), cores)
        out = np.empty(len(jobs))
        out[jobs.order] = whole(widths) if integer else widths
        return Allocation(out, None)


def job_rows(jobs: Jobs, class_index: IntArray) -> FloatArray:
    """The job array that rules read; original sizes and restarts, which `Jobs` does not know, as if new."""
    order = jobs.order
    rows = np.zeros((len(jobs), COLUMNS))
    rows[:, CLASS] = class_index[order]
    rows[:, REMAINING] = rows[:, SIZE] = jobs.remaining[order]
    rows[:, AGE], rows[:, WEIGHT], rows[:, HELD] = jobs.age[order], jobs.weight[order], jobs.held[order]
    rows[:, RESTARTS], rows[:, IDENTITY] = 0.0, np.arange(len(jobs))
    return rows


def whole(widths: FloatArray) -> FloatArray:
    """The nearest whole widths of the same total, by largest remainder."""
    down = np.floor(widths + DUST)
    spare = int(math.floor(widths.sum() + DUST) - down.sum())
    if spare > 0:
        down[np.argsort(down - widths, kind="stable")[:spare]] += 1.0
    return down


def table_of(speedups: FloatArray, own: Sequence[float] | FloatArray) -> FloatArray:
    """Encoded speedups followed by a rule's own numbers."""
    return np.concatenate([speedups, np.asarray(own, dtype=float)])


def _a_class_each(jobs: Jobs) -> Workload:
    """The workload in which every job is the only one of its class, with its own speedup."""
    classes = jobs.workload.classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload(
            jobs.workload.name,
            tuple(
                replace(classes[i], name=str(row), speedup=speedup)
                for row, (i, speedup) in enumerate(zip(jobs.class_index, jobs.speedups, strict=True))
            ),
        )


def _prepared(policy: JobRule, workload: Workload, cores: float) -> FloatArray:
    try:
        return _remembered(policy, workload, cores)
    except TypeError:  # a user's policy or law may not hash
        return policy.prepare(workload, cores)


@lru_cache(maxsize=64)
def _remembered(policy: JobRule, workload: Workload, cores: float) -> FloatArray:
    table = policy.prepare(workload, cores)
    table.setflags(write=False)
    return table


# --- plain functions, compiled by the engine -----------------------------------------------------------


def ascending(keys: FloatArray) -> IntArray:
    """Positions by increasing key, equal keys as they stand: insertion sort of short runs, then merging.

    (NumPy's stable argsort would do, but takes numba seconds to compile for every rule.)
    """
    size = keys.shape[0]
    order, merged = np.empty(size, np.int64), np.empty(size if size > FEW else 0, np.int64)
    for start in range(0, size, FEW):
        for j in range(start, min(start + FEW, size)):
            i = j
            while i > start and keys[order[i - 1]] > keys[j]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = j
    run = FEW
    while run < size:
        for start in range(0, size, 2 * run):
            merge(keys, order, merged, start, run)
        order, merged = merged, order
        run *= 2
    return order


def merge(keys: FloatArray, order: IntArray, merged: IntArray, start: int, run: int) -> None:
    """Merge two sorted runs of `order` from `start` on into `merged`; the left one wins ties."""
    middle = min(start + run, order.shape[0])
    end = min(middle + run, order.shape[0])
    left, right = start, middle
    for position in range(start, end):
        if right >= end or (left < middle and keys[order[left]] <= keys[order[right]]):
            merged[position] = order[left]
            left += 1
        else:
            merged[position] = order[right]
            right += 1


def by_remaining(jobs: FloatArray) -> IntArray:
    """Job positions by increasing remaining size, earlier arrivals first among equals."""
    size = jobs.shape[0]
    keys = np.empty(size)
    for j in range(size):
        keys[j] = jobs[j, REMAINING]
    return ascending(keys)


def by_index(jobs: FloatArray) -> IntArray:
    """Job positions by decreasing c/x, earlier arrivals first among equals."""
    size = jobs.shape[0]
    keys = np.empty(size)
    for j in range(size):
        keys[j] = -jobs[j, WEIGHT] / max(jobs[j, REMAINING], TINY)
    return ascending(keys)


def one_core_each(jobs: FloatArray, cores: float, out: FloatArray) -> None:
    """One core for each of the ⌊cores⌋ jobs with the largest c/x; `out` is 0 before."""
    size = jobs.shape[0]
    served = math.floor(cores + DUST)
    if size <= served:
        for j in range(size):
            out[j] = 1.0
        return
    order = by_index(jobs)
    for position in range(served):
        out[order[position]] = 1.0
