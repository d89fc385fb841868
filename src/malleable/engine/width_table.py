"""What the machine demands of a job, per class, in one flat array: shape, allowed widths, cost of a resize.

    limits[0]                 1 if nothing is demanded of any class (the paper's jobs), so that all is skipped
    limits[1]                 1 if some class pauses after a resize
    limits[2 + 8·i : …]       the columns of `Limit`

A table of pauses has a row per width before and a column per width after, no cores first. The functions are
plain Python that the engine compiles as it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import ParameterError
from malleable.numerics.places import places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.model import JobType

PLAIN, PAUSES = 0, 1
PREAMBLE = 2


class Limit(NamedTuple):
    """The columns of a class."""

    SHAPE: int
    COUNT: int
    START: int
    """How many allowed widths there are (0: any), and where they stand."""
    PAUSE: int
    WORK: int
    """What a resize costs: time, and work lost."""
    QUIET: int
    TABLE: int
    """Where its table of pauses stands (0: none)."""
    LEAST: int
    """The narrowest width."""


LIMIT = places(Limit)
MALLEABLE, MOLDABLE, RIGID = range(3)
SHAPES = {"malleable": MALLEABLE, "moldable": MOLDABLE, "rigid": RIGID}
MOST_PAUSES = 2048
"""Widths between which a function of both may give the pause."""


def encode_limits(job_types: Sequence[JobType], cores: float) -> FloatArray:
    """The flat description of what all classes demand on so many cores."""
    rows = np.zeros((len(job_types), len(LIMIT)))
    data: list[FloatArray] = []
    end = PREAMBLE + rows.size
    for row, job_type in zip(rows, job_types, strict=True):
        widths = job_type.widths_on(cores)
        row[LIMIT.SHAPE], row[LIMIT.QUIET], row[LIMIT.WORK] = (
            SHAPES[job_type.shape],
            job_type.quiet,
            job_type.resize.work,
        )
        row[LIMIT.LEAST] = 0.0 if widths is None else widths[0]
        if widths is not None:
            row[LIMIT.COUNT], row[LIMIT.START] = len(widths), end
            data.append(widths)
            end += len(widths)
        if not job_type.resize.varies:
            row[LIMIT.PAUSE] = job_type.resize.pause
            continue
        if widths is None or len(widths) > MOST_PAUSES:
            raise ParameterError(
                f"class {job_type.name!r}: a pause that depends on the widths needs a choice of them",
                f'add widths = "whole", or a list of at most {MOST_PAUSES}',
            )
        try:
            pauses = job_type.resize.pauses(widths)
        except ParameterError as error:
            raise ParameterError(f"class {job_type.name!r}: {error.problem}", error.hint) from None
        row[LIMIT.TABLE], row[LIMIT.PAUSE] = end, pauses.max()
        data.append(pauses.ravel())
        end += pauses.size
    plain = float(all(one.plain for one in job_types))
    return np.concatenate([[plain, float(rows[:, LIMIT.PAUSE].any())], rows.ravel(), *data])


def limit(limits: FloatArray, i: int, what: int) -> float:
    """One number of class i."""
    return float(limits[PREAMBLE + len(LIMIT) * i + what])


def allowed_at_most(limits: FloatArray, i: int, k: float) -> float:
    """The widest allowed width of class i up to k; 0 if there is none."""
    row = PREAMBLE + len(LIMIT) * i
    start, count = int(limits[row + LIMIT.START]), int(limits[row + LIMIT.COUNT])
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if limits[start + middle] <= k:
            low = middle + 1
        else:
            high = middle
    return float(limits[start + low - 1]) if low > 0 else 0.0


def is_allowed(limits: FloatArray, i: int, k: float) -> bool:
    """Whether a job of class i may run on k cores."""
    if limits[PREAMBLE + len(LIMIT) * i + LIMIT.COUNT] == 0.0:
        return k >= 1.0
    return allowed_at_most(limits, i, k) == k


def position(limits: FloatArray, i: int, k: float) -> int:
    """The row of width k in the table of pauses: 0 for no cores."""
    if k <= 0.0:
        return 0
    row = PREAMBLE + len(LIMIT) * i
    start, found = int(limits[row + LIMIT.START]), 0
    while limits[start + found] < k:
        found += 1
    return found + 1


def pause_between(limits: FloatArray, i: int, before: float, after: float) -> float:
    """Time without progress of a class-i job that goes from one width to the other."""
    row = PREAMBLE + len(LIMIT) * i
    table = int(limits[row + LIMIT.TABLE])
    if table == 0:
        return float(limits[row + LIMIT.PAUSE])
    side = int(limits[row + LIMIT.COUNT]) + 1
    return float(limits[table + side * position(limits, i, before) + position(limits, i, after)])
