"""The one way to ask a policy: its program, for a whole run or for one moment.

A policy answers one question, `program(workload, cores, need)`. A run asks it once and the engine runs the
rule (`simulated`). One moment, for `allocate` and the live scheduler, runs the same rule once about the jobs
present (`allocation`): on a part of the machine that the program is for, on whole cores, and about jobs that
bring speedups of their own, which are then of classes of their own. On machines that demand more than the
paper's it is the stage of the simulator, once (`legal_allocation`): jobs that hold cores and cannot move keep
them, the policy divides the others, and what it proposes becomes allowed widths.

A policy that gives only `allocate` is asked that, at every event of a run. One that gives both decides with
its `allocate` at a moment, and wherever its rule on class counts is not enough.
"""

from __future__ import annotations

import inspect
import math
import warnings
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import ANY, Allocation, Need, Own, Policy
from malleable.engine.enforcement import enforce, one_each, pool_widths, proposal
from malleable.engine.legal_widths import legalise, set_aside
from malleable.engine.rule_interface import (
    AGE,
    CLASS,
    COLUMNS,
    COUNTS,
    HELD,
    IDENTITY,
    POOLS,
    REMAINING,
    RESTARTS,
    SIZE,
    TOLERANCE,
    WEIGHT,
    Moment,
    Program,
)
from malleable.engine.width_table import encode_limits
from malleable.errors import JobsError, PolicyError
from malleable.model import ConditionWarning, Workload, checked_cores
from malleable.model.jobs import Jobs
from malleable.model.memoization import memoized
from malleable.policies.base.run_rule import is_trusted, load_rule, run_rule
from malleable.policies.rules.class_rules import job_by_job
from malleable.policies.rules.fixed_widths import fixed_width, pools_table
from malleable.policies.rules.market import class_rates, weight_unit
from malleable.policies.rules.tolerances import DUST, TIGHT
from malleable.theory.market import cost_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.model import JobType
    from malleable.model.jobs import IntArray

# --- the program --------------------------------------------------------------------------------------------


def program_of(policy: Policy, workload: Workload, cores: float, need: Need = ANY) -> Program | None:
    """The policy's program; None where it gives only `allocate`."""
    if _takes_needs(type(policy)):
        return policy.program(workload, cores, need)
    return policy.program(workload, cores)


def on_jobs(policy: Policy, made: Program, workload: Workload, cores: float) -> Program:
    """The program as one on single jobs."""
    if made.sees != COUNTS:
        return made
    classes = len(workload.classes)
    if made.discipline == POOLS:
        table = pools_table(pool_widths(made, cores, classes), np.array(made.slots, dtype=float))
        return Program(fixed_width, table, sees_all=True)
    rule = job_by_job(made.rule, made.discipline, classes)
    return Program(rule, made.table, sharing=policy.sharing, sees_all=policy.sees_all)


@cache
def _takes_needs(kind: type[Policy]) -> bool:
    """Whether the program of these policies depends on what is needed: those of users need not say."""
    return len(inspect.signature(kind.program).parameters) > 3


def decides_alone(policy: Policy) -> bool:
    """Whether it has an `allocate` of its own, which is then what decides at a moment."""
    return type(policy).allocate is not Policy.allocate


def simulated(policy: Policy, workload: Workload, cores: float, *, plain: bool = True) -> Program:
    """What the simulator runs: the policy's program, or one that asks its `allocate` at every event.

    On a machine that demands more of jobs than the paper's (`plain` is false, or the workload says so) it is
    a rule on single jobs.
    """
    by_job = not (plain and workload.plain)
    made = program_of(policy, workload, cores, Need(by_job, policy.whole_cores))
    if made is None or (by_job and made.sees == COUNTS and decides_alone(policy)):
        return asked_at_each_event(policy, workload)
    return on_jobs(policy, made, workload, cores) if by_job else made


