"""One run, complete in itself, and all that is checked before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from malleable.contracts import Policy
from malleable.engine.enforcement import blame_policy, label
from malleable.engine.engines import DEFAULT_ENGINE, known_engine
from malleable.errors import ParameterError
from malleable.model import Workload, checked_cores
from malleable.simulation.checks import check_load, check_numbers, check_statistics
from malleable.simulation.program import program
from malleable.simulation.settings import Settings, default_jobs
from malleable.sources import Drawn, Source


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
    with blame_policy(chosen, name):
        program(chosen, described, n, plain=settings.plain)
    return Task(described, n, chosen, name, settings, Drawn(settings.seed), settings.engine)


def replicated(task: Task) -> list[Task]:
    """The task once for each replication, each with jobs of its own."""
    return [replace(task, source=task.source.replication(r)) for r in range(task.settings.replications)]
