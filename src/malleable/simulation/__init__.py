"""Simulate a policy, or compare several on the same jobs.

`simulate` runs until the jobs are through, the precision is reached, or somebody presses Ctrl-C; whatever
was done is returned, labelled for what it is. Replications and sweeps are spread over processes (or any
`concurrent.futures.Executor`); a task is its settings and seed, so results do not depend on the spreading.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard

from malleable.catalog import split_policies
from malleable.catalog.spec import whole_number
from malleable.contracts import Policy
from malleable.engine.enforcement import label, naming
from malleable.engine.engines import DEFAULT_ENGINE, start_run
from malleable.engine.run import Outcome, recorded
from malleable.errors import InfeasibleError, ParameterError, UnsupportedError, did_you_mean
from malleable.execution.tasks import spread
from malleable.model import Workload, checked_cores, load_workload
from malleable.policies.base.allocate_each_event import allocate_each_event
from malleable.results import Comparison, Result, Status, summarise
from malleable.sources import Drawn, Source
from malleable.statistics import checked_confidence, reached
from malleable.theory.relaxed import check_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from malleable.engine.rule_interface import ClassProgram, JobProgram

DEFAULT_JOBS = 1_000_000
FILLINGS = 30.0
"""A run of the default length brings so many times the jobs that are present with one core each: a large
system, which starts empty, has to fill first."""
MOST_JOBS = 1_000_000_000
"""Where a run with a precision but no number of jobs gives up."""
FIRST_STAGE = 1 << 17
GROWTH = 1.5
TINY, HUGE = 1e-140, 1e140
"""Numbers whose squares, and sums of them, are still numbers."""
CLOCK = 100.0 * sys.float_info.epsilon
"""Share of the time on the clock that a job must take to be timed to a hundredth."""


@dataclass(frozen=True)
class Settings:
    """How to run: everything but what is run."""

    jobs: int | None = None
    seed: int = 0
    replications: int = 1
    precision: float | None = None
    warmup: int | None = None
    confidence: float = 0.95
    interpreted: bool = False
    widths: bool = False
    allow_unstable: bool = False

    def __post_init__(self) -> None:
        for name, least in (("jobs", 1), ("replications", 1), ("seed", 0), ("warmup", 0)):
            value = getattr(self, name)
            # Only what has no default number may be left to us.
            if value is not None or name in {"replications", "seed"}:
                object.__setattr__(self, name, whole_number(name, value, least))
        if self.precision is not None and not 0.0 < self.precision < 1.0:
            raise ParameterError(
                f"precision must lie between 0 and 1, got {self.precision!r}", "0.01 means ±1 %"
            )

    @property
    def most_jobs(self) -> int:
        """Where the run ends at the latest."""
        if self.jobs is not None:
            return self.jobs
        return DEFAULT_JOBS if self.precision is None else MOST_JOBS


@dataclass(frozen=True)
class Task:
    """One run, complete in itself: what a worker needs and nothing else."""

    workload: Workload
    cores: float
    policy: Policy
    label: str
    settings: Settings
    source: Source
    engine: str = DEFAULT_ENGINE


def program(policy: Policy, workload: Workload, cores: float) -> ClassProgram | JobProgram:
    """The policy's own program, or one that asks its `allocate` at every event."""
    return policy.program(workload, cores) or allocate_each_event(policy, workload)


def run_task(task: Task, progress: Callable[[int, int], None] | None = None) -> Outcome:
    """Carry out one task in this process; `progress(done, aim)` is told numbers of jobs."""
    with naming(task.policy, task.label):
        return _run(task, progress)


