"""Targets for the jobs present: the policy decides, through the same stage as `allocate` and the simulator.

Cores are whole. Where jobs take any width at any time for free, the policy is asked for whole cores. Where
classes demand more (widths, shapes, quiet times, a cost of resizing), the policy's rule proposes as it does
in the simulator and the stage makes whole, allowed widths of that; a class of any width is then one of whole
widths.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.contracts import Policy
from malleable.engine.enforcement import blame_policy
from malleable.engine.width_table import allowed_at_most, encode_limits, pause_between
from malleable.live.core.admission import protected
from malleable.live.core.core_price import CorePrice
from malleable.live.core.estimates import Sizes, possible_work, remaining_work
from malleable.live.core.expected_values import divide_by_value
from malleable.live.core.expected_values import load_machine_code as load_values
from malleable.live.core.job_table import (
    ARRIVED,
    CALM,
    CLASS,
    KEPT,
    MOST,
    OWN_WEIGHT,
    RESTARTS,
    SIZE,
    TARGET,
    WEIGHT,
    JobTable,
)
from malleable.model import ConditionWarning, Workload
from malleable.model.jobs import Jobs
from malleable.model.widths import WHOLE, Widths
from malleable.policies.base.asking import legal_allocation, load_machine_code, period_of
from malleable.policies.clearing import Clearing
from malleable.policies.rules.smartfill_rule import CROWD

if TYPE_CHECKING:
    from malleable.contracts import BoolArray, FloatArray, IntArray
    from malleable.live.core.fair_share import Urgent

ROUNDS = 3
"""How often the policy is asked again because a job that must not be paused would be."""
CAP_ROUNDS = 8
"""How often it is asked again because jobs would be given more cores than they take."""


class Division(NamedTuple):
    """Cores of each job, and the price of one where the policy has prices."""

    cores: FloatArray
    price: float | None


@dataclass(frozen=True, eq=False)
class Machine:
    """Jobs of this workload on so many cores under this policy: what changes rarely, prepared once.

    `most` is the largest number of cores that there ever were; rules are prepared for it.
    """

    workload: Workload
    cores: int
    most: int
    policy: Policy
    sizes: Sizes
    price: CorePrice = field(default_factory=CorePrice)

    def checked(self, name: str) -> Machine:
        """The machine, if its policy, which the user calls `name`, can decide about a job of each class."""
        table = JobTable()
        for i, cost in enumerate(self.workload.holding_costs.tolist()):
            table.add(str(i), {CLASS: i, WEIGHT: cost, SIZE: np.nan})
        with blame_policy(self.policy, name):
            self.divide(table, table.rows(), 0.0)
        return self

    @cached_property
    def whole(self) -> Workload:
        """The workload whose classes of any width have whole widths, unless all its jobs are plain."""
        if self.workload.plain:
            return self.workload
        whole = Widths(WHOLE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            return Workload(
                self.workload.name,
                tuple(
                    replace(c, widths=whole) if c.shape == "malleable" and c.widths.unrestricted else c
                    for c in self.workload.classes
                ),
            )

    @cached_property
    def period(self) -> float:
        """Time between two rounds of a policy that decides in rounds; 0 for one that always does."""
        policy = self.price.for_policy(self.policy)
        return period_of(policy, self.whole, float(self.most), integer=self.workload.plain)

    @cached_property
    def limits(self) -> FloatArray:
        """What the machine demands of each class (`engine.width_table`)."""
        return encode_limits(self.whole.job_types, float(self.most))

    @cached_property
    def quiet(self) -> FloatArray:
        """How long jobs of each class are left in peace after a resize."""
        return np.array([one.quiet for one in self.whole.job_types])

    @cached_property
    def least(self) -> FloatArray:
        """The narrowest width of each class."""
        return np.array([float(one.allowed_widths.least) for one in self.whole.job_types])

    @cached_property
    def at_once(self) -> tuple[bool, ...]:
        """Whether jobs of each class are widened in one step only: steps are not allowed, or not free."""
        return tuple(
            one.shape != "malleable"
            or one.widths.form not in {"any", WHOLE}
            or not one.resize.free
            or one.quiet > 0.0
            for one in self.whole.job_types
        )

    def pause(self, class_index: int, before: int, after: int) -> float:
        """Time without progress of a job that is resized."""
        return 0.0 if self.workload.plain else pause_between(self.limits, class_index, before, after)

    def load_machine_code(self) -> None:
        """Compile what decisions run, so that none of them has to wait for that."""
        load_machine_code(self.policy, self.whole, float(self.most), integer=self.workload.plain)
        if isinstance(self.policy, Clearing):
            load_values()

    def divide(self, table: JobTable, rows: IntArray, now: float, urgent: Urgent | None = None) -> Division:
        """Cores for the jobs in these rows, none of which is to be paused that must not be.

        `urgent` says how many cores each job has to have at least, as far as there are so many.
        """
        if self.cores < 1 or len(rows) == 0:
            return Division(np.zeros(len(rows)), None)
        least = self._at_least(table, rows, now, urgent)
        fixed = np.zeros(len(rows), dtype=bool)
        for attempt in range(ROUNDS + 1):
            found = self._ask_within_caps(table, rows, now, fixed, least)
            short = ~fixed & (found.cores < least)
            if not short.any():
                break
            fixed |= least > 0.0 if attempt == ROUNDS - 1 else short
        return found

    def _at_least(self, table: JobTable, rows: IntArray, now: float, urgent: Urgent | None) -> FloatArray:
        """How many cores each job must have: those that must not be paused first, then the urgent ones."""
        narrowest = self.least[table[CLASS][rows].astype(np.intp)]
        least = np.where(protected(table, rows, self.least, self.cores), narrowest, 0.0)
        if urgent is None:
            return least
        held, index = table[TARGET][rows], table[CLASS][rows].astype(np.intp)
        fast = self._cannot_move(index, held, table[CALM][rows] > now)
        left = self.cores - np.where(fast, np.maximum(held, least), least).sum()
        for j in np.argsort(urgent.deadlines, kind="stable").tolist():
            if urgent.cores[j] == 0.0 or fast[j]:
                continue
            cores = self._allowed(table, rows[j], index[j], min(urgent.cores[j], left + least[j]))
            if cores > least[j]:
                left, least[j] = left - (cores - least[j]), cores
        return least

    def _cannot_move(self, index: IntArray, held: FloatArray, quiet: BoolArray) -> BoolArray:
        """Jobs that run and that nothing may resize now."""
        malleable = np.array([one.shape == "malleable" for one in self.whole.job_types])
        return np.asarray((held > 0.0) & (quiet | ~malleable[index]))

    def _allowed(self, table: JobTable, row: int, i: int, cores: float) -> float:
        """The widest width up to so many cores that a job may have, 0 if it has none."""
        cores = min(cores, table[MOST][row])
        if self.workload.plain:
            return float(cores)
        if self.whole.job_types[i].shape != "malleable" and table[KEPT][row] > 0.0:
            return float(table[KEPT][row]) if table[KEPT][row] <= cores else 0.0
        return allowed_at_most(self.limits, i, cores)

    def _ask_within_caps(
        self, table: JobTable, rows: IntArray, now: float, narrow: BoolArray, least: FloatArray
    ) -> Division:
        """What the policy gives the jobs, none of them more than it takes; some have the least they must.

        A job that would be given too much has as much as it takes, and the policy divides the rest among the
        others. That is what a policy with prices does itself: the demand under a cap is the smaller of both.
        """
        out = np.zeros(len(rows))
        out[narrow] = least[narrow]
        caps, fixed = self._caps(table, rows), narrow
        for _ in range(CAP_ROUNDS):
            found = self._ask(table, rows, now, fixed, out)
            over = ~fixed & (found.cores > caps)
            if not over.any():
                return found
            out[over], fixed = caps[over], fixed | over
        return Division(np.minimum(found.cores, caps), found.price)

    def _caps(self, table: JobTable, rows: IntArray) -> FloatArray:
        """The widest allowed width that each job takes."""
        caps = table[MOST][rows]
        if not self.workload.plain:
            for j in np.flatnonzero(np.isfinite(caps)).tolist():
                i = int(table[CLASS][rows[j]])
                caps[j] = max(allowed_at_most(self.limits, i, caps[j]), self.least[i])
        return caps

    def _ask(
        self, table: JobTable, rows: IntArray, now: float, fixed: BoolArray, widths: FloatArray
    ) -> Division:
        """What the policy gives the jobs, those fixed having their widths beforehand."""
        out = np.where(fixed, widths, 0.0)
        others, cores = rows[~fixed], float(self.cores - out.sum())
        if cores < 1.0 or len(others) == 0:
            return Division(out, None)
        policy, jobs = self.price.for_policy(self.policy, self.cores), self.present(table, others, now)
        machine = float(self.cores if self.workload.plain else self.most)
        outcomes = None
        if isinstance(policy, Clearing) and self.workload.plain and 1 < len(others) < CROWD * cores:
            outcomes = possible_work(table, others, now, self.sizes)
        if isinstance(policy, Clearing) and outcomes is not None:
            found = divide_by_value(policy, jobs, outcomes, cores, machine)
        else:
            found = legal_allocation(
                policy,
                jobs,
                cores,
                integer=self.workload.plain,
                calm=table[CALM][others] - now,
                kept=table[KEPT][others],
                machine=machine,
            )
        out[~fixed] = found.cores
        return Division(out, found.price)

    def present(self, table: JobTable, rows: IntArray, now: float) -> Jobs:
        """The jobs as policies see them."""
        remaining, size = remaining_work(table, rows, now, self.sizes)
        return Jobs(
            workload=self.whole,
            class_index=table[CLASS][rows].astype(np.intp),
            remaining=remaining,
            weight=table[WEIGHT][rows],
            age=now - table[ARRIVED][rows],
            held=table[TARGET][rows],
            size=size,
            restarts=table[RESTARTS][rows],
            ids=tuple(table.ids[row] for row in rows.tolist()),
            own_weights=bool(table[OWN_WEIGHT][rows].any()),
        )
