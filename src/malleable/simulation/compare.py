"""Several policies on the same jobs, at one or several numbers of cores and loads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from malleable.catalog import split_policies
from malleable.contracts import Policy
from malleable.errors import ParameterError, did_you_mean
from malleable.results import Comparison
from malleable.simulation.carry_out import carry_out
from malleable.simulation.engine_choice import with_engine
from malleable.simulation.jobs_bound import check_jobs_bound, with_jobs_bound
from malleable.simulation.run_task import task_result, usable
from malleable.simulation.settings import Settings
from malleable.simulation.task import checked_task, compared, replicated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from malleable.model import Workload


def compare(
    workload: Workload,
    cores: float | Sequence[float],
    policies: str | Sequence[Policy | str | Callable[..., Any]],
    *,
    load: float | Sequence[float] | None = None,
    baseline: str | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Comparison:
    """Several policies on the same jobs; `malleable.compare` says it all, `settings` are `Settings`."""
    grid, loads, chosen = _several(cores), _several(load), _policies(policies)
    if not chosen or not grid or not loads:
        raise ParameterError("there is nothing to compare", "name at least one policy and number of cores")
    common = Settings(**settings)
    tasks = [
        task
        for n in grid
        for r in loads
        for task in compared([checked_task(workload, n, policy, r, common) for policy in chosen])
    ]
    labels = {task.label for task in tasks}
    if baseline is not None and baseline not in labels:
        raise ParameterError(
            f"the baseline {baseline!r} is not one of the policies", did_you_mean(baseline, labels)
        )
    tasks = with_engine(tasks)
    if common.bound is not None:
        for task in tasks:
            check_jobs_bound(task)
    runs = [one for task in tasks for one in replicated(task)]
    outcomes = iter(carry_out(runs, executor, progress, workers))
    results, their = [], []
    for task in tasks:
        mine = list(islice(outcomes, common.replications))
        if any(usable(outcome, task) for outcome in mine):
            results.append(task_result(task, mine))
            their.append(task)
    if not results:
        raise KeyboardInterrupt
    if common.bound is not None:
        results = with_jobs_bound(results, their, progress)
    done = {result.policy for result in results}
    # After Ctrl-C the baseline may be missing; then the first policy stands in for it.
    return Comparison.of(results, None if len(results) < len(tasks) and baseline not in done else baseline)


def _several(values: Any) -> list[Any]:
    """One value, or each of several."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]


def _policies(policies: Any) -> list[Any]:
    """The policies to compare: of a list, of text with commas as on the command line, or a single one."""
    if isinstance(policies, str):
        return split_policies(policies)
    if isinstance(policies, Policy) or callable(policies):
        return [policies]
    try:
        return list(policies)
    except TypeError:
        raise ParameterError(
            f"policies must be a list, got {policies!r:.60}", 'give ["wham", "equi"] or "wham,equi"'
        ) from None
