"""The machine of policies that look at class counts alone: a clock per class, and sorted blocks of marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.compiling import CLASS_RULE
from malleable.engine.enforcement import pool_widths
from malleable.engine.job_log import SERVED
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - K.NOW reads better than kernels.NOW
from malleable.engine.machines.base import FIRST_JOBS, Asked, Machine
from malleable.engine.mark_blocks import BLOCKS, FRONT, HEAD, JOB_BITS, NEXT, SHELF_BITS, SLOTS, START
from malleable.engine.rule_interface import BINS, POOLS, Program
from malleable.engine.speedup_table import speed

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.sources.streams import Chunk

BLOCK = 32
"""Jobs per block at first; a newcomer shifts a quarter of them on average."""
MANY = 8
"""Blocks per class, as a multiple of their size, from which on blocks are made longer instead of more."""
MEMO_BITS = 15
"""The memo of widths by state has 2 to the power of this many rows."""
REBASE = 1e5
"""Clocks are set back when they exceed this many mean sizes, so that marks keep eleven digits."""


class ClassMachine(Machine):
    """Shapes 1 and 2 on the class kernel."""

    def __init__(
        self, workload: Workload, cores: float, program: Program, *, name: str = "", **options: Any
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
        self._set_memo(m)
        self.served = np.zeros((m, SERVED))
        self.kernel = K.logging_class_kernel if self.logging else K.class_kernel
        self._set_rule(program.rule, CLASS_RULE, K.signature, name)
        if program.discipline == POOLS:
            self._set_pools()

    def _set_shelves(self, m: int) -> None:
        self.shelf = np.zeros((m, 1 << SHELF_BITS), dtype=np.int64)
        self.jobs, self.idle = np.zeros((FIRST_JOBS, 1 << JOB_BITS)), np.arange(FIRST_JOBS)
        self.waiting = np.zeros((m, FIRST_JOBS, 2))
        # An empty shelf keeps one block; the others go to whichever class needs them.
        blocks = _power_of_two(m + 2)
        self.cells, self.fill = np.zeros((blocks, BLOCK, 2)), np.zeros(blocks, dtype=np.int64)
        self.spare = np.concatenate([np.arange(m, blocks), np.zeros(m, dtype=np.int64)])
        self.ring, self.tops = np.zeros((m, blocks), dtype=np.int64), np.zeros((m, blocks))
        self.ring[:, 0], self.shelf[:, BLOCKS] = np.arange(m), 1
        self._find_first()
        self.integers[K.IDLE], self.integers[K.SPARES] = FIRST_JOBS, blocks - m

    def _set_memo(self, m: int) -> None:
        row = _power_of_two(K.MEMO_SPEEDS + (3 if self.logging else 2) * m)
        # Zeros are no key: one is looked up only while jobs are present. Untouched pages cost nothing.
        self.memo = np.zeros((1 << MEMO_BITS, row))
        self.memo_keys = self.memo.view(np.int64)
        self.memo_bins = np.zeros((1 << MEMO_BITS if self.widths.shape[1] > 1 else 1, m))

    def _set_pools(self) -> None:
        self.shelf[:, SLOTS] = self.program.slots
        self.width[:] = pool_widths(self.program, self.cores, len(self.width))
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
                self.histograms.reshape(-1), self.widths,
                self.log, self.served, self.usage, self.slices, self.paid,
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
        """Join neighbouring blocks in pairs, now that they are twice as long; marks fall within a block."""
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

    def _asked(self) -> Asked:
        return Asked(self.asked, self.cores, self.width)

    def _shown_allocation(self) -> str:
        return "cores per job " + ", ".join(f"{k:g}" for k in self.width)


def _doubled(rows: Any) -> Any:
    """The same arrays, one per class, with room for twice as much in each."""
    return np.concatenate([rows, np.zeros_like(rows)], axis=1)


def _unrolled(rings: Any, heads: Any) -> Any:
    """The same rings, each starting at 0."""
    return np.array([np.roll(ring, -int(head), axis=0) for ring, head in zip(rings, heads, strict=True)])


def _power_of_two(least: int) -> int:
    """The smallest power of two that is at least this."""
    return 1 << (least - 1).bit_length()
