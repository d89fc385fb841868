"""Policies on many workloads, numbers of cores and loads: costs and paired differences, and nothing more.

On a GPU settings are packed and run side by side (`engine.gpu.sweep`), so that thousands of short runs fill
it. On the CPU they run one after the other. Setting k has the jobs of seed + k; all policies see the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from malleable.engine.engines import GPU_ENGINE
from malleable.errors import ParameterError
from malleable.model import Workload
from malleable.policies.base.asking import simulated
from malleable.simulation.engine_choice import with_engine
from malleable.simulation.run_task import run_task
from malleable.simulation.settings import Settings
from malleable.simulation.task import Task, checked_task, compared
from malleable.statistics import Estimate, difference, estimate, find_warmup, shared_regression
from malleable.statistics.run_length import jobs_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from malleable.engine.records import Records
    from malleable.engine.run import Outcome

FEWEST, MOST = 32, 512
"""Replications of a setting on a GPU: a warp at least."""


@dataclass(frozen=True)
class Swept:
    """One setting of a sweep: what each policy costs, and how much more than the first, on the same jobs."""

    workload: Workload
    cores: float
    policies: tuple[str, ...]
    costs: tuple[Estimate, ...]
    """Mean holding cost per job, by policy, with 95 % intervals."""
    differences: tuple[Estimate, ...]
    """Cost less that of the first policy, paired; 0 for the first."""
    jobs: int
    """Jobs simulated for each policy."""
    device: str
    """What it ran on, unless that was a processor."""

    @property
    def load(self) -> float:
        """The system load."""
        return self.workload.load(self.cores)


def sweep(
    settings: Iterable[tuple[Workload, float]],
    policies: Sequence[Any],
    *,
    jobs: int,
    seed: int = 0,
    engine: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> list[Swept]:
    """Every policy on every setting (a workload and a number of cores), in the order of the settings."""
    if not policies:
        raise ParameterError("there is nothing to compare", "name at least one policy")
    common = Settings(jobs=jobs, engine=engine)
    chosen = [
        compared([checked_task(workload, n, p, None, replace(common, seed=seed + k)) for p in policies])
        for k, (workload, n) in enumerate(settings)
    ]
    tasks = [with_engine(_as_long_as_all(mine, jobs * len(chosen))) for mine in chosen]
    outcomes: dict[tuple[int, int], Outcome] = {}
    found: dict[int, Swept] = {}

    def keep(k: int, i: int, outcome: Outcome) -> None:
        outcomes[k, i] = outcome
        if all((k, other) in outcomes for other in range(len(policies))):
            found[k] = _swept(tasks[k], [outcomes.pop((k, other)) for other in range(len(policies))])
            if progress is not None:
                progress(len(found), len(tasks))

    _on_device([(k, i, task) for k, mine in enumerate(tasks) for i, task in enumerate(mine)], jobs, keep)
    return [found[k] for k in range(len(tasks))]


def _as_long_as_all(tasks: list[Task], jobs: int) -> list[Task]:
    """The tasks as `with_engine` shall judge them: what pays is a matter of the whole sweep."""
    return [replace(task, settings=replace(task.settings, jobs=jobs)) for task in tasks]


def _on_device(
    tasks: Sequence[tuple[int, int, Task]], jobs: int, keep: Callable[[int, int, Outcome], None]
) -> None:
    """Run those on the GPU that can run there, all at once; the others here, one after the other."""
    packed = [(k, i, task) for k, i, task in tasks if task.engine == GPU_ENGINE]
    for k, i, task in tasks:
        if task.engine != GPU_ENGINE:
            keep(k, i, run_task(replace(task, settings=replace(task.settings, jobs=jobs))))
    if not packed:
        return
    from malleable.engine.gpu import sweep as on_device  # noqa: PLC0415 - it needs CUDA

    asked = [_asked(on_device.Asked, task, jobs) for _, _, task in packed]
    on_device.sweep(asked, keep=lambda position, outcome: keep(*packed[position][:2], outcome))


def _asked(kind: Any, task: Task, jobs: int) -> Any:
    made = simulated(task.policy, task.workload, task.cores)
    count = replications(task, jobs)
    return kind(task.workload, task.cores, made, task.settings.seed, count, jobs)


def replications(task: Task, jobs: int) -> int:
    """How many share the jobs of a setting: a power of 2, each long enough to forget its empty start."""
    needed = jobs_needed(task.relaxation, task.workload.total_load)
    most = max(min(jobs / needed, MOST), 1.0) if math.isfinite(needed) else 1.0
    return max(FEWEST, 1 << int(math.log2(most)))


def _swept(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> Swept:
    """Costs and differences of the policies in one setting."""
    first, workload = tasks[0], tasks[0].workload
    runs = [outcome.runs for outcome in outcomes]
    controls = not outcomes[0].device  # A sweep on a device keeps no sizes to control for.
    costs = _costs(runs, workload, controls=controls)
    apart = [difference(mine, runs[0], workload, controls=controls) for mine in runs[1:]]
    return Swept(
        workload,
        first.cores,
        tuple(task.label for task in tasks),
        tuple(costs),
        (Estimate(0.0, 0.0, 0.0), *apart),
        outcomes[0].jobs,
        outcomes[0].device,
    )


def _costs(runs: Sequence[Sequence[Records]], workload: Workload, *, controls: bool) -> list[Estimate]:
    """Costs of the policies: by one regression for all whose warm-up ends, as in a comparison."""
    warmups = [find_warmup(mine, workload) for mine in runs]
    found = [estimate(mine, workload, w, controls=controls) for mine, w in zip(runs, warmups, strict=True)]
    settled = [i for i, warmup in enumerate(warmups) if warmup.converging]
    if len(settled) > 1:
        shared = shared_regression(runs[0], [warmups[i] for i in settled], [found[i] for i in settled])
        for i in settled:
            found[i] = estimate(runs[i], workload, shared.warmup, shared=shared, controls=controls)
    return [one.cost for one in found]
