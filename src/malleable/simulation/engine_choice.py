"""The engine that a task names: one of the library's, or one of a user's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.catalog import load_object
from malleable.engine import engines

if TYPE_CHECKING:
    from malleable.engine.engines import StartedRun
    from malleable.engine.rule_interface import ClassProgram, JobProgram
    from malleable.model import Workload


def start_run(
    engine: str, workload: Workload, cores: float, program: ClassProgram | JobProgram, **options: Any
) -> StartedRun:
    """A run on the engine of that name; `file.py:Name` is called like `engine.run.Run`."""
    if engine.partition(":")[0].endswith(".py"):
        started: StartedRun = load_object(engine)(workload, cores, program, **options)
        return started
    return engines.start_run(engine, workload, cores, program, **options)
