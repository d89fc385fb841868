"""One run: jobs from a stream through a machine, cut into records."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.interruptible import run_interruptibly
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - K.NOW reads like the paper's symbols
from malleable.engine.machines import machine
from malleable.engine.records import Records
from malleable.engine.replaying import check_weights
from malleable.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import CoreChanges, FloatArray
    from malleable.engine.machines import Snapshot
    from malleable.engine.rule_interface import Program
    from malleable.model import Workload
    from malleable.sources.streams import Chunk, Stream

RECORDS = 512
"""Records of a run of the length first asked for."""
SHORTEST = 8
"""Jobs per record at least: a call of the kernel takes as long as some hundred events."""
SEGMENTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the run after which histograms start anew, so that a warm-up can be left out."""


class Outcome(NamedTuple):
    """What a run left behind."""

    records: Records
    jobs: int
    events: int
    seconds: float
    interrupted: bool
    groups: tuple[Records, ...] = ()
    """Records of independent groups of replications, where the engine ran many at once."""
    together: int = 1
    """Replications of a group."""
    device: str = ""
    """What it ran on, unless that was a processor."""

    @property
    def runs(self) -> tuple[Records, ...]:
        """What is independent of one another: the groups, or the run."""
        return self.groups or (self.records,)


class _Row(NamedTuple):
    """What happened between two looks at the machine."""

    sums: FloatArray
    scalars: FloatArray
    present: FloatArray
    segment: int
    available: float


class Run:
    """A run that can be continued: `extend(jobs)` as often as needed, `outcome()` at any time."""

    def __init__(
        self,
        workload: Workload,
        cores: float,
        program: Program,
        *,
        jobs: int,
        source: Stream,
        name: str = "",
        interpreted: bool = False,
        widths: bool = False,
        shortest: int = SHORTEST,
        sizes_known: bool = True,
        changes: CoreChanges | None = None,
    ) -> None:
        self.machine = machine(
            workload, cores, program,
            name=name, interpreted=interpreted, wide=widths, sizes_known=sizes_known, changes=changes,
        )  # fmt: skip
        self._stream = source
        self._stride = _stride(jobs, shortest)
        self._cuts = [max(1, int(share * jobs / self._stride)) for share in SEGMENTS]
        self._chunk, self._next = _unweighted(self._stream.take()), 0
        self._rows: list[_Row] = []
        self._histograms: list[tuple[FloatArray, FloatArray]] = []
        self._since_record = 0
        self.jobs = 0
        self.seconds = 0.0
        self.interrupted = False
        self.exhausted = False

    def extend(self, jobs: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulate up to `jobs` jobs in all; Ctrl-C stops at the next event and is remembered.

        A second Ctrl-C, for a rule that never returns, is raised.
        """
        started = time.perf_counter()
        tell = threading.Lock()

        def look() -> None:
            if progress is not None:
                with tell:
                    progress(self.jobs)

        try:
            if self.machine.compiled:
                run_interruptibly(lambda: self._until(jobs, look), look=look, stop=self.machine.stop)
            else:
                self._until(jobs, look)
        except KeyboardInterrupt:
            self.interrupted = True
            if not self._rows and self._since_record:
                self._record()
        self.seconds += time.perf_counter() - started

    def _until(self, jobs: int, look: Callable[[], None]) -> None:
        while self.jobs < jobs and not self.exhausted and not self.machine.stopped:
            self._advance(min(self._stride - self._since_record, jobs - self.jobs))
            look()

    def _advance(self, wanted: int) -> None:
        if self._next >= self._chunk.size:
            self._chunk, self._next = _unweighted(self._stream.take()), 0
            if self._chunk.size == 0:
                self.exhausted = True
                return
        wanted = min(wanted, self._chunk.size - self._next)
        taken = self.machine.feed(self._chunk, self._next, self._next + wanted)
        self._next += taken
        self.jobs += taken
        self._since_record += taken
        if self._since_record == self._stride:
            self._record()

    def _record(self) -> None:
        sums, scalars = self.machine.collect()
        available = self.machine.collect_available()
        self._rows.append(
            _Row(sums, scalars, self.machine.snapshot().counts, len(self._histograms), available)
        )
        self._since_record = 0
        if len(self._rows) in self._cuts:
            self._histograms.append(self.machine.collect_histograms())
        if len(self._rows) == 2 * RECORDS:
            self._coarsen()

    def _coarsen(self) -> None:
        """Join neighbouring records, so that a run that goes on and on keeps a bounded number of them."""
        pairs = zip(self._rows[::2], self._rows[1::2], strict=True)
        self._rows = [
            _Row(a.sums + b.sums, a.scalars + b.scalars, b.present, a.segment, a.available + b.available)
            for a, b in pairs
        ]
        self._stride *= 2
        self._cuts = []

    def snapshot(self) -> Snapshot:
        """The state of the system at the last event."""
        return self.machine.snapshot()

    def outcome(self) -> Outcome:
        """Everything recorded so far; a record that is not full is left out."""
        m = len(self.machine.workload.classes)
        sums = np.array([row.sums for row in self._rows]).reshape(-1, K.SUM_ROWS, m)
        scalars = np.array([row.scalars for row in self._rows]).reshape(-1, 4)
        present = np.array([row.present for row in self._rows]).reshape(-1, m)
        # The machine's own histograms are the open segment; a look must not close it.
        histograms = [*self._histograms, self.machine.open_histograms()]
        records = Records(
            departures=sums[:, K.DEPARTURES],
            response=sums[:, K.RESPONSE],
            slowdown=sums[:, K.SLOWDOWN],
            arrivals=sums[:, K.ARRIVALS],
            work=sums[:, K.WORK],
            area=sums[:, K.AREA],
            present=present,
            duration=scalars[:, 0],
            used=scalars[:, 1],
            overload=scalars[:, 2],
            segment=np.array([row.segment for row in self._rows], dtype=float),
            response_histogram=np.array([h[0] for h in histograms]),
            slowdown_histogram=np.array([h[1] for h in histograms]),
            width_histogram=self.machine.width_histogram(),
            resizes=sums[:, K.RESIZES] + (0.0 if self.machine.counts_resizes else np.nan),
            available=np.array([row.available for row in self._rows], dtype=float),
        )
        events = int(scalars[:, 3].sum()) + self.machine.events
        return Outcome(records, self.jobs, events, self.seconds, self.interrupted)


def _unweighted(jobs: Chunk) -> Chunk:
    """Jobs that cost what their class says: class rules and the cost know no others."""
    if jobs.weights.size:
        raise UnsupportedError(
            f"the source gives {jobs.weights.size} jobs weights of their own, which no run counts",
            "make a class for each weight: malleable.simulation.given.by_weight does",
        )
    return jobs


def recorded(jobs: int) -> int:
    """How many jobs of a run stand in its records: a last record that is not full is left out."""
    return jobs - jobs % _stride(jobs, SHORTEST)


def _stride(jobs: int, shortest: int) -> int:
    """Jobs per record."""
    return max(min(shortest, jobs), jobs // RECORDS)


def departures(
    workload: Workload,
    cores: float,
    program: Program,
    jobs: Chunk,
    *,
    interpreted: bool = False,
) -> FloatArray:
    """Departure time of each of the given jobs; the run goes on until all have left."""
    check_weights(program, jobs)
    runner = machine(workload, cores, program, interpreted=interpreted, log=jobs.size)
    runner.feed(jobs, 0, jobs.size, drain=True)
    return runner.ends
