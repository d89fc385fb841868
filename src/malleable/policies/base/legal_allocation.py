"""What `allocate` gives jobs on machines that demand more than the paper's: the stage of the simulator, once.

The same functions as in the job kernel (`engine.legal_widths`), asked about one moment: jobs that hold cores
and cannot move keep them, the policy divides the others, and what it proposes becomes allowed widths. When a
job was resized last is not known here, so quiet times play no part.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import Allocation
from malleable.engine.enforcement import enforce, proposal
from malleable.engine.legal_widths import legalise, set_aside
from malleable.engine.rule_interface import HELD, TOLERANCE
from malleable.engine.width_table import encode_limits
from malleable.errors import JobsError
from malleable.model import ConditionWarning
from malleable.policies.base.job_rule import a_class_each, job_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, IntArray, Policy
    from malleable.model import JobType
    from malleable.model.jobs import Jobs


def legal_allocation(policy: Policy, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
    """Cores for each job, allowed by its class or its own limits; the price is the policy's."""
    workload, index = jobs.workload, jobs.class_index
    if jobs.own_types is not None:
        _check_widths(jobs, jobs.own_types, cores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            workload, index = a_class_each(jobs)
        jobs = replace(jobs, workload=workload, class_index=index, own_speedups=None, own_types=None)
    limits = encode_limits(workload.job_types, cores)
    order, rows = jobs.order, job_rows(jobs, index)
    places = np.zeros(len(jobs), dtype=np.int64)
    pinned, out = np.zeros(len(jobs)), np.zeros(len(jobs))
    movable, free = set_aside(rows, np.zeros(len(jobs)), 0.0, cores, limits, places, pinned)
    out[order] = np.where(pinned == 1.0, rows[:, HELD], 0.0)
    if movable == 0 or free < 1.0 - TOLERANCE:
        return Allocation(out, None)
    part, price = _proposed(policy, jobs, cores, free, order[places[:movable]], integer=integer)
    legalise(rows, places, movable, rows[:, HELD].copy(), free, limits, part)
    out[order[places[:movable]]] = part
    # Whole cores were asked of the policy; what jobs hold that cannot move may be anything.
    return Allocation(enforce(out, len(jobs), cores), price)


def _check_widths(jobs: Jobs, types: Sequence[JobType], cores: float) -> None:
    """Refuse jobs whose own widths are all beyond the cores there are, by name."""
    for job, one in zip(jobs.ids, types, strict=True):
        least = one.allowed_widths.least
        if least > cores:
            raise JobsError(
                f"job {job!r} needs at least {least} cores, and there are {cores:g}",
                "give more cores, or allow narrower widths",
            )


def _proposed(
    policy: Policy, jobs: Jobs, cores: float, free: float, movable: IntArray, *, integer: bool
) -> tuple[FloatArray, float | None]:
    """What the policy proposes for the jobs that can move, in order of arrival."""
    asked = jobs if policy.sees_all else jobs.only(movable)
    available = cores if policy.sees_all else free
    answer = policy.allocate_part(asked, available, cores, integer=integer)
    widths = enforce(proposal(answer), len(asked), available, integer=integer, sharing=policy.sharing)
    return np.array(widths[movable] if policy.sees_all else widths, dtype=float), answer.price
