"""Given jobs through a machine until the last has left: when each started and ended, and on how much."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.interruptible import run_interruptibly
from malleable.engine.job_log import CHANGES, END, FIRST, HELD_AREA, LENGTH, RENT, START
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - K.NOW reads like the paper's symbols
from malleable.engine.machines import machine
from malleable.engine.rule_interface import COUNTS, Program
from malleable.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.engine.job_log import PricePath
    from malleable.engine.machines import Machine
    from malleable.model import Workload
    from malleable.sources.streams import Chunk

STRETCH = 1 << 16
"""Jobs between two looks at the keyboard."""


class JobLog(NamedTuple):
    """One entry per job, in the order of the jobs; NaN where Ctrl-C came before."""

    starts: FloatArray
    """When it first had a core."""
    ends: FloatArray
    core_time: FloatArray
    """The integral of its cores."""
    resizes: FloatArray
    """How often its cores changed while it ran, or came back after it had none."""
    rents: FloatArray
    """The integral of its cores times their price; 0 where cores have none."""


class Usage(NamedTuple):
    """Cores in use over time, by class: their mean in slices of equal length."""

    start: float
    length: float
    cores: FloatArray
    """(classes, slices)."""

    @property
    def edges(self) -> FloatArray:
        """When the slices start, and when the last one ends."""
        return self.start + self.length * np.arange(self.cores.shape[1] + 1)


class Replayed(NamedTuple):
    """What came of given jobs."""

    log: JobLog
    usage: Usage
    used: float
    """The integral of the cores in use."""
    overload: float
    """Time with more jobs than cores."""
    end: float
    """When the last job left."""
    events: int
    seconds: float
    interrupted: bool


def replay_jobs(
    workload: Workload,
    cores: float,
    program: Program,
    jobs: Chunk,
    *,
    name: str = "",
    interpreted: bool = False,
    prices: PricePath | None = None,
    progress: Callable[[int], None] | None = None,
) -> Replayed:
    """Run the jobs until all have left; Ctrl-C stops at the next event and is remembered.

    With `prices`, what every job pays for its cores is noted.
    """
    check_weights(program, jobs)
    runner = machine(workload, cores, program, name=name, interpreted=interpreted, log=jobs.size)
    if jobs.size:
        runner.slice_time(float(jobs.times[0]), float(jobs.times[-1]))
    if prices is not None:
        runner.charge(prices)
    started = time.perf_counter()
    interrupted = False
    done = [0]

    def look() -> None:
        if progress is not None:
            progress(done[0])

    try:
        if runner.compiled:
            run_interruptibly(lambda: _drain(runner, jobs, done, look), look=look, stop=runner.stop)
        else:
            _drain(runner, jobs, done, look)
    except KeyboardInterrupt:
        interrupted = True
    seconds = time.perf_counter() - started
    length = float(runner.slices[LENGTH])
    usage = Usage(float(runner.slices[FIRST]), length, runner.usage / length)
    log = JobLog(*(runner.log[row] for row in (START, END, HELD_AREA, CHANGES, RENT)))
    used, overload = float(runner.scalars[K.USED_AREA]), float(runner.scalars[K.OVERLOAD])
    end = float(runner.scalars[K.NOW])
    return Replayed(log, usage, used, overload, end, runner.events, seconds, interrupted or runner.stopped)


def check_weights(program: Program, jobs: Chunk) -> None:
    """Refuse weights of single jobs where the rule sees class counts alone."""
    if jobs.weights.size and program.sees == COUNTS:
        raise UnsupportedError(
            f"a rule on class counts cannot see the weights of {jobs.weights.size} single jobs",
            "make a class for each weight: malleable.simulation.given.by_weight does",
        )


def _drain(runner: Machine, jobs: Chunk, done: list[int], look: Callable[[], None]) -> None:
    while done[0] < jobs.size and not runner.stopped:
        until = min(done[0] + STRETCH, jobs.size)
        done[0] += runner.feed(jobs, done[0], until, drain=until == jobs.size)
        look()
