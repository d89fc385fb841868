"""The plan of a workload: what is asked of it, read, and put to simulations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from malleable.catalog import split_policies
from malleable.catalog.spec import whole_number
from malleable.contracts import Policy
from malleable.errors import ParameterError
from malleable.planning import changes
from malleable.planning.plan import Plan, planned, question
from malleable.planning.readings import Saving, Simulated
from malleable.planning.targets import SAVING, read_share
from malleable.statistics import checked_confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    growth: float | str | None = None,
    add: Workload | None = None,
    halve: str | None = None,
    malleable: float | str | None = None,
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

    return planned(
        workload.name,
        asked,
        meters(workload, read_policies(policy)),
        most=None if most is None else whole_number("most", most, 1),
        present=None if cores is None else math.floor(cores),
        core_price=core_price,
        changes=[
            (what, lambda name, of=of: next(meters(of, [name])))
            for what, of in _changes(workload, growth, add, halve, malleable)
        ],
    )


def read_policies(policy: str | Policy | Sequence[str | Policy]) -> list[str | Policy]:
    """One policy or several, checked: a name that is wrong is told before anything runs."""
    listed = split_policies(policy) if isinstance(policy, str) else policy
    found = [listed] if isinstance(listed, Policy) else list(listed)
    for one in found:
        Policy.of(one)
    return found


def _priced(workload: Workload, core_price: float | None, job_price: float | None) -> Workload:
    """The workload whose jobs cost what they are said to cost."""
    if job_price is None:
        return workload
    if not 0.0 < job_price < math.inf:
        raise ParameterError(
            f"the job-price must be positive and finite, got {job_price:g}", "for example --job-price 1"
        )
    if core_price is None:
        raise ParameterError("a job-price is weighed against a core-price", "give --core-price as well")
    return replace(workload, classes=tuple(replace(one, holding_cost=job_price) for one in workload.classes))


def _changes(
    workload: Workload,
    growth: float | str | None,
    add: Workload | None,
    halve: str | None,
    malleable: float | str | None,
) -> list[tuple[str, Workload]]:
    """What is asked to change, in words and as a workload."""
    found = []
    if growth is not None:
        share = read_share(growth, "growth")
        more = "more" if share > 0.0 else "fewer"
        found.append((f"{100.0 * abs(share):.4g} % {more} arrivals", changes.grown(workload, share)))
    if add is not None:
        found.append((f"also {', '.join(add.class_names)}", changes.with_classes(workload, add)))
    if halve is not None:
        found.append((f"half the sequential part of {halve}", changes.halved(workload, halve)))
    if malleable is not None:
        share = read_share(malleable, "malleable")
        if not 0.0 < share <= 1.0:
            raise ParameterError(
                f"malleable must be a share of the jobs, got {malleable}", "write 20% or 0.2"
            )
        what = f"{100.0 * share:.4g} % of the jobs that cannot be resized made malleable"
        found.append((what, changes.made_malleable(workload, share)))
    return found
