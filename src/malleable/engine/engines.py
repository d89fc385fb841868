"""The engines that can carry out a run, by name.

An engine is called like `engine.run.Run` and gives back a run that can be extended and asked for its outcome.
A new one is a module of its own and a line in `ENGINES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from malleable.engine.run import Run
from malleable.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from malleable.engine.rule_interface import Program
    from malleable.engine.run import Outcome
    from malleable.model import Workload

DEFAULT_ENGINE = "cpu"
GPU_ENGINE = "gpu"
AUTO = "auto"
"""Not an engine: the GPU where there is one and it pays, else the CPU."""


class StartedRun(Protocol):
    """A run in progress, on whatever engine."""

    jobs: int
    """Jobs that have arrived so far."""
    interrupted: bool
    """Whether Ctrl-C has stopped it."""
    exhausted: bool
    """Whether its source has no more jobs."""

    def extend(self, jobs: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulate up to `jobs` jobs in all."""

    def outcome(self) -> Outcome:
        """Everything recorded so far."""
        ...


def _gpu_run(*arguments: Any, **options: Any) -> StartedRun:
    """A run on the GPU, or one line that says why not; CUDA is not touched before."""
    from malleable.engine.gpu.availability import check  # noqa: PLC0415

    check()
    from malleable.engine.gpu.run import GpuRun  # noqa: PLC0415

    return GpuRun(*arguments, **options)


ENGINES: Mapping[str, Callable[..., StartedRun]] = {DEFAULT_ENGINE: Run, GPU_ENGINE: _gpu_run}
"""`cpu` runs compiled kernels, event by event, on one core; `gpu` a replication in each thread of a GPU."""


def start_run(engine: str, workload: Workload, cores: float, program: Program, **options: Any) -> StartedRun:
    """A run of the program on the engine of that name; `options` are those of `Run`."""
    if engine not in ENGINES:
        raise ParameterError(f"there is no engine {engine!r}", did_you_mean(engine, ENGINES))
    return ENGINES[engine](workload, cores, program, **options)


def known_engine(engine: str) -> None:
    """Refuse the name of no engine, before anything runs; one of a user's file is looked for later."""
    names = (*ENGINES, AUTO)
    if engine not in names and not engine.partition(":")[0].endswith(".py"):
        raise ParameterError(f"there is no engine {engine!r}", did_you_mean(engine, names))
