"""From what a policy proposes to what the machine can do: the one stage between a rule and the cores.

1. Jobs that cannot move now are set aside with the cores they hold (`set_aside`): rigid and moldable jobs
   that run, and jobs within the quiet time after their last resize. Where the cores no longer suffice for
   them, the latest arrivals stop.
2. The policy is asked about the other jobs and the other cores; one that says so (`sees_all`) about all.
3. What it proposes becomes allowed widths (`legalise`). Proposals that are allowed stay. Otherwise every
   restricted job gets the allowed width that makes Σ (k − proposed)² least within the cores: exact by
   dynamic programming where jobs times cores are at most `width_choice.CELLS`, beyond that up to one job's
   step. Of widths that are equally near a job keeps the one that it has, as a move would cost and gain
   nothing; else the earliest gets the wider one. Cores that stay free after that go to jobs that wait, the
   earliest first, on their narrowest width, so that rounding never leaves a machine idle. Jobs of
   unrestricted classes keep what was proposed.
4. A job whose width would change by rounding keeps the width that it has: it would pay for a resize, and
   with the last digits of a proposal the whole course of a run would hang on the order of a sum.

Plain Python over numbers: compiled into the job kernel, and run by `malleable.allocate`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, COLUMNS, HELD, TOLERANCE
from malleable.engine.width_choice import pack
from malleable.engine.width_table import (
    LIMIT,
    MALLEABLE,
    MOLDABLE,
    PLAIN,
    PREAMBLE,
    is_allowed,
    limit,
)

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray

DUST = 1e-9
"""Cores that are rounding."""


def set_aside(
    jobs: FloatArray,
    calm: FloatArray,
    now: float,
    n: float,
    limits: FloatArray,
    rows: IntArray,
    pinned: FloatArray,
) -> tuple[int, float]:
    """Mark the jobs that cannot move now; write the rows of the others; how many, and the cores left.

    `calm` says until when a job is quiet. Who keeps its cores is marked by 1 in `pinned`; a job that the
    cores no longer suffice for by −1: it gets none at this decision; all others by 0.
    """
    size, free = jobs.shape[0], n
    for j in range(size):
        held, i = jobs[j, HELD], int(jobs[j, CLASS])
        stays = held > 0.0 and (limit(limits, i, LIMIT.SHAPE) != MALLEABLE or calm[j] > now)
        pinned[j] = 1.0 if stays else 0.0
        if stays:
            free -= held
    for j in range(size - 1, -1, -1):
        if free < -TOLERANCE * n and pinned[j] == 1.0:
            free += jobs[j, HELD]
            pinned[j] = -1.0
    movable = 0
    for j in range(size):
        if pinned[j] == 0.0:
            rows[movable] = j
            movable += 1
    return movable, max(free, 0.0)


def copy_rows(jobs: FloatArray, rows: IntArray, movable: int, everything: int, view: FloatArray) -> int:
    """The rows that a rule is asked about, those that can move or all; how many."""
    asked = jobs.shape[0] if everything != 0 else movable
    for position in range(asked):
        j = position if everything != 0 else rows[position]
        for column in range(COLUMNS):
            view[position, column] = jobs[j, column]
    return asked


def legalise(
    jobs: FloatArray,
    rows: IntArray,
    movable: int,
    kept: FloatArray,
    free: float,
    limits: FloatArray,
    part: FloatArray,
) -> None:
    """Turn the proposals `part` for the movable jobs into allowed widths within the free cores.

    A policy that sees all jobs may have divided cores that jobs hold which cannot move; then the latest of
    the others get none.
    """
    _drop_latest(movable, free, part)
    legal, restricted, budget = True, 0, free
    for position in range(movable):
        j = rows[position]
        i, k = int(jobs[j, CLASS]), part[position]
        if limit(limits, i, LIMIT.COUNT) == 0.0:
            budget -= k
            continue
        restricted += 1
        if k > 0.0:
            near = round(k)
            if abs(k - near) <= DUST:
                k = part[position] = float(near)
            legal = legal and (k == kept[j] if is_kept(limits, i, kept[j]) else is_allowed(limits, i, k))
    if not legal:
        whole = math.floor(max(budget, 0.0) + TOLERANCE * free)
        budget = _nearest(jobs, rows, movable, kept, whole, restricted, limits, part)
        for position in range(movable):
            j = rows[position]
            narrowest = narrowest_width(limits, int(jobs[j, CLASS]), kept[j])
            if part[position] == 0.0 and 0.0 < narrowest <= budget:
                part[position] = narrowest
                budget -= int(narrowest)
    if limits[PLAIN] == 0.0:
        _keep_held(jobs, rows, movable, free, part)


def _drop_latest(movable: int, free: float, part: FloatArray) -> None:
    """Take back what was proposed beyond the free cores, from the latest arrivals."""
    total = 0.0
    for position in range(movable):
        total += part[position]
    for position in range(movable - 1, -1, -1):
        if total > free * (1.0 + TOLERANCE):
            total -= part[position]
            part[position] = 0.0


def _keep_held(jobs: FloatArray, rows: IntArray, movable: int, free: float, part: FloatArray) -> None:
    """Give jobs whose width would change by rounding the width that they have, unless that is too much."""
    total = 0.0
    for position in range(movable):
        held, k = jobs[rows[position], HELD], part[position]
        total += held if abs(k - held) <= TOLERANCE * held else k
    if total > free * (1.0 + TOLERANCE):
        return
    for position in range(movable):
        held = jobs[rows[position], HELD]
        if abs(part[position] - held) <= TOLERANCE * held:
            part[position] = held


def is_kept(limits: FloatArray, i: int, kept: float) -> bool:
    """Whether a job of class i has chosen its width for good."""
    return kept > 0.0 and limit(limits, i, LIMIT.SHAPE) == MOLDABLE


def narrowest_width(limits: FloatArray, i: int, kept: float) -> float:
    """The least width of a restricted job; 0 for one that may have any."""
    return kept if is_kept(limits, i, kept) else limit(limits, i, LIMIT.LEAST)


def _nearest(
    jobs: FloatArray,
    rows: IntArray,
    movable: int,
    kept: FloatArray,
    budget: int,
    restricted: int,
    limits: FloatArray,
    part: FloatArray,
) -> int:
    """The allowed widths of the restricted jobs that are nearest to what was proposed; what is left over."""
    asked, most = np.empty(restricted, np.int64), 1
    row = 0
    for position in range(movable):
        count = int(limit(limits, int(jobs[rows[position], CLASS]), LIMIT.COUNT))
        if count > 0:
            asked[row] = position
            most = max(most, count)
            row += 1
    # Many jobs with a choice of all whole widths would fill the memory; few of these are in question.
    line, needed = np.zeros(most + 1), 2
    for row in range(restricted):
        j, wish = rows[asked[row]], part[asked[row]]
        needed = max(needed, _choices(limits, int(jobs[j, CLASS]), kept[j], wish, budget, line))
    widths, costs = np.zeros((restricted, needed)), np.zeros((restricted, needed))
    counts, chosen = np.ones(restricted, np.int64), np.zeros(restricted, np.int64)
    for row in range(restricted):
        j, wish = rows[asked[row]], part[asked[row]]
        counts[row] = _choices(limits, int(jobs[j, CLASS]), kept[j], wish, budget, widths[row])
        for v in range(counts[row]):
            costs[row, v] = (widths[row, v] - wish) ** 2
            if widths[row, v] == jobs[j, HELD]:
                costs[row, v] -= DUST  # of equals, the one that it has
    pack(budget, widths, costs, counts, chosen)
    for row in range(restricted):
        part[asked[row]] = widths[row, chosen[row]]
        budget -= int(part[asked[row]])
    return budget


def _choices(limits: FloatArray, i: int, kept: float, wish: float, budget: int, widths: FloatArray) -> int:
    """No cores, and the allowed widths up to the first that is no less than what was proposed."""
    if is_kept(limits, i, kept):
        widths[1] = kept
        return 2 if kept <= budget else 1
    start, count = int(limits[PREAMBLE + len(LIMIT) * i + LIMIT.START]), int(limit(limits, i, LIMIT.COUNT))
    made = 1
    for position in range(count):
        k = limits[start + position]
        if k > budget:
            break
        widths[made] = k
        made += 1
        if k >= wish:
            break
    return made
