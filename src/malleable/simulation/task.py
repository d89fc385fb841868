"""One run, complete in itself, and all that is checked before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.engine.enforcement import blame_policy, label, pool_loads
from malleable.engine.engines import DEFAULT_ENGINE, known_engine
from malleable.errors import ParameterError
from malleable.model import Workload, checked_cores
from malleable.policies.base.asking import simulated
from malleable.simulation.checks import check_load, check_numbers, check_statistics
from malleable.simulation.settings import Settings, default_jobs
from malleable.sources import Drawn, Source
from malleable.statistics.run_length import relaxation_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    pool_loads: tuple[float, ...] = ()
    """Loads of the classes' own pools, where the policy has any."""
    relaxation: float = 0.0
    """Jobs in which the slowest of the policies that are compared forgets; see `statistics.run_length`."""


def checked_task(
    workload: Workload, cores: float, policy: Any, load: float | None, settings: Settings
) -> Task:
    """Check everything before anything runs."""
    known_engine(settings.engine)
    n = checked_cores(cores)
    if n != math.floor(n):
        raise ParameterError(f"the simulator needs a whole number of cores, got {cores!r}")
    described = workload.at(n, load)
    if settings.jobs is None and settings.precision is None:
        settings = replace(settings, jobs=default_jobs(described))
    check_statistics(settings)
    if settings.capacity is not None:
        settings.capacity.check_on(n)
        described.check_widths(settings.capacity.most_cores(n))
    if not settings.allow_unstable:
        check_load(described, n, settings.mean_cores(n))
    check_numbers(described, n, settings.most_jobs)
    chosen = Policy.of(policy)
    name = label(policy, chosen)
    chosen = chosen.knowing(sizes=settings.sizes == "known")
    with blame_policy(chosen, name):
        busy = pool_loads(simulated(chosen, described, n, plain=settings.plain), described, n)
    source, slowness = Drawn(settings.seed), relaxation_jobs(described, n, busy)
    return Task(described, n, chosen, name, settings, source, settings.engine, busy, slowness)


def compared(tasks: Sequence[Task]) -> list[Task]:
    """Tasks of one setting, all as slow as the slowest: paired replications must be equally long."""
    slowest = max(task.relaxation for task in tasks)
    return [replace(task, relaxation=slowest) for task in tasks]


def replicated(task: Task) -> list[Task]:
    """The task once for each replication, each with jobs of its own."""
    return [replace(task, source=task.source.replication(r)) for r in range(task.settings.replications)]
