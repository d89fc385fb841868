"""What the compiled code and the Python around it agree on: columns, codes, statuses, bins.

Plain constants, so that rules (which are plain Python until the engine compiles them) may use them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model.jobs import Jobs

Function = TypeVar("Function", bound="Callable[..., Any]")


def inlined(function: Function) -> Function:
    """Mark a helper to be pasted into its callers when they are compiled."""
    function.inlined = True  # type: ignore[attr-defined]
    return function


JOBS, COUNTS = "jobs", "counts"
"""What a rule sees: every single job, or how many jobs of each class there are."""
# What happens to jobs beyond those that a rule on class counts can serve.
SHARE = 0
"""No job waits: widths below one are shares of a core (EQUI)."""
INDEX = 1
"""N > n: the n jobs with the largest c/x have one core each (WHAM, SRPT)."""
FIFO = 2
"""N > n: the n earliest have one core each (GREEDY, FCFS)."""
POOLS = 3
"""Each class has its own number of slots of fixed width, first come first served (FW-CAM)."""


class Moment(NamedTuple):
    """One decision: the jobs, their rows as the rule saw them, and what it gave these."""

    jobs: Jobs
    rows: FloatArray
    cores: float
    table: FloatArray
    widths: FloatArray


class Program(NamedTuple):
    """A policy's answer: a rule on numbers, with everything slow done once. `allocate` and the engine run it.

    `rule(jobs, cores, table, out)` writes the cores of each job. One that sees counts is called as
    `rule(counts, cores, table, out)` and writes cores per job of each class while all jobs can be served.
    """

    rule: Callable[..., None]
    table: FloatArray
    sees: str = JOBS
    discipline: int = SHARE
    """What happens, under a rule on counts, when there are more jobs than it can serve."""
    slots: tuple[int, ...] = ()
    """Those of each class, for pools: their widths are constant, so the rule is called once."""
    period: float = 0.0
    """A rule on jobs is asked this often; 0: at arrivals and departures."""
    sharing: bool = False
    """Whether it may give a job a part of one core."""
    sees_all: bool = False
    """Whether it is asked about the jobs that cannot move now, too."""
    whole: bool = False
    """Whether the rule always gives whole cores."""
    price: Callable[[FloatArray, FloatArray, FloatArray], float | None] | None = None
    """Reads the price of the last decision from its jobs, its table and its widths."""
    weighs: str = ""
    """What jobs weigh where they share the cores at one price: 1, mu, c, cmu or c/x. Prices and the weights
    of jobs are then in a unit that leaves room for them (`policies.rules.market.weight_unit`)."""
    to_whole: Callable[[Moment], FloatArray] | None = None
    """Whole cores in place of those that the rule gave; without it, the nearest ones of the same total."""


def ClassProgram(  # noqa: N802 - the name that files of users have
    rule: Callable[..., None], table: FloatArray, discipline: int, slots: tuple[int, ...] = ()
) -> Program:
    """A program on class counts."""
    return Program(rule, table, COUNTS, discipline, slots)


def JobProgram(  # noqa: N802 - the name that files of users have
    rule: Callable[..., None],
    table: FloatArray,
    period: float = 0.0,
    sharing: bool = False,
    sees_all: bool = False,
) -> Program:
    """A program on single jobs."""
    return Program(rule, table, period=period, sharing=sharing, sees_all=sees_all)


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
