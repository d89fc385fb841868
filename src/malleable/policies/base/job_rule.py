"""Job rules: policies that look at every single job, as plain functions that the engine compiles.

A rule is `rule(jobs, cores, table, out)`. `jobs` has one row per job, earliest arrival first, with the
columns of `engine.rule_interface`; `table` is what `prepare` computed once; the cores of each job go into
`out`. A rule is plain Python over numbers, so the very same function runs here, interpreted or compiled
(`run_rule`), and compiled in the simulator. It may call other module-level functions of the same kind, such
as those of `policies.rules.ordering` and `engine.speedup_table`.

A table starts with the encoded speedups; the rule's own numbers follow at `int(table[1])`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from malleable.contracts import Allocation, FloatArray, Policy, not_a_class_rule
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
from malleable.model import Workload, checked_cores
from malleable.model.memoization import memoized
from malleable.policies.base.run_rule import is_ours, run_rule
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.model.jobs import IntArray, Jobs
    from malleable.theory.market import Buyers


class Decision(NamedTuple):
    """A job rule and its table, how to read the price from it, and whether it always gives whole cores."""

    rule: Callable[..., None]
    table: FloatArray
    price: Callable[..., float | None] | None = None
    whole: bool = False


class JobRule(Policy):
    """A policy given by a job rule.

    Subclasses are frozen dataclasses that set `rule = staticmethod(function)`, and override `prepare` if the
    rule needs more than the encoded speedups. `uses_speedups` says whether the rule reads the class of a job
    only to find its speedup; jobs that bring their own speedup are then taken as classes of their own.
    """

    rule: ClassVar[Any]
    """A staticmethod: `rule(jobs, cores, table, out)`."""
    uses_speedups: ClassVar[bool] = True

    @classmethod
    def lacks(cls) -> dict[str, str]:
        if hasattr(cls, "rule") or cls.decision is not JobRule.decision:
            return super().lacks()
        written = "rule = staticmethod(function), where function(jobs, cores, table, out) writes into out"
        return super().lacks() | {"a `rule`": written}

    @property
    def period(self) -> float | None:
        """Ask again at least this often; 0: at arrivals and departures only."""
        return 0.0

    def period_on(self, workload: Workload) -> float:  # noqa: ARG002 - defaults may depend on the time scale
        """The period on this workload."""
        return float(self.period or 0.0)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:  # noqa: ARG002 - others need it
        """Everything slow, once: the numbers that the rule reads."""
        return encode(workload.speedups)

    def buyers(self, workload: Workload) -> Buyers | None:  # noqa: ARG002 - some have them
        raise not_a_class_rule(self)

    def program(self, workload: Workload, cores: float) -> ClassProgram | JobProgram:
        return self.job_program(workload, cores)

    def job_program(self, workload: Workload, cores: float) -> JobProgram:
        rule, table, *_ = self.decision(workload, cores, integer=self.whole_cores)
        return JobProgram(rule, table, self.period_on(workload), self.sharing, self.sees_all)

    def decision(self, workload: Workload, cores: float, *, integer: bool) -> Decision:  # noqa: ARG002
        """What `allocate` runs: a job rule with its table, for whole cores where it has a rule for these."""
        return Decision(self.rule, self.prepare(workload, cores))

    def price_of(self, rows: FloatArray, table: FloatArray, out: FloatArray) -> float | None:  # noqa: ARG002
        """The price of the decision that the rule has just made, where it makes one."""
        return None

    def whole_widths(self, rows: FloatArray, table: FloatArray, out: FloatArray, cores: float) -> FloatArray:  # noqa: ARG002
        """Whole cores in place of what the rule gave, `out`: the nearest of the same total."""
        return whole(out)

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        """Run the rule on the whole machine."""
        return self.allocate_part(jobs, cores, cores, integer=integer)

    def allocate_part(self, jobs: Jobs, cores: float, machine: float, *, integer: bool = False) -> Allocation:
        """Run the rule on some cores, with the table for all of the machine's.

        With `integer`, widths that are not whole are rounded down and the cores that this frees are given
        back one each, to the largest fractions first, then to the earliest.
        """
        cores = usable(cores, integer=integer)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        workload, index = jobs.workload, jobs.class_index
        if self.uses_speedups and jobs.own_speedups is not None:
            workload, index = a_class_each(jobs)
        whole_machine = usable(machine, integer=integer)
        rule, table, read_price, is_whole = _prepared(self, workload, whole_machine, integer=integer)
        rows, widths = job_rows(jobs, index), np.zeros(len(jobs))
        table = table.copy()  # rules may leave numbers there, and the next call is to start from the same
        run_rule(rule, rows, cores, table, widths)
        price = (read_price or self.price_of)(rows, table, widths)
        if not is_ours(rule):
            widths = enforce(widths, len(jobs), cores)
        out = np.empty(len(jobs))
        rounds = integer and not is_whole
        out[jobs.order] = self.whole_widths(rows, table, widths, cores) if rounds else widths
        return Allocation(out, price)


def usable(cores: float, *, integer: bool) -> float:
    """The checked number of cores; a fraction of one is of no use to jobs on whole cores."""
    cores = checked_cores(cores)
    return float(math.floor(cores)) if integer else cores


def job_rows(jobs: Jobs, class_index: IntArray) -> FloatArray:
    """The job array that rules read, earliest arrival first."""
    order = jobs.order
    rows = np.zeros((len(jobs), COLUMNS))
    rows[:, CLASS] = class_index[order]
    rows[:, REMAINING], rows[:, SIZE] = jobs.remaining[order], jobs.size[order]
    rows[:, AGE], rows[:, WEIGHT], rows[:, HELD] = jobs.age[order], jobs.weight[order], jobs.held[order]
    rows[:, RESTARTS], rows[:, IDENTITY] = jobs.restarts[order], np.arange(len(jobs))
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


def a_class_each(jobs: Jobs) -> tuple[Workload, IntArray]:
    """The workload in which jobs of different types are of different classes, and each job's class."""
    classes, types = jobs.workload.classes, jobs.own_types or ()
    kinds = list(zip(jobs.class_index.tolist(), types, strict=True))
    first: dict[Any, int] = {}
    try:
        index = [first.setdefault(kind, len(first)) for kind in kinds]
    except TypeError:  # a user's speedup may not hash
        first, index = {row: row for row in range(len(kinds))}, list(range(len(kinds)))
        distinct = kinds
    else:
        distinct = list(first)
    rows = tuple(classes[i].of_type(one, str(row)) for row, (i, one) in enumerate(distinct))
    return Workload.of_known(jobs.workload.name, rows), np.array(index, dtype=np.intp)


@memoized
def _prepared(policy: JobRule, workload: Workload, cores: float, *, integer: bool) -> Decision:
    made = policy.decision(workload, cores, integer=integer)
    made.table.setflags(write=False)
    return made
