"""Given jobs and a policy, made ready for the engine.

Jobs may have weights of their own. A rule on class counts then sees a class for each class and weight: jobs
of one class and one weight are alike to every policy, so nothing is lost. It takes time in proportion to the
number of classes, so beyond `MOST_GROUPS` of them the policy's rule on single jobs runs in its place.

Policies of batch systems run jobs on the cores that these asked for, where that is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.contracts import Need
from malleable.engine.rule_interface import COUNTS
from malleable.errors import UnsupportedError
from malleable.model import Workload
from malleable.policies.base.asking import program_of, simulated
from malleable.policies.base.batch_rule import BatchRule
from malleable.sources import Chunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray, Policy
    from malleable.engine.rule_interface import Program
    from malleable.model.job_list import JobList

MOST_GROUPS = 64


class Ready(NamedTuple):
    """Given jobs as an engine takes them, and the program to run them under."""

    workload: Workload
    program: Program
    jobs: Chunk
    origin: NDArray[np.int64]
    """For each class of the workload, the class of the list that it is a part of."""


def by_weight(jobs: JobList) -> tuple[JobList, NDArray[np.int64]]:
    """The same jobs without weights of their own, in classes of one weight each; and where these come from.

    The arrival rate of a class is split among its parts by their numbers of jobs.
    """
    pairs = np.column_stack([jobs.classes.astype(float), jobs.weight])
    distinct, place, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    origin = distinct[:, 0].astype(np.int64)
    of_class = np.bincount(jobs.classes, minlength=len(jobs.workload.classes))
    classes = []
    for number, (i, weight, jobs_of) in enumerate(zip(origin, distinct[:, 1], count, strict=True)):
        whole = jobs.workload.classes[i]
        parts = int((origin[:number] == i).sum())
        classes.append(
            replace(
                whole,
                name=f"{whole.name}-w{parts + 1}",
                holding_cost=float(weight),
                arrivals=whole.arrivals.faster(float(jobs_of / of_class[i])),
            )
        )
    workload = Workload.of_known(jobs.workload.name, tuple(classes))
    return replace(jobs, workload=workload, classes=place.ravel(), weights=None), origin


def ready(policy: Policy, jobs: JobList, cores: float) -> Ready:
    """What to run for a policy on given jobs: every job counts with its own weight."""
    origin = np.arange(len(jobs.workload.classes))
    chunk = Chunk(jobs.times, jobs.classes, jobs.sizes)
    if isinstance(policy, BatchRule) and jobs.cores is not None:
        estimates = np.full(len(jobs), np.nan) if jobs.estimates is None else jobs.estimates
        return Ready(
            jobs.workload, policy.requested(jobs.workload, cores, jobs.cores, estimates), chunk, origin
        )
    made = simulated(policy, jobs.workload, cores)
    if jobs.weights is None or np.array_equal(jobs.weight, _class_weights(jobs)):
        return Ready(jobs.workload, made, chunk, origin)
    if made.sees != COUNTS:
        return Ready(jobs.workload, made, chunk._replace(weights=jobs.weights), origin)
    parts, origin = by_weight(jobs)
    if len(origin) <= MOST_GROUPS:
        made = simulated(policy, parts.workload, cores)
        return Ready(parts.workload, made, Chunk(parts.times, parts.classes, parts.sizes), origin)
    single = program_of(policy, jobs.workload, cores, Need(True, policy.whole_cores, weighed=True))
    if single is None or single.sees == COUNTS:
        raise UnsupportedError(
            f"the policy counts jobs by class, and the jobs have {len(origin)} classes and weights",
            f"round the weights, so that there are at most {MOST_GROUPS}, or leave them out",
        )
    origin = np.arange(len(jobs.workload.classes))
    return Ready(jobs.workload, single, chunk._replace(weights=jobs.weights), origin)


def _class_weights(jobs: JobList) -> FloatArray:
    return jobs.workload.holding_costs[jobs.classes]
