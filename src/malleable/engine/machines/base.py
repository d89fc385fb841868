"""What all machines share: sums, histograms, a compiled rule, and how they are fed chunks of jobs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.compiling import (
    AS_ARGUMENT,
    RAISED,
    RuleAddress,
    can_compile,
    compile_rule,
    compiled,
    on_copies,
)
from malleable.engine.enforcement import refusal
from malleable.engine.job_log import END, LENGTH, new_log
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - K.NOW reads better than kernels.NOW
from malleable.engine.kernels import job_kernel as J  # noqa: N812 - ditto
from malleable.engine.rule_interface import BINS, DONE, GROW, STOPPED
from malleable.engine.speedup_table import encode
from malleable.errors import PolicyError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.job_log import PricePath
    from malleable.model import Workload
    from malleable.sources.streams import Chunk

SLICES = 1024
"""Slices of time in which the cores in use are summed."""
FIRST_JOBS = 64
"""Jobs that the arrays hold at first."""


class Snapshot(NamedTuple):
    """The state of a run at the last event that was simulated: a copy, which the run does not change."""

    time: float
    counts: FloatArray
    """Jobs present, per class."""
    cores_in_use: float

    @property
    def present(self) -> int:
        """Jobs present, of all classes."""
        return int(self.counts.sum())


class Asked(NamedTuple):
    """What a rule was asked, and what it answered."""

    jobs: FloatArray
    """Rows of single jobs, or counts by class."""
    cores: float
    answer: FloatArray


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
        self.log = new_log(log)
        self.usage, self.slices = np.zeros((m, SLICES if log else 1)), np.array([0.0, math.inf, 0.0, 0.0])
        self.paid = np.zeros((2, 0))

    @property
    def logging(self) -> bool:
        """Whether every job is noted."""
        return bool(self.log.shape[1] > 0)

    @property
    def ends(self) -> FloatArray:
        """When each job left."""
        found: FloatArray = self.log[END]
        return found

    def slice_time(self, start: float, end: float) -> None:
        """Sum up the cores in use in equal slices from `start` to `end`, longer ones beyond."""
        length = max((end - start) / SLICES, 1e-9 * max(abs(start), abs(end), 1e-9))
        self.slices[: LENGTH + 1] = start, length

    def charge(self, path: PricePath) -> None:
        """Note what every job pays for its cores at these prices."""
        self.paid = np.ascontiguousarray([path.edges, path.paid])

    def snapshot(self) -> Snapshot:
        """The time reached, and what is on the machine then; to be taken between two calls of `feed`."""
        return Snapshot(float(self.scalars[K.NOW]), self.counts.copy(), float(self.scalars[K.USED]))

    def stop(self) -> None:
        """Have a kernel that runs in another thread return at its next event."""
        self.integers[K.STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return bool(self.integers[K.STOP])

    def feed(self, chunk: Chunk, first: int, last: int, *, drain: bool = False) -> int:
        """Take jobs first..last of the chunk, then let the others finish if `drain`; how many were taken."""
        self.integers[K.NEXT] = first
        while True:
            with np.errstate(all="ignore"):
                status = self._call(chunk, last, int(drain))
            if self._answer(status):
                continue
            if status in {DONE, STOPPED}:
                return int(self.integers[K.NEXT]) - first
            raise self._error(status)

    def _answer(self, status: int) -> bool:
        """Give the kernel what it returned for; whether that was all."""
        if status == GROW:
            self._grow()
        return status == GROW

    def collect(self) -> tuple[FloatArray, FloatArray]:
        """The sums by class and the scalars since the last call; both start again at zero."""
        sums, scalars = self.sums.copy(), self.scalars[K.DURATION : K.EVENTS + 1].copy()
        self.sums[:] = 0.0
        self.scalars[K.DURATION : K.EVENTS + 1] = 0.0
        return sums, scalars

    counts_resizes = False
    """Whether resizes of running jobs are counted."""

    def collect_available(self) -> float:
        """The integral of the number of cores since the last call; NaN where it never changes."""
        return np.nan

    @property
    def events(self) -> int:
        """Arrivals and departures since `collect` was last called."""
        return int(self.scalars[K.EVENTS])

    def open_histograms(self) -> tuple[FloatArray, FloatArray]:
        """Departures by response time and by slowdown, per class, since `collect_histograms`."""
        return self.responses.copy(), self.slowdowns.copy()

    def collect_histograms(self) -> tuple[FloatArray, FloatArray]:
        """The histograms since the last call; they start again at zero."""
        taken = self.open_histograms()
        self.responses[:] = 0.0
        self.slowdowns[:] = 0.0
        return taken

    def width_histogram(self) -> FloatArray:
        """Work by the number of cores that it was done on, per class; zeros unless `wide` was asked for."""
        wide = self.widths.shape[1] == BINS
        return self.widths.copy() if wide else np.zeros((len(self.widths), BINS))

    def _set_rule(self, rule: Any, signature: Any, kernel_signature: Any, name: str) -> None:
        """Compile the rule and the kernel, unless `interpreted`, or the rule cannot be compiled."""
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
    def _asked(self) -> Asked:
        """What the rule was last asked, and what it answered."""

    @abstractmethod
    def _shown_allocation(self) -> str: ...

    def _error(self, status: int) -> PolicyError:
        asked = self._asked()
        if self.compiled and (asked.answer == RAISED).any():
            # What the exception was, compiled code cannot tell; the same rule, interpreted, can.
            asked.answer[:] = 0.0
            self.plain_rule(asked.jobs, asked.cores, self.table, asked.answer)
            if not (asked.answer == RAISED).any():  # otherwise it gave out this number itself
                return PolicyError(
                    "the policy raises an error when it is compiled, but not when interpreted",
                    "look for what it keeps from one decision to the next, and run it with --interpreted",
                )
        counts = ", ".join(
            f"{count:g} of {name}" for name, count in zip(self.workload.class_names, self.counts, strict=True)
        )
        place = f"at time {self.scalars[K.NOW]:.6g} with {counts}"
        return refusal(status, asked.cores, place, self._shown_allocation())
