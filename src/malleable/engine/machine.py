"""The state of one run and its kernel: arrays that persist between calls, and grow when they must."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.compiling import (
    AS_ARGUMENT,
    CLASS_RULE,
    JOB_RULE,
    RAISED,
    RuleAddress,
    can_compile,
    compile_rule,
    compiled,
    on_copies,
)
from malleable.engine.enforcement import refusal, shown
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - K.NOW reads better than kernels.NOW
from malleable.engine.kernels import job_kernel as J  # noqa: N812 - ditto
from malleable.engine.mark_blocks import BLOCKS, FRONT, HEAD, JOB_BITS, NEXT, SHELF_BITS, SLOTS, START
from malleable.engine.rule_interface import (
    BINS,
    COLUMNS,
    DONE,
    GROW,
    POOLS,
    STOPPED,
    ClassProgram,
    JobProgram,
)
from malleable.engine.speedup_table import encode, speed
from malleable.errors import PolicyError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.sources.streams import Chunk

FIRST_JOBS = 64
BLOCK = 32
"""Jobs in a block of a shelf at first: a newcomer shifts a quarter of them."""
MANY = 8
"""Blocks a class, as a multiple of their size, from which on blocks are made longer instead of more."""
MEMO_BITS = 15
REBASE = 1e5
"""Clocks are set back when they exceed this many mean sizes, so that marks keep eleven digits."""


class Machine(ABC):
    """A run in progress: feed it chunks, read off what happened since the last look."""

    table: FloatArray
    kernel: Any
    entry: Any

    def __init__(self, workload: Workload, cores: float, *, interpreted: bool, wide: bool, log: int) -> None:
        m = len(workload.classes)
        self.workload, self.cores = workload, float(cores)
        self.interpreted = interpreted or not can_compile()
        self.compiled = False
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

    def stop(self) -> None:
        """Have a kernel that runs in another thread return at its next event."""
        self.integers[K.STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether somebody asked to stop."""
        return bool(self.integers[K.STOP])

    def feed(self, chunk: Chunk, first: int, last: int, *, drain: bool = False) -> int:
        """Take jobs first..last of the chunk, then let the others finish if `drain`; how many were taken."""
        self.integers[K.NEXT] = first
        while True:
            with np.errstate(all="ignore"):
                status = self._call(chunk, last, int(drain))
            if status == GROW:
                self._grow()
            elif status in {DONE, STOPPED}:
                return int(self.integers[K.NEXT]) - first
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

    def _set_rule(self, rule: Any, signature: Any, kernel_signature: Any, name: str) -> None:
        """Compile the rule and the kernel, or take both as they are where that is wanted or must be."""
        self.plain_rule = self.rule = rule
        self.entry = on_copies(rule)
        if not self.interpreted:
            self.rule, self.compiled = compile_rule(rule, signature, name)
        if self.compiled:
            self.entry = RuleAddress(self.rule, signature)
            self.kernel = compiled(self.kernel, kernel_signature(AS_ARGUMENT[signature]))

    @abstractmethod
    def _call(self, chunk: Chunk, last: int, drain: int) -> int: ...

    @abstractmethod
    def _grow(self) -> None: ...

    @abstractmethod
    def _asked(self) -> tuple[FloatArray, FloatArray]:
        """What the rule was last asked about, and what it answered."""

    @abstractmethod
    def _shown_allocation(self) -> str: ...

    def _error(self, status: int) -> PolicyError:
        question, answer = self._asked()
        if self.compiled and (answer == RAISED).any():
            # What the exception was, compiled code cannot tell; the same rule, interpreted, can.
            self.plain_rule(question, self.cores, self.table, answer)
            return PolicyError("the policy raises an error when it is compiled, but not when interpreted")
        counts = ", ".join(
            f"{count:g} of {name}" for name, count in zip(self.workload.class_names, self.counts, strict=True)
        )
        place = f"at time {self.now:.6g} with {counts}"
        return refusal(status, self.cores, place, self._shown_allocation())


