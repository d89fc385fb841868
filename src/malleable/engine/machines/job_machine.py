"""The machine of policies that look at every job: one row per job present, in order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.compiling import JOB_RULE
from malleable.engine.enforcement import shown
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - K.NOW reads better than kernels.NOW
from malleable.engine.kernels import job_kernel as J  # noqa: N812 - ditto
from malleable.engine.machines.base import FIRST_JOBS, Machine
from malleable.engine.rule_interface import COLUMNS, JobProgram

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.sources.streams import Chunk


class JobMachine(Machine):
    """Shape 3 on the job kernel."""

    def __init__(
        self, workload: Workload, cores: float, program: JobProgram, *, name: str = "", **options: Any
    ) -> None:
        super().__init__(workload, cores, **options)
        self.program = program
        self.table = program.table.copy()
        self.since = np.zeros(len(workload.classes))
        self.jobs = np.zeros((FIRST_JOBS, COLUMNS))
        self.private = np.zeros((FIRST_JOBS, J.PRIVATE))
        self.out = np.zeros(FIRST_JOBS)
        self.costs = workload.holding_costs.copy()
        self.kernel = J.job_kernel
        self._set_rule(program.rule, JOB_RULE, J.signature, name)

    def _call(self, chunk: Chunk, last: int, drain: int) -> int:
        return int(
            self.kernel(
                self.entry, self.cores, self.table, self.encoded, self.costs,
                self.program.period, self.program.pause,
                chunk.times, chunk.classes, chunk.sizes, last, drain,
                self.scalars, self.integers, self.since, self.counts, self.jobs, self.private, self.out,
                self.sums, self.responses, self.slowdowns, self.widths, self.log,
            )
        )  # fmt: skip

    def _grow(self) -> None:
        self.jobs, self.private = _longer(self.jobs), _longer(self.private)
        self.out = np.zeros(len(self.jobs))

    def _asked(self) -> tuple[FloatArray, FloatArray]:
        present = int(self.integers[K.PRESENT])
        return self.jobs[:present], self.out[:present]

    def _shown_allocation(self) -> str:
        return shown(self._asked()[1])


def _longer(rows: FloatArray) -> FloatArray:
    """The same rows with room for as many again."""
    return np.concatenate([rows, np.zeros_like(rows)])