def asked_at_each_event(policy: Policy, workload: Workload, *, integer: bool = False) -> Program:
    """A job rule that calls `policy.allocate`, for whole cores if asked to; jobs go by their numbers."""

    def rule(jobs: FloatArray, n: float, _table: FloatArray, out: FloatArray) -> None:
        present = Jobs(
            workload=workload,
            class_index=jobs[:, CLASS].astype(np.intp),
            remaining=np.maximum(jobs[:, REMAINING], 0.0),
            weight=jobs[:, WEIGHT].copy(),
            age=jobs[:, AGE].copy(),
            held=jobs[:, HELD].copy(),
            size=jobs[:, SIZE].copy(),
            restarts=jobs[:, RESTARTS].copy(),
            ids=tuple(map(str, jobs[:, IDENTITY].astype(np.intp).tolist())),
        )
        out[:] = one_each(proposal(policy.allocate(present, n, integer=integer)), len(out))

    rule.only_python = "it gives no rule, only allocate"  # type: ignore[attr-defined]
    return Program(rule, np.zeros(1), sharing=policy.sharing, sees_all=policy.sees_all)


# --- one moment ---------------------------------------------------------------------------------------------


def allocation(
    policy: Policy,
    jobs: Jobs,
    cores: float,
    machine: float | None = None,
    *,
    integer: bool = False,
    own: Own | None = None,
) -> Allocation:
    """What the policy gives the jobs present on some cores, planned for all cores of the `machine`.

    `own` says what the classes of the jobs really are, if they were made for what jobs brought.
    """
    if decides_alone(policy):
        return policy.allocate(jobs, cores, integer=integer)
    return by_program(policy, jobs, cores, cores if machine is None else machine, integer=integer, own=own)


def by_program(
    policy: Policy, jobs: Jobs, cores: float, machine: float, *, integer: bool = False, own: Own | None = None
) -> Allocation:
    """Run the policy's rule once.

    With `integer`, widths that are not whole are rounded down and the cores that this frees are given back
    one each, to the largest fractions first, then to the earliest; or as the policy says.
    """
    cores, machine = usable(cores, integer=integer), usable(machine, integer=integer)
    if len(jobs) == 0:
        return Allocation(np.zeros(0), None)
    workload, index = jobs.workload, jobs.class_index
    if own is not None and not policy.uses_speedups:
        workload, index, own = own.workload, np.array(own.of_class, dtype=np.intp)[index], None
    elif policy.uses_speedups and jobs.own_speedups is not None:
        workload, index, own = a_class_each(jobs)
    program = _prepared(
        policy, workload, machine, _need(policy, integer=integer, weighed=jobs.own_weights, own=own)
    )
    rows, widths = job_rows(jobs, index), np.zeros(len(jobs))
    unit = _unit(rows, workload, program.weighs, own_weights=jobs.own_weights) if program.weighs else 1.0
    table = program.table.copy()  # rules may leave numbers there, and the next call is to start from the same
    run_rule(program.rule, rows, cores, table, widths)
    price = program.price(rows, table, widths) if program.price else None
    if not is_trusted(program.rule):
        widths = enforce(widths, len(jobs), cores)
    if integer and not program.whole:
        to_whole = program.to_whole or nearest_whole
        widths = to_whole(Moment(jobs, rows, cores, table, widths))
    out = np.empty(len(jobs))
    out[jobs.order] = widths
    if program.weighs and price and not (integer or program.whole):
        _clear_to_the_last_digit(out, cores)
    return Allocation(out, None if price is None else price * unit)


def _need(policy: Policy, *, integer: bool, weighed: bool = False, own: Own | None = None) -> Need:
    return Need(True, integer or policy.whole_cores, weighed, own)


@memoized
def _prepared(policy: Policy, workload: Workload, cores: float, need: Need) -> Program:
    made = program_of(policy, workload, cores, need)
    if made is None:
        raise PolicyError("the policy has no program", "give it a method `program`, or `allocate` alone")
    made = on_jobs(policy, made, workload, cores)
    made.table.setflags(write=False)
    return made


def _unit(rows: FloatArray, workload: Workload, weighs: str, *, own_weights: bool) -> float:
    """The unit of prices, which leaves room for them; a table has the weights of its classes in that unit.

    Weights that jobs bring have a unit of their own, in which they are written into the rows.
    """
    standard = weight_unit(workload, weighs)
    if not own_weights or "c" not in weighs:
        return standard
    unit = cost_unit(rows[:, WEIGHT] * class_rates(workload, weighs)[rows[:, CLASS].astype(np.intp)])
    if unit != standard:
        rows[:, WEIGHT] *= standard / unit
    return unit


