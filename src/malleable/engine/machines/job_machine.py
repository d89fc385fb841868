"""The machine of policies that look at every job: one row per job present, in order of arrival.

It knows what the machine demands of jobs (`engine.width_table`), can hide sizes from the rule, and its number
of cores may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.compiling import JOB_RULE
from malleable.engine.enforcement import shown
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - K.NOW reads better than kernels.NOW
from malleable.engine.kernels import job_kernel as J  # noqa: N812 - ditto
from malleable.engine.legal_widths import set_aside
from malleable.engine.machines.base import FIRST_JOBS, Asked, Machine
from malleable.engine.residual_table import KNOWN, encode_residuals
from malleable.engine.rule_interface import COLUMNS, MORE_CAPACITY, Program
from malleable.engine.width_table import PLAIN, encode_limits

if TYPE_CHECKING:
    from malleable.contracts import CoreChanges, FloatArray
    from malleable.model import Workload
    from malleable.sources.streams import Chunk

NOTHING = np.zeros(0)


class JobMachine(Machine):
    """Shape 3 on the job kernel."""

    def __init__(
        self,
        workload: Workload,
        cores: float,
        program: Program,
        *,
        name: str = "",
        sizes_known: bool = True,
        changes: CoreChanges | None = None,
        **options: Any,
    ) -> None:
        super().__init__(workload, cores, **options)
        self.program = program
        self.limits = encode_limits(workload.job_types, cores)
        self.residual = KNOWN if sizes_known else encode_residuals([c.size for c in workload.classes])
        self.integers = np.zeros(J.JOB_INTEGERS, dtype=np.int64)
        self._set_changes(changes)
        self.table = program.table.copy()
        self.since = np.zeros(len(workload.classes))
        self.jobs = np.zeros((FIRST_JOBS, COLUMNS))
        self.private = np.zeros((FIRST_JOBS, J.PRIVATE))
        self._set_room()
        self.costs = workload.holding_costs.copy()
        self._direct = sizes_known and self.limits[PLAIN] != 0.0
        plain = J.logging_plain_job_kernel if self.logging else J.plain_job_kernel
        self.kernel = plain if self._direct else J.logging_job_kernel if self.logging else J.job_kernel
        self._set_rule(program.rule, JOB_RULE, J.signature, name)

    def _call(self, chunk: Chunk, last: int, drain: int) -> int:
        return int(
            self.kernel(
                self.entry, self.table, self.encoded, self.costs,
                self.program.period, int(self.program.sharing), int(self.program.sees_all),
                self.limits, self.residual,
                chunk.times, chunk.classes, chunk.sizes, chunk.weights, last, drain,
                self.change_times, self.change_cores,
                self.scalars, self.integers, self.since, self.counts, self.jobs, self.private, self.memory,
                self.out, self.view, self.part, self.rows,
                self.sums, self.responses, self.slowdowns, self.widths,
                self.log, self.usage, self.slices, self.paid,
            )
        )  # fmt: skip

    counts_resizes = True

    def collect_available(self) -> float:
        available = float(self.scalars[J.CAPACITY])
        self.scalars[J.CAPACITY] = 0.0
        return np.nan if self.changes is None else available

    def _set_changes(self, changes: CoreChanges | None) -> None:
        """Start with the cores that there are at time 0; without changes these stay."""
        self.changes = changes
        self.change_times = self.change_cores = NOTHING
        self.scalars[J.CORES], self.scalars[J.LATE] = self.cores, np.inf
        if changes is not None:
            self.scalars[J.CORES] = changes.cores_at_start
            self._more_changes()

    def _more_changes(self) -> None:
        """The next changes of the number of cores."""
        if self.changes is None:
            raise AssertionError("the number of cores never changes")
        self.change_times, self.change_cores, self.scalars[J.LATE] = self.changes.take()
        self.integers[J.CHANGE] = 0

    def _answer(self, status: int) -> bool:
        if status == MORE_CAPACITY:
            self._more_changes()
            return True
        return super()._answer(status)

    def _set_room(self) -> None:
        """Room for what a decision writes."""
        size = len(self.jobs)
        self.memory, self.out, self.part = np.zeros((J.MEMORY_ROWS, size)), np.zeros(size), np.zeros(size)
        self.view, self.rows = np.zeros((size, COLUMNS)), np.zeros(size, dtype=np.int64)

    def _grow(self) -> None:
        memory = self.memory
        self.jobs, self.private = _longer(self.jobs), _longer(self.private)
        self._set_room()
        self.memory[:, : memory.shape[1]] = memory

    def _asked(self) -> Asked:
        """All jobs and cores where nothing is demanded of jobs; else what `J.ask_rule` made of them."""
        present, cores = int(self.integers[K.PRESENT]), float(self.scalars[J.CORES])
        jobs = self.jobs[:present]
        if self._direct:
            return Asked(jobs, cores, self.out[:present])
        now, calm, pinned = self.scalars[K.NOW], self.memory[J.CALM], self.memory[J.PINNED]
        movable, free = set_aside(jobs, calm, now, cores, self.limits, self.rows, pinned)
        asked = present if self.program.sees_all else movable
        return Asked(self.view[:asked], cores if self.program.sees_all else free, self.out[:asked])

    def _shown_allocation(self) -> str:
        return shown(self._asked().answer)


def _longer(rows: FloatArray) -> FloatArray:
    """The same rows with room for as many again."""
    return np.concatenate([rows, np.zeros_like(rows)])
