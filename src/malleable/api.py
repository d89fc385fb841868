"""The questions people ask, one function each; workloads and policies may be given by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.contracts import Allocation, Policy
from malleable.jobs import Jobs
from malleable.model import Workload, checked_cores, load_workload
from malleable.theory import meanfield, relaxed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from malleable.theory.meanfield import MeanField
    from malleable.theory.relaxed import Bound


def _workload(source: Workload | str | Path, cores: float, load: float | None) -> Workload:
    workload = source if isinstance(source, Workload) else load_workload(source)
    return workload.at(cores, load)


def bound(workload: Workload | str | Path, cores: float, load: float | None = None) -> Bound:
    """The lower bound on the cost of any policy, and the widths, price and response times behind it."""
    cores = checked_cores(cores)
    return relaxed.bound(_workload(workload, cores, load), cores)


def allocate(
    workload: Workload | str | Path,
    jobs: Jobs | Iterable[Mapping[str, Any]],
    cores: float,
    policy: Policy | str = "wham",
    *,
    integer: bool = False,
) -> Allocation:
    """Cores for each job present, in the order of the jobs, under `policy`."""
    cores = checked_cores(cores)
    if not isinstance(jobs, Jobs):
        jobs = Jobs.from_rows(_workload(workload, cores, None), jobs)
    return Policy.of(policy).allocate(jobs, cores, integer=integer)


def mean_field(
    workload: Workload | str | Path,
    cores: float,
    load: float | None = None,
    policy: Policy | str = "wham",
    **options: Any,
) -> MeanField:
    """Fixed point, stability, attractor study and 1/n correction of a class rule (see `theory.meanfield`)."""
    cores = checked_cores(cores)
    return meanfield.mean_field(_workload(workload, cores, load), cores, Policy.of(policy), **options)