class ClassMachine(Machine):
    """Shapes 1 and 2 on the class kernel."""

    def __init__(
        self, workload: Workload, cores: float, program: ClassProgram, *, name: str = "", **options: Any
    ) -> None:
        super().__init__(workload, cores, **options)
        m = len(workload.classes)
        self.program = program
        self.table = program.table.copy()
        self._farthest = REBASE * workload.mean_sizes
        # What the kernel knows as flat arrays of rows is seen here by class and column.
        self.state = np.zeros((m, 1 << K.STATE_BITS))
        self.state[:, K.TOP], self.state[:, K.INVERSE] = np.inf, 1.0
        self.state[:, K.COST] = workload.holding_costs
        self.counts, self.sums = self.state[:, K.COUNT], self.state[:, K.SUMS : K.SUMS + K.SUM_ROWS].T
        self.asked, self.width = np.zeros(m), np.zeros(m)
        self.histograms = np.zeros((m, 2, BINS))
        self.responses, self.slowdowns = self.histograms[:, 0], self.histograms[:, 1]
        self._set_shelves(m)
        if program.slots:
            self.shelf[:, SLOTS] = program.slots
        self._set_memo(m)
        self.kernel = K.class_kernel
        self._set_rule(program.rule, CLASS_RULE, K.signature, name)
        if program.discipline == POOLS:
            self._set_pools()

    def _set_shelves(self, m: int) -> None:
        self.shelf = np.zeros((m, 1 << SHELF_BITS), dtype=np.int64)
        self.jobs, self.idle = np.zeros((FIRST_JOBS, 1 << JOB_BITS)), np.arange(FIRST_JOBS)
        self.waiting = np.zeros((m, FIRST_JOBS, 2))
        # An empty shelf keeps one block; all others are anybody's.
        blocks = _power_of_two(m + 2)
        self.cells, self.fill = np.zeros((blocks, BLOCK, 2)), np.zeros(blocks, dtype=np.int64)
        self.spare = np.concatenate([np.arange(m, blocks), np.zeros(m, dtype=np.int64)])
        self.ring, self.tops = np.zeros((m, blocks), dtype=np.int64), np.zeros((m, blocks))
        self.ring[:, 0], self.shelf[:, BLOCKS] = np.arange(m), 1
        self._find_first()
        self.integers[K.IDLE], self.integers[K.SPARES] = FIRST_JOBS, blocks - m

    def _set_memo(self, m: int) -> None:
        row = _power_of_two(K.MEMO_SPEEDS + 2 * m)
        # Zeros are no key, since somebody is present when one is looked up; and untouched pages cost nothing.
        self.memo = np.zeros((1 << MEMO_BITS, row))
        self.memo_keys = self.memo.view(np.int64)
        self.memo_bins = np.zeros((1 << MEMO_BITS if self.widths.shape[1] > 1 else 1, m))

    def _set_pools(self) -> None:
        self.rule(self.asked, self.cores, self.table, self.width)
        for i, k in enumerate(self.width):
            self.state[i, K.SPEED] = speed(self.encoded, i, float(k))
        self.state[:, K.INVERSE] = 1.0 / self.state[:, K.SPEED]
        self.state[:, K.BIN] = [K.histogram_bin(k) for k in self.width]

    def _call(self, chunk: Chunk, last: int, drain: int) -> int:
        self._rebase()
        return int(
            self.kernel(
                self.entry, self.program.discipline, self.cores, self.table, self.encoded,
                chunk.times, chunk.classes, chunk.sizes, last, drain,
                self.scalars, self.integers, self.state.reshape(-1), self.shelf.reshape(-1),
                self.asked, self.width,
                self.cells.reshape(-1), self.fill, self.spare, self.ring, self.tops, self.cells.shape[1],
                self.jobs.reshape(-1), self.idle, self.waiting,
                self.memo_keys.reshape(-1), self.memo.reshape(-1), self.memo_bins, MEMO_BITS,
                self.histograms.reshape(-1), self.widths, self.log,
            )
        )  # fmt: skip

    def _rebase(self) -> None:
        too_far = self.state[:, K.V] > self._farthest
        for i in np.flatnonzero(too_far) if too_far.any() else ():
            mine = _unrolled(self.ring, self.shelf[:, FRONT])[i, : self.shelf[i, BLOCKS]]
            self.cells[mine, :, 0] -= self.state[i, K.V]
            self.tops[i] -= self.state[i, K.V]
            self.state[i, K.TOP] -= self.state[i, K.V]
            self.state[i, K.V] = 0.0

    def _grow(self) -> None:
        if self.integers[K.SPARES] == 0:
            self._add_blocks()
        if self.integers[K.IDLE] == 0:
            old = len(self.jobs)
            self.jobs = np.concatenate([self.jobs, np.zeros_like(self.jobs)])
            self.idle = np.concatenate([np.arange(old, 2 * old), np.zeros(old, dtype=np.int64)])
            self.integers[K.IDLE] = old
        if self.integers[K.WAITING] + 2 >= self.waiting.shape[1]:
            # Rings are unrolled, so that they may wrap at the new end.
            self.waiting = _doubled(_unrolled(self.waiting, self.shelf[:, HEAD]))
            self.shelf[:, HEAD] = 0

    def _add_blocks(self) -> None:
        """Twice as many blocks; or longer ones, when the list of them would take long to change."""
        self.ring, self.tops = (_unrolled(a, self.shelf[:, FRONT]) for a in (self.ring, self.tops))
        self.shelf[:, FRONT] = 0
        blocks, size = self.cells.shape[:2]
        self.fill[self.ring[:, 0]] = (self.shelf[:, NEXT] - self.shelf[:, START]) // 2 + 1
        if blocks >= MANY * size * len(self.shelf):
            self.cells = _doubled(self.cells)
            self._join_blocks()
            self._find_first()
            return
        self.ring, self.tops = _doubled(self.ring), _doubled(self.tops)
        self.cells = np.concatenate([self.cells, np.zeros_like(self.cells)])
        self.fill = np.concatenate([self.fill, np.zeros_like(self.fill)])
        self.spare = np.concatenate([np.arange(blocks, 2 * blocks), np.zeros_like(self.spare)])
        self.integers[K.SPARES] = blocks

    def _find_first(self) -> None:
        """Note where every class's first block starts and ends."""
        first = self.ring[np.arange(len(self.shelf)), self.shelf[:, FRONT]]
        self.shelf[:, START] = 2 * self.cells.shape[1] * first
        self.shelf[:, NEXT] = self.shelf[:, START] + 2 * self.fill[first] - 2

    def _join_blocks(self) -> None:
        """Join neighbours two and two, now that blocks are twice as long; marks fall within a block."""
        spare = []
        for i, shelf in enumerate(self.shelf):
            mine = list(self.ring[i, : shelf[BLOCKS]])
            kept = []
            for low, high in zip(mine[::2], mine[1::2], strict=False):
                a, b = self.fill[low], self.fill[high]
                self.cells[high, b : a + b] = self.cells[low, :a]
                self.fill[high], self.fill[low] = a + b, 0
                kept.append(high)
                spare.append(low)
            kept += mine[2 * len(kept) :]
            self.ring[i, : len(kept)], shelf[BLOCKS] = kept, len(kept)
            self.tops[i, : len(kept)] = self.cells[kept, 0, 0]
        self.spare[: len(spare)], self.integers[K.SPARES] = spare, len(spare)

    def _asked(self) -> tuple[FloatArray, FloatArray]:
        return self.asked, self.width

    def _shown_allocation(self) -> str:
        return "cores a job " + ", ".join(f"{k:g}" for k in self.width)


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


def _doubled(rows: Any) -> Any:
    """The same arrays, one a class, with room for twice as much in each."""
    return np.concatenate([rows, np.zeros_like(rows)], axis=1)


def _unrolled(rings: Any, heads: Any) -> Any:
    """The same rings, each starting at 0."""
    return np.array([np.roll(ring, -int(head), axis=0) for ring, head in zip(rings, heads, strict=True)])


def _power_of_two(least: int) -> int:
    """The smallest power of two that is at least this."""
    return 1 << (least - 1).bit_length()


def _longer(rows: FloatArray) -> FloatArray:
    """The same rows with room for as many again."""
    return np.concatenate([rows, np.zeros_like(rows)])
