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
