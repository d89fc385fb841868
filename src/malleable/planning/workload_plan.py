"""The plan of a workload: what is asked of it, read, and put to simulations."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from malleable.catalog.spec import whole_number
from malleable.errors import ParameterError
from malleable.planning.changes import NONE, Changes
from malleable.planning.plan import Plan, check_price, planned, question, read_policies
from malleable.planning.readings import Saving, Simulated
from malleable.planning.targets import SAVING
from malleable.statistics import checked_confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from malleable.contracts import Policy
    from malleable.model import Workload
    from malleable.planning.search import Meter

FEWEST_JOBS = 1000
"""Jobs of a replication at least."""


def plan(
    workload: Workload,
    target: str | None = None,
    policy: str | Policy | Sequence[str | Policy] = "wham",
    *,
    cores: float | None = None,
    most: int | None = None,
    core_price: float | None = None,
    job_price: float | None = None,
    changes: Changes = NONE,
    confidence: float = 0.95,
    seed: int = 0,
    jobs: int | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """The fewest cores that meet a target, and what changes of the workload need; see `malleable.plan`."""
    asked = question(target, workload.class_names, core_price)
    if asked.metric == "wait":
        raise ParameterError("a workload's plan has no wait", "use response, or give a log of jobs")
    sure, first = checked_confidence(confidence), whole_number("seed", seed, 0)
    length = None if jobs is None else whole_number("jobs", jobs, FEWEST_JOBS)
    kind = Saving if asked.metric == SAVING else Simulated

    def meters(of: Workload, some: Sequence[str | Policy]) -> Iterator[Meter]:
        priced = _priced(of, core_price, job_price)
        return (kind(priced, one, asked, sure, first, length, workers, progress) for one in some)

    def again(of: Workload, name: str) -> Meter:
        return next(meters(of, [name]))

    return planned(
        workload.name,
        asked,
        meters(workload, read_policies(policy)),
        most=None if most is None else whole_number("most", most, 1),
        present=None if cores is None else math.floor(cores),
        core_price=core_price,
        changes=[(what, partial(again, of)) for what, of in changes.of_workload(workload)],
    )


def _priced(workload: Workload, core_price: float | None, job_price: float | None) -> Workload:
    """The workload whose jobs cost what they are said to cost."""
    check_price("job-price", job_price)
    if job_price is None:
        return workload
    if core_price is None:
        raise ParameterError("a job-price is weighed against a core-price", "give --core-price as well")
    return replace(workload, classes=tuple(replace(one, holding_cost=job_price) for one in workload.classes))


def refuse_for_workloads(options: Mapping[str, Any]) -> None:
    """Refuse what is asked of logs only."""
    for name, value in options.items():
        if value is not None:
            raise ParameterError(
                f"{name.replace('_', '-')} is for logs, and this is a workload", "leave it out"
            )
