"""Simulations as cells: policies on the same jobs, to the precision of an effort, as plain numbers."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from malleable.engine.engines import AUTO, DEFAULT_ENGINE, GPU_ENGINE, known_engine
from malleable.model import Workload, paper_workload
from malleable.simulation import compare
from malleable.simulation.engine_choice import MOST_CORES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from malleable.paper.contracts import Effort
    from malleable.results import Comparison

ENGINE_VARIABLE = "MALLEABLE_PAPER_ENGINE"
"""What simulates the cells; in the environment, since it is no part of what a cell is."""
GROWTH_LIMIT = 8.0
"""By how much a run that was too short is lengthened at most."""

PAPERS = ("wham", "equi", "greedy")
"""The policies of the paper's figures."""
NARROW = 1e-4
"""Relative half-width of costs at full effort on a GPU."""
NARROW_JOBS, NARROW_MOST = 1 << 28, 1 << 36
"""Jobs that such a run begins with, and at most."""


class Inline(Executor):
    """Runs a task where it is submitted: cells are spread already."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it now."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def simulated_by(engine: str) -> Iterator[None]:
    """Have cells simulated by this engine, in all processes that are started meanwhile."""
    known_engine(engine)
    before = os.environ.get(ENGINE_VARIABLE)
    os.environ[ENGINE_VARIABLE] = engine
    try:
        yield
    finally:
        if before is None:
            del os.environ[ENGINE_VARIABLE]
        else:
            os.environ[ENGINE_VARIABLE] = before


def on_gpu() -> bool:
    """Whether class rules are simulated on a GPU: by the engine named, and whether there is one."""
    engine = os.environ.get(ENGINE_VARIABLE, DEFAULT_ENGINE)
    return engine == GPU_ENGINE or (engine == AUTO and _there_is_a_gpu())


@functools.cache
def _there_is_a_gpu() -> bool:
    """Asked in a process of its own: one that has talked to CUDA can fork no workers that do."""
    asked = "import sys; from malleable.engine.gpu.availability import why_not; sys.exit(bool(why_not()))"
    told = subprocess.run([sys.executable, "-c", asked], check=False, capture_output=True)  # noqa: S603
    return told.returncode == 0


def described(workload: str | Mapping[str, Any], cores: float, load: float | None) -> Workload:
    """A workload from a cell's arguments: `paper`, or a workload document."""
    if workload == "paper":
        return paper_workload(int(cores), 0.25 if load is None else load)
    if isinstance(workload, str):
        raise TypeError(f"cells know the workload 'paper' and documents, not {workload!r}")
    return Workload.from_dict(dict(workload)).at(cores, load)


def effort_arguments(effort: Effort) -> dict[str, Any]:
    """The arguments of `compared` that an effort decides."""
    return {"jobs": effort.jobs, "precision": effort.precision, "most_jobs": effort.most_jobs}


def narrow_arguments(effort: Effort, cores: float) -> dict[str, Any]:
    """The same, with intervals as narrow as a GPU makes them at full effort, if there is one.

    On more cores than a GPU simulates the CPU does, with as narrow intervals: there jobs hardly depend on one
    another, and fewer of them will do.
    """
    if effort.name != "full" or not on_gpu():
        return effort_arguments(effort)
    first = NARROW_JOBS if cores <= MOST_CORES else effort.jobs
    return {"jobs": first, "precision": NARROW, "most_jobs": NARROW_MOST}


def compared(
    policies: Sequence[str],
    cores: float,
    load: float | None = 0.25,
    *,
    workload: str | Mapping[str, Any] = "paper",
    jobs: int,
    precision: float | None = None,
    most_jobs: int | None = None,
    seed: int = 1,
    widths: bool = False,
    allow_unstable: bool = False,
    sizes: str = "known",
) -> dict[str, Any]:
    """Policies on the same jobs: results by policy (as `malleable simulate --json`), and differences.

    Differences are from the first policy. A run is repeated with more jobs until all costs are known to
    `precision`, or `most_jobs` have been simulated.
    """
    made = described(workload, cores, load)
    while True:
        found = compare(
            made, cores, list(policies), jobs=jobs, seed=seed, widths=widths, sizes=sizes,
            allow_unstable=allow_unstable, engine=os.environ.get(ENGINE_VARIABLE, DEFAULT_ENGINE),
            executor=Inline(),
        )  # fmt: skip
        worst = max(result.cost.relative_half_width for result in found.results)
        if precision is None or most_jobs is None or worst <= precision or jobs >= most_jobs:
            return plain(found)
        factor = 1.2 * (worst / precision) ** 2
        jobs = int(min(most_jobs, jobs * min(max(factor, 1.5), GROWTH_LIMIT)))


def plain(found: Comparison) -> dict[str, Any]:
    """A comparison as a cell keeps it."""
    return {
        "results": {result.policy: result.to_dict() for result in found.results},
        "differences": {difference.policy: difference.to_dict() for difference in found.differences},
    }
