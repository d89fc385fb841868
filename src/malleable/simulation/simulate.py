"""One policy on one workload: until the jobs are through, the precision is reached, or Ctrl-C is pressed.

Whatever was done is returned, labelled for what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.simulation.carry_out import carry_out
from malleable.simulation.engine_choice import with_engine
from malleable.simulation.jobs_bound import check_jobs_bound, with_jobs_bound
from malleable.simulation.run_task import task_result, usable
from malleable.simulation.settings import Settings
from malleable.simulation.task import checked_task, replicated

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from malleable.contracts import Policy
    from malleable.model import Workload
    from malleable.results import Result


WORTH_A_PROCESS = 100_000
"""Jobs of a replication below which it is over before a process for it has started."""


def simulate(
    workload: Workload,
    cores: float,
    policy: Policy | str | Callable[..., Any] = "wham",
    *,
    load: float | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Result:
    """Cost and response times of a policy; `malleable.simulate` says it all, `settings` are `Settings`."""
    task = with_engine([checked_task(workload, cores, policy, load, Settings(**settings))])[0]
    if task.settings.bound is not None:
        check_jobs_bound(task)
    outcomes = carry_out(replicated(task), executor, progress, workers)
    if not any(usable(outcome, task) for outcome in outcomes):
        raise KeyboardInterrupt
    result = task_result(task, outcomes)
    return result if task.settings.bound is None else with_jobs_bound([result], [task], progress)[0]


def simulate_apart(
    workload: Workload,
    cores: float,
    policy: Policy | str | Callable[..., Any] = "wham",
    *,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    **settings: Any,
) -> list[Result]:
    """The replications of a run as results of their own: independent samples of whatever they say.

    A run that is interrupted before its end raises `KeyboardInterrupt`.
    """
    task = with_engine([checked_task(workload, cores, policy, None, Settings(**settings))])[0]
    tasks = replicated(task)
    groups = (
        [[one] for one in tasks] if workers == 1 or task.settings.most_jobs < WORTH_A_PROCESS else [tasks]
    )
    outcomes = [outcome for group in groups for outcome in carry_out(group, None, progress, workers)]
    if any(outcome is None or outcome.interrupted for outcome in outcomes):
        raise KeyboardInterrupt
    return [task_result(one, [outcome]) for one, outcome in zip(tasks, outcomes, strict=True)]