def _run(task: Task, progress: Callable[[int, int], None] | None) -> Outcome:
    settings = task.settings
    precision, most = settings.precision, settings.most_jobs
    # A first stage that the warm-up fills would have nothing to say.
    aim = most if precision is None else min(most, max(FIRST_STAGE, 2 * (settings.warmup or 0)))
    run = start_run(
        task.engine,
        task.workload,
        task.cores,
        program(task.policy, task.workload, task.cores),
        jobs=aim,
        source=task.source.stream(task.workload),
        name=task.label,
        interpreted=settings.interpreted,
        widths=settings.widths,
    )
    while True:
        run.extend(aim, None if progress is None else partial(_told, progress, aim))
        if precision is None or run.jobs >= most or run.interrupted or run.exhausted:
            break
        so_far = _result(task, [run.outcome()])
        if reached(so_far.cost, precision):
            break
        aim = min(most, _enough(run.jobs, so_far, precision))
    return run.outcome()


def _told(progress: Callable[[int, int], None], aim: int, done: int) -> None:
    progress(done, aim)


def _enough(jobs: int, so_far: Result, precision: float) -> int:
    """How many jobs should do, judging by the interval so far: half-widths fall with the root of the run."""
    relative = so_far.cost.relative_half_width
    factor = 1.1 * (relative / precision) ** 2 if math.isfinite(relative) else 4.0
    return int(jobs * min(max(factor, GROWTH), 4.0))


def _result(task: Task, outcomes: Sequence[Outcome | None]) -> Result:
    """The result of the replications that there are; some are missing after Ctrl-C."""
    settings = task.settings
    done = {settings.seed + r: outcome for r, outcome in enumerate(outcomes) if _usable(outcome, task)}
    stopped = len(done) < len(outcomes) or any(outcome.interrupted for outcome in done.values())
    return summarise(
        [outcome.records for outcome in done.values()],
        workload=task.workload,
        cores=task.cores,
        policy=task.label,
        seed=list(done),
        jobs=sum(outcome.jobs for outcome in done.values()),
        warmup=settings.warmup,
        confidence=settings.confidence,
        events=sum(outcome.events for outcome in done.values()),
        seconds=sum(outcome.seconds for outcome in done.values()),
        status=Status.INTERRUPTED if stopped else Status.COMPLETE,
        precision=settings.precision,
        whole_cores=task.policy.whole_cores,
        blocking=task.policy.blocking,
    )


def _usable(outcome: Outcome | None, task: Task) -> TypeGuard[Outcome]:
    """Whether the task got as far as one record, and if it was interrupted, beyond the warm-up given."""
    if outcome is None or outcome.records.size == 0:
        return False
    return not outcome.interrupted or outcome.records.arrivals.sum() > (task.settings.warmup or 0)


