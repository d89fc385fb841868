"""What `allocate` and the live scheduler give jobs: what the policy proposes, checked and made legal.

On machines that demand more than the paper's it is the stage of the simulator, once: the same functions as in
the job kernel (`engine.legal_widths`), asked about one moment. Jobs that hold cores and cannot move keep
them, the policy divides the others, and what it proposes becomes allowed widths.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Allocation
from malleable.engine.enforcement import enforce, proposal
from malleable.engine.legal_widths import legalise, set_aside
from malleable.engine.rule_interface import HELD, TOLERANCE
from malleable.engine.width_table import encode_limits
from malleable.errors import JobsError
from malleable.model import ConditionWarning
from malleable.model.memoization import memoized
from malleable.policies.base.job_rule import JobRule, a_class_each, job_rows
from malleable.policies.base.run_rule import load_rule, run_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Policy
    from malleable.engine.rule_interface import JobProgram
    from malleable.model import JobType, Workload
    from malleable.model.jobs import Jobs

_stage: list[Any] = [set_aside, legalise]
"""The two functions of the stage: interpreted, until their machine code is loaded."""


def legal_allocation(
    policy: Policy,
    jobs: Jobs,
    cores: float,
    *,
    integer: bool = False,
    calm: FloatArray | None = None,
    kept: FloatArray | None = None,
    machine: float | None = None,
) -> Allocation:
    """Cores for each job, allowed by its class or its own limits; the price is the policy's.

    `calm` says for how much longer each job is quiet after its last resize, `kept` the width that it chose
    when it started; where they are not given, no job is quiet and jobs have chosen what they hold. With
    `machine`, the number of cores that there are when none is missing, the policy is prepared for the whole
    machine, whatever is free now; where jobs are not plain, its rule is run as the simulator runs it.
    """
    if jobs.workload.plain and jobs.own_types is None:
        answer = policy.allocate_part(jobs, cores, cores if machine is None else machine, integer=integer)
        widths = enforce(proposal(answer), len(jobs), cores, integer=integer, sharing=policy.sharing)
        return Allocation(widths, answer.price)
    workload, index = jobs.workload, jobs.class_index
    if jobs.own_types is not None:
        _check_widths(jobs, jobs.own_types, cores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            workload, index = a_class_each(jobs)
        jobs = replace(jobs, workload=workload, class_index=index, own_speedups=None, own_types=None)
    limits = _limits(workload, cores if machine is None else machine)
    order, rows = jobs.order, job_rows(jobs, index)
    places = np.zeros(len(jobs), dtype=np.int64)
    pinned, out = np.zeros(len(jobs)), np.zeros(len(jobs))
    quiet = np.zeros(len(jobs)) if calm is None else calm[order]
    chosen = rows[:, HELD].copy() if kept is None else kept[order]
    movable, free = _stage[0](rows, quiet, 0.0, cores, limits, places, pinned)
    out[order] = np.where(pinned == 1.0, rows[:, HELD], 0.0)
    if movable == 0 or free < 1.0 - TOLERANCE:
        return Allocation(out, None)
    asked = jobs if policy.sees_all else jobs.only(order[places[:movable]])
    available = cores if policy.sees_all else free
    if machine is None:
        answer = policy.allocate_part(asked, available, cores, integer=integer)
    else:
        answer = _simulated(policy, asked, available, machine)
    widths = enforce(proposal(answer), len(asked), available, integer=integer, sharing=policy.sharing)
    part = np.array(widths[order[places[:movable]]] if policy.sees_all else widths, dtype=float)
    _stage[1](rows, places, movable, chosen, free, limits, part)
    out[order[places[:movable]]] = part
    # Whole cores were asked of the policy; what jobs hold that cannot move may be anything.
    return Allocation(enforce(out, len(jobs), cores), answer.price)


def _check_widths(jobs: Jobs, types: Sequence[JobType], cores: float) -> None:
    """Refuse jobs whose own widths are all beyond the cores there are, by name."""
    for job, one in zip(jobs.ids, types, strict=True):
        least = one.allowed_widths.least
        if least > cores:
            raise JobsError(
                f"job {job!r} needs at least {least} cores, and there are {cores:g}",
                "give more cores, or allow narrower widths",
            )


@memoized
def _limits(workload: Workload, cores: float) -> FloatArray:
    return encode_limits(workload.job_types, cores)


def load_machine_code(policy: Policy, workload: Workload, cores: float, *, integer: bool = False) -> None:
    """Load all that later decisions about many jobs run, so that none of them waits for the compiler."""
    if workload.plain:
        if isinstance(policy, JobRule):
            load_rule(policy.decision(workload, cores, integer=integer).rule)
        return
    program = _program(policy, workload, cores)
    if program is not None:
        load_rule(program.rule)
    from malleable.engine.compiling import can_compile  # noqa: PLC0415 - loads numba

    if can_compile():
        from malleable.engine.compiled_stage import compiled_stage  # noqa: PLC0415 - ditto

        _stage[:] = compiled_stage()


def _simulated(policy: Policy, jobs: Jobs, cores: float, machine: float) -> Allocation:
    """What the policy's program for the simulator proposes; one without a program is asked itself."""
    program = _program(policy, jobs.workload, machine)
    if program is None:
        return policy.allocate_part(jobs, cores, machine)
    rows, table, widths = job_rows(jobs, jobs.class_index), program.table.copy(), np.zeros(len(jobs))
    run_rule(program.rule, rows, cores, table, widths)
    out = np.empty(len(jobs))
    out[jobs.order] = widths
    return Allocation(out, None)


@memoized
def _program(policy: Policy, workload: Workload, machine: float) -> JobProgram | None:
    return policy.job_program(workload, machine)
