"""The one check of what a policy proposes, and the one wording of what is wrong with it.

`check` is plain Python: compiled into the job kernel, and run as it is by `malleable.allocate`. A proposal is
sane if it has one number for each job, none of them NaN or negative, and they add up to at most n; where
whole cores were asked for, all of them are whole; a part of one core is for policies that say that they share
cores. `legal_widths` then makes it fit the machine.

Pools: slots of fixed width that belong to one class. How wide they are, and how busy.

A pool is a queue of its own. It may be nearly full on a machine that is not, and then it is the pool that
says how long queues get and how slowly they forget.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.catalog.families import is_ours
from malleable.engine.rule_interface import (
    COUNTS,
    DONE,
    NEGATIVE,
    NOT_A_NUMBER,
    OVER_ALLOCATED,
    PART_OF_A_CORE,
    POOLS,
    STUCK,
    TOLERANCE,
    Program,
    inlined,
)
from malleable.errors import MalleableError, PolicyError, PolicyRaisedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.contracts import Allocation, FloatArray
    from malleable.model import Workload


HINT = "cores must be numbers of at least 0 that add up to at most n"
SHARING_HINT = "give 0 or at least 1, or say that it shares cores: set its attribute `sharing = True`"
SHOWN = 12
"""Numbers of a proposal that a message shows."""


@inlined
def check(out: Any, present: int, n: float, sharing: int) -> int:
    """Whether the rule gave sane numbers, at most n in total, and parts of a core only if it shares them."""
    total = 0.0
    for j in range(present):
        # NaN is neither at least 0 nor below it.
        if not out[j] >= 0.0:
            return NEGATIVE if out[j] < 0.0 else NOT_A_NUMBER
        total += out[j]
    status = OVER_ALLOCATED if total > n * (1.0 + TOLERANCE) else DONE
    if sharing == 0 and status == DONE:
        for j in range(present):
            if 0.0 < out[j] < 1.0 - TOLERANCE:
                status = PART_OF_A_CORE
    return status


def refusal(status: int, cores: float, place: str, shown: str) -> PolicyError:
    """The error behind a status of the kernels or of `check`."""
    problem = {
        OVER_ALLOCATED: f"gave out more than {cores:g} cores",
        NOT_A_NUMBER: "returned NaN",
        NEGATIVE: "returned a negative number of cores",
        STUCK: "serves no job although jobs are present",
        PART_OF_A_CORE: "gave a job less than one core",
    }[status]
    hint = SHARING_HINT if status == PART_OF_A_CORE else HINT
    return PolicyError(f"the policy {problem} {place}: {shown}", hint)


def shown(widths: FloatArray) -> str:
    """A proposal in a message: its first numbers, up to the first that is wrong, and their sum."""
    wrong = np.flatnonzero(~(widths >= 0.0))
    first = max(int(wrong[0]) + 1 - SHOWN, 0) if len(wrong) else 0
    text = ", ".join(f"{k:g}" for k in widths[first : first + SHOWN])
    before, after = "…, " if first else "", ", …" if len(widths) > first + SHOWN else ""
    total = f" ({sum(widths.tolist()):g} in all)" if len(widths) > 1 and not len(wrong) else ""
    return f"cores {before}{text}{after}{total}"


def one_each(proposed: Any, jobs: int) -> FloatArray:
    """The proposal as an array of one number per job; anything else is an error, never stretched to fit."""
    try:
        widths = np.asarray(proposed)
    except ValueError:  # rows of different lengths
        widths = np.empty((), dtype=object)
    if widths.dtype.kind not in "fiub" and widths.size:
        count = _one_line(proposed)
    elif widths.shape != (jobs,):
        count = _counted(len(widths), "number") if widths.ndim == 1 else f"an array of shape {widths.shape}"
    else:
        return widths.astype(float, copy=False)
    raise PolicyError(f"the policy returned {count} for {_counted(jobs, 'job')}", "return one number per job")


def enforce(
    proposed: Any, jobs: int, cores: float, *, integer: bool = False, sharing: bool = True
) -> FloatArray:
    """The cores of each job if the proposal is sane; the error of the simulator if it is not."""
    widths = one_each(proposed, jobs)
    # All at once first: a loop over many jobs takes its time where it is not compiled.
    shares = not sharing and bool(((widths > 0.0) & (widths < 1.0 - TOLERANCE)).any())
    status = check(widths.tolist(), jobs, cores, int(not shares))
    if status != DONE:
        raise refusal(status, cores, f"for {_counted(jobs, 'job')}", shown(widths))
    if not integer:
        return widths
    whole = np.rint(widths)
    parts = np.flatnonzero(np.abs(widths - whole) > TOLERANCE)
    if len(parts):
        raise PolicyError(
            f"the policy gave out parts of cores although whole ones were asked for: {shown(widths)}",
            "return whole numbers when `integer` is true",
        )
    return whole


def proposal(answer: Allocation) -> Any:
    """The cores of an answer of `allocate`."""
    try:
        return answer.cores
    except AttributeError:
        raise PolicyError(
            f"the policy returned {_one_line(answer)} from allocate", "return Allocation(cores, price)"
        ) from None


def _one_line(value: Any) -> str:
    return f"{' '.join(repr(value).split()):.60}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def label(given: Any, policy: Any) -> str:
    """What a policy is called in messages and results: as it was named, or by its function or kind."""
    name = given if isinstance(given, str) else getattr(given, "__name__", policy.kind.replace("_", "-"))
    return str(name)


@contextmanager
def blame_policy(policy: Any, name: str) -> Iterator[None]:
    """Have errors name the policy; what a user's own policy raises becomes a `PolicyRaisedError`."""
    try:
        yield
    except PolicyError as error:
        named = isinstance(error, PolicyRaisedError) or error.path[:1] == (name,)
        raise (error if named else error.within(name)) from None
    except MalleableError:
        raise
    except Exception as error:
        if is_ours(type(policy)) and not hasattr(policy, "function"):
            raise
        raise PolicyRaisedError.of(name, error) from error


def pool_widths(program: Program, cores: float, classes: int) -> FloatArray:
    """Cores of a slot of each class, checked: a pool's rule has only one answer."""
    slots, widths = np.asarray(program.slots), np.zeros(classes)
    if slots.shape != (classes,) or not all(n >= 0 and n == int(n) for n in program.slots):
        raise PolicyError(
            f"the policy has the slots {program.slots!r:.60} for {classes} classes",
            "give a whole number of slots for each class",
        )
    program.rule(np.zeros(classes), cores, program.table.copy(), widths)
    total = float(slots[slots > 0] @ widths[slots > 0])
    if not (total <= cores * (1.0 + TOLERANCE) and (widths >= 0.0).all()):
        wrong = NOT_A_NUMBER if np.isnan(widths).any() else NEGATIVE
        status = wrong if not (widths >= 0.0).all() else OVER_ALLOCATED
        shown = ", ".join(f"{n} of {k:g} cores" for n, k in zip(program.slots, widths, strict=True))
        raise refusal(status, cores, "in its pools", shown)
    return widths


def pool_loads(program: Program, workload: Workload, cores: float) -> tuple[float, ...]:
    """The load of each class's pool; empty where the policy has no pools."""
    if program.sees != COUNTS or program.discipline != POOLS:
        return ()
    widths = pool_widths(program, cores, len(workload.classes))
    speeds = np.array([float(s(k)) for s, k in zip(workload.speedups, widths, strict=True)])
    rows = zip(workload.loads, np.asarray(program.slots) * speeds, strict=True)
    return tuple(float(load / most) if most > 0.0 else inf for load, most in rows)
