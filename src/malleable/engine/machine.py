"""The state of one run and its kernel: arrays that persist between calls, and grow when they must."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine import job_kernel as J  # noqa: N812 - ditto
from malleable.engine import kernels as K  # noqa: N812 - K.NOW reads better than kernels.NOW
from malleable.engine.abi import (
    BINS,
    COLUMNS,
    DONE,
    GROW,
    NEGATIVE,
    NOT_A_NUMBER,
    OVER_ALLOCATED,
    POOLS,
    STUCK,
    ClassProgram,
    JobProgram,
)
from malleable.engine.compiling import AS_ARGUMENT, CLASS_RULE, JOB_RULE, compile_rule, compiled
from malleable.engine.heaps import FIELDS, WAITING_FIELDS
from malleable.errors import PolicyError
from malleable.speedups._encoded import encode, speed

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.streams import Chunk
    from malleable.model import Workload

FIRST_CAPACITY = 64
MEMO_BITS = 15
REBASE = 1e5
"""Clocks are set back when they exceed this many mean sizes, so that marks keep eleven digits."""


class Machine(ABC):
    """A run in progress: feed it chunks, read off what happened since the last look."""

    def __init__(self, workload: Workload, cores: float, *, interpreted: bool, wide: bool, log: int) -> None:
        m = len(workload.classes)
        self.workload, self.cores, self.interpreted = workload, float(cores), interpreted
        self.encoded = encode(workload.speedups, widest=max(float(cores), 2.0))
        self.scalars = np.zeros(J.JOB_SCALARS)
        self.integers = np.zeros(K.INTEGERS, dtype=np.int64)
        self.counts = np.zeros(m)
        self.sums = np.zeros((K.SUM_ROWS, m))
        self.responses, self.slowdowns = np.zeros((m, BINS)), np.zeros((m, BINS))
        self.widths = np.zeros((m, BINS if wide else 1))
        self.log = np.full(log, np.nan)

    @property
    def now(self) -> float:
        """The time reached."""
        return float(self.scalars[K.NOW])

    def feed(self, chunk: Chunk, first: int, last: int, *, drain: bool = False) -> None:
        """Take jobs first..last of the chunk, then let the others finish if `drain`."""
        self.integers[K.NEXT] = first
        while True:
            with np.errstate(all="ignore"):
                status = self._call(chunk, last, int(drain))
            if status == GROW:
                self._grow()
            elif status == DONE:
                return
            else:
                raise self._error(status)

    def collect(self) -> tuple[FloatArray, FloatArray]:
        """The sums by class and the scalars since the last call; both start again at zero."""
        sums, scalars = self.sums.copy(), self.scalars[K.DURATION : K.EVENTS + 1].copy()
        self.sums[:] = 0.0
        self.scalars[K.DURATION : K.EVENTS + 1] = 0.0
        return sums, scalars

    def collect_histograms(self) -> tuple[FloatArray, FloatArray]:
        """The histograms since the last call; they start again at zero."""
        taken = self.responses.copy(), self.slowdowns.copy()
        self.responses[:] = 0.0
        self.slowdowns[:] = 0.0
        return taken

    @abstractmethod
    def _call(self, chunk: Chunk, last: int, drain: int) -> int: ...

    @abstractmethod
    def _grow(self) -> None: ...

    @abstractmethod
    def _shown_allocation(self) -> str: ...

    def _error(self, status: int) -> PolicyError:
        problem = {
            OVER_ALLOCATED: f"gave out more than {self.cores:g} cores",
            NOT_A_NUMBER: "returned NaN",
            NEGATIVE: "returned a negative number of cores",
            STUCK: "serves nobody although jobs are present",
        }[status]
        counts = ", ".join(
            f"{count:g} of {name}" for name, count in zip(self.workload.class_names, self.counts, strict=True)
        )
        return PolicyError(
            f"the policy {problem} at time {self.now:.6g} with {counts}: {self._shown_allocation()}",
            "cores must be numbers of at least 0 that add up to at most n",
        )


class ClassMachine(Machine):
    """Shapes 1 and 2 on the class kernel."""

    def __init__(
        self, workload: Workload, cores: float, program: ClassProgram, *, name: str = "", **options: Any
    ) -> None:
        super().__init__(workload, cores, **options)
        m = len(workload.classes)
        self.program = program
        self.table = program.table.copy()
        self.slots = np.array(program.slots or [0] * m, dtype=np.int64)
        self.clocks = np.zeros((K.CLOCK_ROWS, m))
        self.clocks[K.TOP], self.clocks[K.INVERSE] = np.inf, 1.0
        self.clocks[K.COST] = workload.holding_costs
        self.lengths = np.zeros(m, dtype=np.int64)
        self.queued, self.heads = np.zeros(m + 1, dtype=np.int64), np.zeros(m, dtype=np.int64)
        self.served = np.zeros((m, FIRST_CAPACITY, FIELDS))
        self.waiting = np.zeros((m, FIRST_CAPACITY, WAITING_FIELDS))
        self.memo_keys = np.full(1 << MEMO_BITS, -1, dtype=np.int64)
        self.memo = np.zeros((1 << MEMO_BITS, 2 * m + 1))
        self.rule, fast = (program.rule, False)
        if not self.interpreted:
            self.rule, fast = compile_rule(program.rule, CLASS_RULE, name)
        self.kernel = (
            compiled(K.class_kernel, K.signature(AS_ARGUMENT[CLASS_RULE])) if fast else K.class_kernel
        )
        if program.discipline == POOLS:
            self._set_pools()

    def _set_pools(self) -> None:
        self.rule(self.counts, self.cores, self.table, self.clocks[K.WIDTH])
        for i, k in enumerate(self.clocks[K.WIDTH]):
            self.clocks[K.SPEED, i] = speed(self.encoded, i, float(k))
        self.clocks[K.INVERSE] = 1.0 / self.clocks[K.SPEED]
        self.clocks[K.BIN] = [K.histogram_bin(k) for k in self.clocks[K.WIDTH]]

    def _call(self, chunk: Chunk, last: int, drain: int) -> int:
        self._rebase()
        return int(
            self.kernel(
                self.rule, self.program.discipline, self.cores, self.table, self.encoded, self.slots,
                chunk.times, chunk.classes, chunk.sizes, last, drain,
                self.scalars, self.integers, self.clocks, self.counts, self.served, self.lengths,
                self.waiting, self.queued, self.heads, self.memo_keys, self.memo, MEMO_BITS,
                self.sums, self.responses, self.slowdowns, self.widths, self.log,
            )
        )  # fmt: skip

    def _rebase(self) -> None:
        for i in np.flatnonzero(self.clocks[K.V] > REBASE * self.workload.mean_sizes):
            self.served[i, : self.lengths[i], 0] -= self.clocks[K.V, i]
            self.clocks[K.TOP, i] -= self.clocks[K.V, i]
            self.clocks[K.V, i] = 0.0

    def _grow(self) -> None:
        if self.lengths.max() + 2 >= self.served.shape[1]:
            self.served = _doubled(self.served)
        if self.integers[K.WAITING] + 2 >= self.waiting.shape[1]:
            old, self.waiting = self.waiting, _doubled(self.waiting)
            # Rings are unrolled, so that they may wrap at the new end.
            for i, head in enumerate(self.heads):
                self.waiting[i, : old.shape[1]] = np.roll(old[i], -int(head), axis=0)
            self.heads[:] = 0

    def _shown_allocation(self) -> str:
        each = self.clocks[K.WIDTH]
        return "cores a job " + ", ".join(f"{k:g}" for k in each)


class JobMachine(Machine):
    """Shape 3 on the job kernel."""

    def __init__(
        self, workload: Workload, cores: float, program: JobProgram, *, name: str = "", **options: Any
    ) -> None:
        super().__init__(workload, cores, **options)
        self.program = program
        self.table = program.table.copy()
        self.since = np.zeros(len(workload.classes))
        self.jobs = np.zeros((FIRST_CAPACITY, COLUMNS))
        self.private = np.zeros((FIRST_CAPACITY, J.PRIVATE))
        self.out = np.zeros(FIRST_CAPACITY)
        self.costs = workload.holding_costs.copy()
        self.rule, fast = (program.rule, False)
        if not self.interpreted:
            self.rule, fast = compile_rule(program.rule, JOB_RULE, name)
        self.kernel = compiled(J.job_kernel, J.signature(AS_ARGUMENT[JOB_RULE])) if fast else J.job_kernel

    def _call(self, chunk: Chunk, last: int, drain: int) -> int:
        return int(
            self.kernel(
                self.rule, self.cores, self.table, self.encoded, self.costs,
                self.program.period, self.program.pause,
                chunk.times, chunk.classes, chunk.sizes, last, drain,
                self.scalars, self.integers, self.since, self.counts, self.jobs, self.private, self.out,
                self.sums, self.responses, self.slowdowns, self.widths, self.log,
            )
        )  # fmt: skip

    def _grow(self) -> None:
        self.jobs, self.private = _longer(self.jobs), _longer(self.private)
        self.out = np.zeros(len(self.jobs))

    def _shown_allocation(self) -> str:
        shown = ", ".join(f"{k:g}" for k in self.out[: min(int(self.integers[K.PRESENT]), 12)])
        return f"cores {shown}"


def machine(
    workload: Workload,
    cores: float,
    program: ClassProgram | JobProgram,
    *,
    name: str = "",
    interpreted: bool = False,
    wide: bool = False,
    log: int = 0,
) -> Machine:
    """The machine that a program runs on."""
    kind: Any = ClassMachine if isinstance(program, ClassProgram) else JobMachine
    made: Machine = kind(workload, cores, program, name=name, interpreted=interpreted, wide=wide, log=log)
    return made


def _doubled(heaps: FloatArray) -> FloatArray:
    """The same heaps with room for twice as many jobs a class."""
    m, capacity, fields = heaps.shape
    larger = np.zeros((m, 2 * capacity, fields))
    larger[:, :capacity] = heaps
    return larger


def _longer(rows: FloatArray) -> FloatArray:
    """The same rows with room for as many again."""
    return np.concatenate([rows, np.zeros_like(rows)])
