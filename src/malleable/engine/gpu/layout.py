"""What a launch is given, where things stand in its arrays, and the constants a kernel is specialised by.

The arrays of replications have one column for each: neighbouring threads then read neighbouring numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.engine.rule_interface import BIN_BITS, BIN_LOWEST, BINS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Parameters(NamedTuple):
    """What replications of a setting have in common, and only read."""

    n: Any
    """Cores."""
    key: Any
    """The seed."""
    mean_gap: Any
    """Mean time between two jobs of any class."""
    costs: Any
    bounds: Any
    """Cumulated probabilities of the components of the laws of sizes, and the class of each component."""
    kinds: Any
    laws: Any
    speeds: Any
    """The table over class counts, and how many jobs of each class it reaches to."""
    limits: Any
    fixed: Any
    """Widths, speeds and their inverses, where they never change."""
    slots_of: Any
    encoded: Any
    """The speedups, for a rule that runs on the device."""


class Arrays(NamedTuple):
    """What replications know, and what is counted."""

    numbers: Any
    """The replication's number, by which its jobs are drawn."""
    reals: Any
    whole: Any
    sums: Any
    marks: Any
    slots: Any
    born: Any
    sizes: Any
    names: Any
    queue: Any
    rule_tables: Any
    """A table of the rule for each: rules keep the last price in theirs."""
    given_times: Any
    given_classes: Any
    given_sizes: Any
    histogram: Any
    log: Any
    """Departure times of given jobs."""


def taken(record: Any, known: Mapping[str, Any]) -> Any:
    """A record of a launch from what is known by name."""
    return record(*(known[name] for name in record._fields))


# Rows of `reals`, before one per class for the clocks, and two for the next jobs of renewal streams.
NOW, NEXT_TIME, NEXT_SIZE = range(3)
REALS = 3
# Rows of `whole`, before one per class for each of the `Counter`s below.
JOB, NEXT_CLASS, STATUS = range(3)
WHOLE = 3
# What is counted for each class in `whole`: jobs present, served, waiting, the head of the queue, and jobs of
# the class that were drawn.
PRESENT, SERVED, WAITING, HEAD, DRAWN = range(5)
COUNTERS = 5
# Rows of `sums`: these for each class, then those of the whole machine.
DEPARTURES, RESPONSE, SLOWDOWN, WORK, AREA, ARRIVALS, SAMPLED = range(7)
CLASS_SUMS = 7
DURATION, USED_AREA, OVERLOAD = range(3)
MACHINE_SUMS = 3

# Sources of jobs.
POISSON, RENEWAL, GIVEN = range(3)

# Constants that a kernel is specialised by; the values here only give them a type.
M = 1
"""Classes."""
TABLE_ROW = 4
"""Numbers in a row of the table over class counts."""
ROOM = 8
"""Jobs of a class that can be served."""
BLOCK_SHARES = False
"""Whether what is near a thread stands in the memory that its block shares, or in local memory."""
HOT = 0
"""Jobs of a class whose marks stand near the thread: the first so many places of its list."""
TALLIES = 0
"""Where the tallies of the classes start in what is near the thread: behind the marks."""
GONE, AREA_TALLY, WORK_TALLY = range(3)
CLASS_TALLIES = 3
"""What is tallied near the thread during a launch: departures, area, work."""
DISCIPLINE = 1
SOURCE = POISSON
STATISTICS = True
"""Whether response times, slowdowns and histograms are kept, and not only the numbers of jobs present."""
NAMED = False
"""Whether jobs have numbers, which settle ties; else their arrival times do."""
LOGGED = False
"""Whether the departure time of every job is written down."""
COMPONENTS = 1
"""Components of the laws of sizes, of all classes."""
EXPONENTIAL_ONLY = False
"""Whether all times are exponential."""
RULE_ON_DEVICE = False
"""Whether states beyond the table are decided by the rule."""


def table_row(classes: int) -> int:
    """Cores in use, and speed and inverse of each class; whole sectors of 32 bytes, to be read with few."""
    return -(-(2 * classes + 1) // 4) * 4


OUTSIDE = 9
"""Status of a replication whose state is not in the table, where the rule does not run on the device."""


LOWEST = 2.0**BIN_LOWEST
PER_OCTAVE = float(1 << BIN_BITS)


def histogram_bin(x: float) -> int:
    """The bin of a positive number: exponent and leading bits of the mantissa, as the CPU engine has it."""
    if not x >= LOWEST:
        return 0
    mantissa, exponent = math.frexp(x)
    octave = exponent - 1 - BIN_LOWEST
    return min((octave << BIN_BITS) + int((2.0 * mantissa - 1.0) * PER_OCTAVE), BINS - 1)
