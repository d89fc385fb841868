"""What the compiled code and the Python around it agree on: columns, codes, statuses, bins.

Plain constants, so that rules (which are plain Python until the engine compiles them) may use them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

Function = TypeVar("Function", bound="Callable[..., Any]")


def inlined(function: Function) -> Function:
    """Mark a helper to be pasted into its callers when they are compiled."""
    function.inlined = True  # type: ignore[attr-defined]
    return function


class ClassProgram(NamedTuple):
    """A policy that looks at class counts alone: shapes 1 (class rule) and 2 (pools).

    `rule(counts, cores, table, out)` writes cores per job of each class while all jobs can be served;
    `discipline` says what happens otherwise. Pools have constant widths, so their rule is called once.
    """

    rule: Callable[..., None]
    table: FloatArray
    discipline: int
    slots: tuple[int, ...] = ()


class JobProgram(NamedTuple):
    """A policy that looks at every job: shape 3.

    `rule(jobs, cores, table, out)` writes cores of each job; it is asked at arrivals and departures, or
    every `period` if that is positive. `sharing`: it may give a job a part of one core. `sees_all`: it is
    asked about the jobs that cannot move now, too.
    """

    rule: Callable[..., None]
    table: FloatArray
    period: float = 0.0
    sharing: bool = False
    sees_all: bool = False


# Columns of the job array that a job rule sees: one row per job, earliest arrival first.
CLASS = 0
"""Position of the job's class in the workload."""
REMAINING = 1
"""Work left, in time on one core."""
AGE = 2
"""Time since arrival."""
WEIGHT = 3
"""Holding cost."""
HELD = 4
"""Cores held now."""
SIZE = 5
"""Work at arrival."""
RESTARTS = 6
"""How often the job was resized so far, its start not counted."""
IDENTITY = 7
"""A number that the job keeps for life, in order of arrival."""
COLUMNS = 8
"""A row fills a cache line; a ninth column made crowded machines half as fast."""

# What happens to jobs beyond those that a class rule can serve.
SHARE = 0
"""No job waits: widths below one are shares of a core (EQUI)."""
INDEX = 1
"""N > n: the n jobs with the largest c/x have one core each (WHAM, SRPT)."""
FIFO = 2
"""N > n: the n earliest have one core each (GREEDY, FCFS)."""
POOLS = 3
"""Each class has its own number of slots of fixed width, first come first served (FW-CAM)."""

# Why a kernel returned.
DONE = 0
"""All arrivals of the chunk are in."""
GROW = 1
"""More jobs are present than the arrays hold; enlarge them and call again."""
OVER_ALLOCATED = 2
NOT_A_NUMBER = 3
NEGATIVE = 4
STUCK = 5
"""Jobs are present, none of them is served, and no arrival is left to change that."""
STOPPED = 6
"""`stop` was called; the kernel returned between two events, so that the run could go on."""
PART_OF_A_CORE = 7
"""A job was given more than nothing and less than one core by a policy that does not share cores."""
MORE_CAPACITY = 8
"""The known changes of the number of cores are used up; find more and call again."""

TOLERANCE = 1e-9
"""Relative over-allocation that is rounding."""
SAME_TIME = 1e-12
"""Relative difference of two times that is rounding."""

# Histogram bins: the top bits of a float64, so 2**6 bins per octave and no logarithm.
BIN_BITS = 6
BIN_OCTAVES = 80
BIN_LOWEST = -40
"""Values below 2**-40 share the first bin, above 2**40 the last."""
BINS = BIN_OCTAVES << BIN_BITS
