"""The engine that a task names: one of the library's, one of a user's file, or whichever is best.

Policies that are compared must see the same jobs, and the engines draw theirs differently; so tasks that
belong together run on one engine.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from malleable.catalog import load_object
from malleable.engine import engines
from malleable.engine.gpu import availability
from malleable.engine.rule_interface import COUNTS, Program
from malleable.policies.base.asking import simulated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.engines import StartedRun
    from malleable.model import Workload
    from malleable.simulation.task import Task


LONG = 20_000_000
"""Jobs from which on a GPU is worth its start."""
NARROW = 1e-3
"""A relative half-width that takes so many."""
MOST_CORES = 4096
"""Beyond, so many jobs are sorted by insertion that a processor is as fast."""


class EngineWarning(UserWarning):
    """A run was asked of the GPU and goes to the processor."""


def with_engine(tasks: Sequence[Task]) -> list[Task]:
    """The tasks on the engine for `auto`, and on the processor where the GPU cannot do all of them."""
    tasks = list(tasks)
    engine = tasks[0].engine if tasks else engines.DEFAULT_ENGINE
    if engine not in {engines.AUTO, engines.GPU_ENGINE}:
        return tasks
    reason = next(filter(None, map(_only_on_processor, tasks)), "")
    if engine == engines.GPU_ENGINE:
        availability.check()
        if reason:
            warnings.warn(f"{reason}, so this runs on the CPU", EngineWarning, stacklevel=3)
    elif not reason:
        pays = all(_long(task) for task in tasks) and not availability.why_not()
        reason = "" if pays else "it does not pay"
    chosen = engines.DEFAULT_ENGINE if reason else engines.GPU_ENGINE
    return [replace(task, engine=chosen) for task in tasks]


def _only_on_processor(task: Task) -> str:
    """Why a task is not one for the GPU; empty if it is."""
    settings = task.settings
    if not (settings.plain and task.workload.plain):
        return "rules on single jobs are simulated on the CPU only"
    if simulated(task.policy, task.workload, task.cores).sees != COUNTS:
        return f"{task.label} looks at single jobs"
    if task.cores > MOST_CORES:
        return f"the GPU simulates up to {MOST_CORES} cores"
    if settings.interpreted or settings.widths:
        return "--interpreted and --widths are for the CPU"
    return ""


def _long(task: Task) -> bool:
    settings = task.settings
    if settings.precision is not None and settings.jobs is None:
        return settings.precision <= NARROW
    return settings.most_jobs >= LONG


def start_run(engine: str, workload: Workload, cores: float, program: Program, **options: Any) -> StartedRun:
    """A run on the engine of that name; `file.py:Name` is called like `engine.run.Run`."""
    if engine.partition(":")[0].endswith(".py"):
        started: StartedRun = load_object(engine)(workload, cores, program, **options)
        return started
    return engines.start_run(engine, workload, cores, program, **options)
