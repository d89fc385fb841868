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

One of several widths for each job, within the cores: the multiple-choice knapsack.

Minimise Σ_j costs[j, v_j] over choices v_j with Σ widths[j, v_j] ≤ n. A job has `counts[j]` choices; widths
are whole numbers that rise, and no cores at all is one of them (width 0) where a job may wait. Exact by
dynamic programming over cores where the table fits, else by a price per core; what that leaves unspent is
less than one job's step. Of equally good divisions it is the one with the widest choice for the first job,
then for the second, and so on, so that no core stays idle for nothing. A loss that is rounding is none: two
jobs that are each proposed 1.5 cores must not change places by their last digits. Plain Python that the
engine compiles as it stands.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, COLUMNS, HELD, TOLERANCE
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


CELLS = 2.0**22
"""Jobs times cores up to which the best choice is found by dynamic programming."""
ROUNDING = 1e-12
"""Relative gain that is none."""
PRICES = 60
"""Bisection steps for the price beyond that."""
CHEAP, DEAR = 1e-18, 1e18
"""Prices between which the search begins."""


def pack(n: int, widths: FloatArray, costs: FloatArray, counts: IntArray, chosen: IntArray) -> None:
    """Write the choice of each job into `chosen`; the narrowest widths must fit together."""
    if widths.shape[0] * (n + 1.0) <= CELLS:
        pack_exactly(n, widths, costs, counts, chosen)
    else:
        pack_by_price(n, widths, costs, counts, chosen)


def pack_exactly(n: int, widths: FloatArray, costs: FloatArray, counts: IntArray, chosen: IntArray) -> None:
    """Dynamic programming over cores, job by job."""
    size = widths.shape[0]
    best, after = np.zeros(n + 1), np.empty(n + 1)
    choice = np.empty((size, n + 1), np.int32)
    for j in range(size - 1, -1, -1):  # the first job comes last, and so chooses first
        k, cost = int(widths[j, 0]), costs[j, 0]
        for r in range(n + 1):
            after[r], choice[j, r] = best[r - k] + cost if r >= k else math.inf, 0
        for v in range(1, counts[j]):
            k, cost = int(widths[j, v]), costs[j, v]
            for r in range(k, n + 1):
                value = best[r - k] + cost
                if value - after[r] <= ROUNDING * abs(value):
                    after[r], choice[j, r] = value, v
        best, after = after, best
    r = n
    for j in range(size):
        chosen[j] = choice[j, r]
        r -= int(widths[j, chosen[j]])


def pack_by_price(n: int, widths: FloatArray, costs: FloatArray, counts: IntArray, chosen: IntArray) -> None:
    """The lowest price per core at which the cores suffice, then steps to the next choice where they fit."""
    size = widths.shape[0]
    low, high = CHEAP, DEAR
    for _ in range(2 * PRICES):
        price, used = math.sqrt(low * high), 0.0
        for j in range(size):
            used += widths[j, liked(widths, costs, counts, j, price)]
        if used > n:
            low = price
        else:
            high = price
    spare = float(n)
    for j in range(size):
        chosen[j] = liked(widths, costs, counts, j, high)
        spare -= widths[j, chosen[j]]
    for j in range(size):
        v = liked(widths, costs, counts, j, low)
        if chosen[j] < v and widths[j, v] <= widths[j, chosen[j]] + spare:
            spare -= widths[j, v] - widths[j, chosen[j]]
            chosen[j] = v


def liked(widths: FloatArray, costs: FloatArray, counts: IntArray, j: int, price: float) -> int:
    """The choice of job j that minimises cost plus rent, the narrowest of equals."""
    found, least = 0, math.inf
    for v in range(counts[j]):
        value = costs[j, v] + price * widths[j, v]
        if value < least:
            found, least = v, value
    return found


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
