"""Carry out one task, in stages until its precision is met, and say what came of its replications."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from malleable.engine.enforcement import blame_policy
from malleable.engine.engines import GPU_ENGINE
from malleable.policies.base.asking import simulated
from malleable.results import Result, Status, summarise
from malleable.results.versions import installed_versions
from malleable.simulation.engine_choice import start_run
from malleable.sources import Drawn
from malleable.statistics import reached
from malleable.statistics.run_length import jobs_needed
from malleable.statistics.sampling import REPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.engine.run import Outcome
    from malleable.simulation.task import Task

FIRST_STAGE = 1 << 17
GPU_FIRST_STAGE = 1 << 28
"""A GPU needs so many jobs to be busy at all."""
GPU_REPLICATIONS = 1 << 17
"""And so many replications."""
GPU_LONGEST_FIRST_STAGE = 10**10
"""Some seconds, where queues forget so slowly that not even these are enough."""
GPU_MOST_JOBS = 10**12
"""Where a run on a GPU with a precision but no number of jobs gives up."""
GROWTH = 1.5


def run_task(task: Task, progress: Callable[[int, int], None] | None = None) -> Outcome:
    """Carry out one task in this process; `progress(done, aim)` is told numbers of jobs."""
    with blame_policy(task.policy, task.label):
        return _run(task, progress)


def _run(task: Task, progress: Callable[[int, int], None] | None) -> Outcome:
    settings = task.settings
    on_gpu = task.engine == GPU_ENGINE
    precision, most = settings.precision, settings.most_jobs
    if on_gpu and settings.jobs is None:
        most = GPU_MOST_JOBS
    # A first stage that the warm-up fills would have nothing to say.
    first = _gpu_first_stage(task) if on_gpu else FIRST_STAGE
    aim = most if precision is None else min(most, max(first, 2 * (settings.warmup or 0)))
    run = start_run(
        task.engine,
        task.workload,
        task.cores,
        simulated(task.policy, task.workload, task.cores, plain=settings.plain),
        jobs=aim,
        source=task.source.stream(task.workload),
        name=task.label,
        interpreted=settings.interpreted,
        widths=settings.widths,
        **_machine_options(task),
        **({"least_jobs": _least_jobs(task, aim), "seed": _drawn_seed(task)} if on_gpu else {}),
    )
    while True:
        run.extend(aim, None if progress is None else partial(_told, progress, aim))
        if precision is None or run.jobs >= most or run.interrupted or run.exhausted:
            break
        so_far = task_result(task, [run.outcome()])
        if reached(so_far.cost, precision):
            break
        aim = min(most, _enough(run.jobs, so_far, precision))
    return run.outcome()


def _machine_options(task: Task) -> dict[str, Any]:
    """What an engine is told of machines that are not the paper's; nothing of those that are."""
    settings = task.settings
    if settings.plain:
        return {}
    seed = getattr(task.source, "seed", settings.seed)
    changes = None if settings.capacity is None else settings.capacity.changes(task.cores, seed)
    return {"sizes_known": settings.sizes == "known", "changes": changes}


def _drawn_seed(task: Task) -> int | None:
    """The seed of which a device draws the jobs itself; None where a source of another kind gives them."""
    return task.source.seed if type(task.source) is Drawn else None


def _replication_jobs(task: Task) -> float:
    """How long each of many replications should be, so that little of it is lost to the warm-up."""
    from malleable.engine.gpu.run import LEAST_JOBS  # noqa: PLC0415 - only where there is a GPU

    return max(jobs_needed(task.relaxation, task.workload.total_load), LEAST_JOBS)


def _gpu_first_stage(task: Task) -> int:
    """Jobs that fill a GPU with replications of the length they need, as they stay as many to the end."""
    filled = GPU_REPLICATIONS * _replication_jobs(task)
    return int(min(max(filled, GPU_FIRST_STAGE), GPU_LONGEST_FIRST_STAGE))


def _least_jobs(task: Task, aim: int) -> int:
    """How long a replication is at least; a short run has five of them."""
    shortest = min(_replication_jobs(task), aim / REPLICATIONS)
    return math.ceil(max(shortest, 4 * (task.settings.warmup or 0), 1))


def _told(progress: Callable[[int, int], None], aim: int, done: int) -> None:
    progress(done, aim)


def _enough(jobs: int, so_far: Result, precision: float) -> int:
    """How many jobs should do, judging by the interval so far: half-widths fall with the root of the run."""
    relative = so_far.cost.relative_half_width
    factor = 1.1 * (relative / precision) ** 2 if math.isfinite(relative) else 4.0
    return int(jobs * min(max(factor, GROWTH), 4.0))


def task_result(task: Task, outcomes: Sequence[Outcome | None]) -> Result:
    """The result of the replications that there are; some are missing after Ctrl-C."""
    settings = task.settings
    done = {settings.seed + r: outcome for r, outcome in enumerate(outcomes) if usable(outcome, task)}
    stopped = len(done) < len(outcomes) or any(outcome.interrupted for outcome in done.values())
    return summarise(
        [run for outcome in done.values() for run in outcome.runs],
        workload=task.workload,
        cores=task.cores,
        policy=task.label,
        seed=list(done),
        jobs=sum(outcome.jobs for outcome in done.values()),
        warmup=_warmup(settings.warmup, list(done.values())),
        confidence=settings.confidence,
        events=sum(outcome.events for outcome in done.values()),
        seconds=sum(outcome.seconds for outcome in done.values()),
        status=Status.INTERRUPTED if stopped else Status.COMPLETE,
        precision=settings.precision,
        whole_cores=task.policy.whole_cores,
        blocking=task.policy.blocking,
        mean_cores=settings.mean_cores(task.cores),
        pool_loads=task.pool_loads,
        policy_notes=task.policy.notes(task.workload, task.cores),
        versions=_versions(list(done.values())),
    )


def _warmup(jobs: int | None, outcomes: Sequence[Outcome]) -> int | None:
    """Jobs to leave out of every run; where a run is many replications, of all of them."""
    return jobs if jobs is None or not outcomes else jobs * outcomes[0].together


def _versions(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """What the numbers depend on, the device included."""
    devices = {outcome.device for outcome in outcomes if outcome.device}
    return {**installed_versions(), **({"device": ", ".join(sorted(devices))} if devices else {})}


def usable(outcome: Outcome | None, task: Task) -> TypeGuard[Outcome]:
    """Whether the task got as far as one record, and if it was interrupted, beyond the warm-up given."""
    if outcome is None or outcome.records.size == 0:
        return False
    return not outcome.interrupted or outcome.records.arrivals.sum() > (task.settings.warmup or 0)