def _clear_to_the_last_digit(widths: FloatArray, cores: float) -> None:
    """A market clears but for rounding; that goes to the widest job."""
    missing = cores - float(widths.sum())
    if 0.0 < abs(missing) <= 2.0 * TIGHT * cores:
        widths[np.argmax(widths)] += missing


def usable(cores: float, *, integer: bool) -> float:
    """The checked number of cores; a fraction of one is of no use to jobs on whole cores."""
    cores = checked_cores(cores)
    return float(math.floor(cores)) if integer else cores


def job_rows(jobs: Jobs, class_index: IntArray) -> FloatArray:
    """The job array that rules read, earliest arrival first."""
    order = jobs.order
    rows = np.zeros((len(jobs), COLUMNS))
    rows[:, CLASS] = class_index[order]
    rows[:, REMAINING], rows[:, SIZE] = jobs.remaining[order], jobs.size[order]
    rows[:, AGE], rows[:, WEIGHT], rows[:, HELD] = jobs.age[order], jobs.weight[order], jobs.held[order]
    rows[:, RESTARTS], rows[:, IDENTITY] = jobs.restarts[order], np.arange(len(jobs))
    return rows


def nearest_whole(moment: Moment) -> FloatArray:
    """The nearest whole widths of the same total, by largest remainder."""
    widths = moment.widths
    down = np.floor(widths + DUST)
    spare = int(math.floor(widths.sum() + DUST) - down.sum())
    if spare > 0:
        down[np.argsort(down - widths, kind="stable")[:spare]] += 1.0
    return down


def a_class_each(jobs: Jobs) -> tuple[Workload, IntArray, Own]:
    """The workload in which jobs of different types are of different classes, and each job's class."""
    classes, types = jobs.workload.classes, jobs.own_types or ()
    kinds = list(zip(jobs.class_index.tolist(), types, strict=True))
    first: dict[Any, int] = {}
    try:
        index = [first.setdefault(kind, len(first)) for kind in kinds]
    except TypeError:  # a user's speedup may not hash
        first, index = {row: row for row in range(len(kinds))}, list(range(len(kinds)))
        distinct = kinds
    else:
        distinct = list(first)
    rows = tuple(classes[i].of_type(one, str(row)) for row, (i, one) in enumerate(distinct))
    made = Workload.of_known(jobs.workload.name, rows)
    return made, np.array(index, dtype=np.intp), Own(jobs.workload, tuple(i for i, _ in distinct))


# --- one moment on any machine ------------------------------------------------------------------------------

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
        answer = allocation(policy, jobs, cores, machine, integer=integer)
        widths = enforce(proposal(answer), len(jobs), cores, integer=integer, sharing=policy.sharing)
        return Allocation(widths, answer.price)
    workload, index, own = jobs.workload, jobs.class_index, None
    if jobs.own_types is not None:
        _check_widths(jobs, jobs.own_types, cores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            workload, index, own = a_class_each(jobs)
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
    answer = allocation(
        policy, asked, available, cores if machine is None else machine, integer=integer, own=own
    )
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


def period_of(policy: Policy, workload: Workload, cores: float, *, integer: bool = False) -> float:
    """The time between two rounds of a policy that decides in rounds; 0 for one that always does."""
    return (
        0.0
        if decides_alone(policy)
        else _prepared(policy, workload, cores, _need(policy, integer=integer)).period
    )


def load_machine_code(policy: Policy, workload: Workload, cores: float, *, integer: bool = False) -> None:
    """Load all that later decisions about many jobs run, so that none of them waits for the compiler."""
    if not decides_alone(policy):
        load_rule(_prepared(policy, workload, cores, _need(policy, integer=integer)).rule)
    if workload.plain:
        return
    from malleable.engine.compiling import can_compile, compiled_stage  # noqa: PLC0415 - loads numba

    if can_compile():
        _stage[:] = compiled_stage()