def simulate(
    workload: Workload | str | Path,
    cores: float,
    policy: Policy | str | Callable[..., Any] = "wham",
    *,
    load: float | None = None,
    jobs: int | None = None,
    seed: int = 0,
    replications: int = 1,
    precision: float | None = None,
    warmup: int | None = None,
    confidence: float = 0.95,
    interpreted: bool = False,
    widths: bool = False,
    allow_unstable: bool = False,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> Result:
    """Cost and response times of a policy, with intervals, beside the lower bound.

    With `precision` the run goes on until the relative half-width of the cost is met, up to `jobs` jobs.
    `progress(done, total)` is called with numbers of jobs (of tasks, on an executor of yours). Replications
    are spread over `workers` processes, one a processor by default, or over `executor`.
    """
    settings = Settings(
        jobs, seed, replications, precision, warmup, confidence, interpreted, widths, allow_unstable
    )
    task = _task(workload, cores, policy, load, settings)
    outcomes = spread(run_task, _replicated(task), executor, progress, workers)
    if not any(_usable(outcome, task) for outcome in outcomes):
        raise KeyboardInterrupt
    return _result(task, outcomes)


def compare(
    workload: Workload | str | Path,
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
    """Several policies on the same jobs, at one or several numbers of cores and loads, with differences.

    `policies` is a list, or text with commas such as "wham,equi"; `settings` are those of `simulate`;
    differences are taken from the first policy, or from `baseline`, at the same number of cores and load.
    """
    grid, loads, chosen = _several(cores), _several(load), _policies(policies)
    if not chosen or not grid or not loads:
        raise ParameterError("there is nothing to compare", "name at least one policy and number of cores")
    common = Settings(**settings)
    tasks = [_task(workload, n, policy, r, common) for n in grid for r in loads for policy in chosen]
    labels = {task.label for task in tasks}
    if baseline is not None and baseline not in labels:
        raise ParameterError(
            f"the baseline {baseline!r} is not one of the policies", did_you_mean(baseline, labels)
        )
    runs = [one for task in tasks for one in _replicated(task)]
    outcomes = iter(spread(run_task, runs, executor, progress, workers))
    results = []
    for task in tasks:
        mine = list(islice(outcomes, common.replications))
        if any(_usable(outcome, task) for outcome in mine):
            results.append(_result(task, mine))
    if not results:
        raise KeyboardInterrupt
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


def default_jobs(workload: Workload) -> int:
    """A million, or more where a million would hardly fill the system."""
    return min(max(DEFAULT_JOBS, math.ceil(FILLINGS * workload.total_load)), MOST_JOBS)


def _replicated(task: Task) -> list[Task]:
    """The task once for each replication, each with jobs of its own."""
    return [replace(task, source=task.source.replication(r)) for r in range(task.settings.replications)]


def _check_load(workload: Workload, cores: float) -> None:
    """Refuse work that no policy can keep up with; what one policy cannot do, its run will show."""
    try:
        check_cores(workload, cores)
    except InfeasibleError as error:
        hint = f"{error.hint}, or pass --allow-unstable (allow_unstable=True)"
        raise InfeasibleError(error.problem, hint) from None


def _check_numbers(workload: Workload, cores: float, jobs: int) -> None:
    """Refuse a run so long that its clock cannot time a job, and times and costs without squares."""
    length = jobs / workload.total_rate
    fastest = [float(s(min(cores, float(s.peak)))) for s in workload.speedups]
    services = float(workload.rates @ (workload.mean_sizes / fastest)) / workload.total_rate
    if not length * CLOCK < services:
        raise UnsupportedError(
            f"at a load of {workload.load(cores):.2g} {jobs} jobs take {length / services:.2g} times as long "
            "as one, beyond the digits of a clock",
            "use a higher load, or fewer jobs; `malleable bound` has an answer at any load",
        )
    costs = workload.holding_costs
    longest = max(length, float(workload.mean_sizes.max()), float(workload.rates.max()))
    if not (min(float(costs.min()), 1.0) * services > TINY and max(float(costs.max()), 1.0) * longest < HUGE):
        raise UnsupportedError(
            f"times from {services:.2g} to {longest:.2g} and holding costs from {costs.min():.4g} to "
            f"{costs.max():.4g} leave no room for a variance",
            "choose other units of time and cost",
        )


def _task(
    workload: Workload | str | Path, cores: float, policy: Any, load: float | None, settings: Settings
) -> Task:
    """Check everything before anything runs."""
    n = checked_cores(cores)
    if n != math.floor(n):
        raise ParameterError(f"the simulator needs a whole number of cores, got {cores!r}")
    described = (workload if isinstance(workload, Workload) else load_workload(workload)).at(n, load)
    if settings.jobs is None and settings.precision is None:
        settings = replace(settings, jobs=default_jobs(described))
    _check_statistics(settings)
    if not settings.allow_unstable:
        _check_load(described, n)
    _check_numbers(described, n, settings.most_jobs)
    chosen = Policy.of(policy)
    name = label(policy, chosen)
    with naming(chosen, name):
        program(chosen, described, n)
    return Task(described, n, chosen, name, settings, Drawn(settings.seed))


def _check_statistics(settings: Settings) -> None:
    """See that the summary will not refuse what the run has yet to find."""
    try:
        checked_confidence(settings.confidence)
    except ParameterError:
        problem = f"confidence must lie between 0 and 1, got {settings.confidence!r}"
        raise ParameterError(problem, "0.95 means intervals of 95 %") from None
    kept = recorded(settings.most_jobs)
    if settings.warmup is not None and settings.warmup >= kept:
        problem = f"a warm-up of {settings.warmup} jobs leaves nothing of a run of {kept} jobs"
        raise ParameterError(problem, "run more jobs, or leave out fewer")
