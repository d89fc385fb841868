"""The questions people ask, one function each; workloads and policies may be given by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Allocation, Policy
from malleable.engine.enforcement import enforce, label, naming, proposal
from malleable.errors import JobsError
from malleable.model import Workload, checked_cores, load_workload, workload_listing
from malleable.model.jobs import Jobs

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
    from malleable.theory import relaxed  # noqa: PLC0415 - keeps `allocate` light

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
    """Cores for each job present, in the order of the jobs, under `policy`.

    `Jobs` bring their own workload, whose classes must be those of `workload`. What the policy proposes is
    checked as the simulator does; it is not asked about nobody.
    """
    cores = checked_cores(cores)
    present = _present(_workload(workload, cores, None), jobs)
    chosen = Policy.of(policy)
    if len(present) == 0:
        return Allocation(np.zeros(0), None)
    with naming(chosen, label(policy, chosen)):
        answer = chosen.allocate(present, cores, integer=integer)
        return Allocation(enforce(proposal(answer), len(present), cores, integer=integer), answer.price)


def _present(workload: Workload, jobs: Jobs | Iterable[Mapping[str, Any]]) -> Jobs:
    if not isinstance(jobs, Jobs):
        return Jobs.from_rows(workload, jobs)
    if jobs.workload.class_names != workload.class_names:
        raise JobsError(
            f"the jobs are of the classes {', '.join(jobs.workload.class_names):.60}, "
            f"those of {workload.name} are {', '.join(workload.class_names):.60}",
            "make the jobs from this workload",
        )
    return jobs


def mean_field(
    workload: Workload | str | Path,
    cores: float,
    load: float | None = None,
    policy: Policy | str = "wham",
    **options: Any,
) -> MeanField:
    """Fixed point, stability, attractor study and 1/n correction of a class rule (see `theory.meanfield`)."""
    from malleable.theory import meanfield  # noqa: PLC0415 - keeps `allocate` light

    cores = checked_cores(cores)
    return meanfield.mean_field(_workload(workload, cores, load), cores, Policy.of(policy), **options)


def listing(family: str) -> list[dict[str, Any]]:
    """What there is to choose from in a family: name, summary, and parameters or classes."""
    from malleable.catalog import listing as kinds  # noqa: PLC0415 - ditto

    return workload_listing() if family == "workloads" else kinds.listing(family)
