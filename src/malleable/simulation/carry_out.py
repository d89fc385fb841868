"""Carry out tasks: on a GPU one after the other from this process, elsewhere spread over processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.engine.engines import GPU_ENGINE
from malleable.execution.tasks import spread
from malleable.simulation.run_task import run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from malleable.engine.run import Outcome
    from malleable.simulation.task import Task


def carry_out(
    tasks: Sequence[Task],
    executor: Executor | None,
    progress: Callable[[int, int], None] | None,
    workers: int | None,
) -> list[Outcome | None]:
    """All outcomes in the order of the tasks; None for those that Ctrl-C kept from running."""
    if not any(task.engine == GPU_ENGINE for task in tasks):
        return spread(run_task, tasks, executor, progress, workers)
    outcomes: list[Outcome | None] = []
    for task in tasks:
        stopped = any(outcome is None or outcome.interrupted for outcome in outcomes)
        # A GPU is one machine: several processes would only get in one another's way.
        outcomes.append(None if stopped else run_task(task, progress))
    return outcomes
