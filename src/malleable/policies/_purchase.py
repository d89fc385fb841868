"""Turning the market of `theory.market` into cores for each job.

1. Jobs with the same speedup and weight form a group; what a group pays does not depend on who is in it.
2. If not everybody can have its least useful width, the jobs with the highest index are served.
3. The served jobs share the cores at one price; whole cores (or the pieces of a speedup that is not
   concave) that do not divide evenly go to single jobs, the earliest first, the smallest of equal age.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.contracts import Allocation
from malleable.model import checked_cores
from malleable.theory.market import clear

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray, Speedup
    from malleable.jobs import IntArray, Jobs
    from malleable.theory.market import Buyers

DUST = 1e-9
"""Cores below this are rounding, not capacity."""


def usable(cores: float, *, integer: bool) -> float:
    """The checked number of cores; a fraction of one is of no use to jobs on whole cores."""
    cores = checked_cores(cores)
    return float(np.floor(cores)) if integer else cores


class Groups(NamedTuple):
    """Jobs by (speedup, weight): `member[j]` is the group of job j."""

    member: IntArray
    speedups: tuple[Speedup, ...]
    weights: FloatArray


def grouped(jobs: Jobs, weights: FloatArray, *, by_class: bool) -> Groups:
    """Group the jobs. `by_class` promises that the weight depends on the speedup's owner alone."""
    if by_class and jobs.own_speedups is not None:
        return Groups(np.arange(len(jobs), dtype=np.intp), jobs.speedups, weights)
    kinds = _kinds(jobs)
    if by_class:
        first = np.zeros(len(jobs.speedups))
        first[jobs.class_index] = weights
        pairs: dict[tuple[int, float], int] = {}
        position = np.zeros(len(jobs.speedups), dtype=np.intp)
        for i in np.flatnonzero(np.bincount(jobs.class_index, minlength=len(jobs.speedups))):
            position[i] = pairs.setdefault((int(kinds[i]), float(first[i])), len(pairs))
        speedups = tuple(jobs.speedups[i] for i, _ in pairs)
        return Groups(position[jobs.class_index], speedups, np.array([weight for _, weight in pairs]))
    distinct, which = np.unique(weights, return_inverse=True)
    key, first_job, member = np.unique(
        kinds[jobs.speedup_index] * len(distinct) + which, return_index=True, return_inverse=True
    )
    speedups = tuple(jobs.speedups[k // len(distinct)] for k in key)
    return Groups(member, speedups, weights[first_job])


def _kinds(jobs: Jobs) -> IntArray:
    """For each speedup the position of the first equal one, so that classes may differ in name only."""
    if jobs.own_speedups is not None:
        return np.arange(len(jobs), dtype=np.intp)
    return np.array([jobs.speedups.index(s) for s in jobs.speedups], dtype=np.intp)


def share(buyers: Buyers, member: IntArray, jobs: Jobs, served: IntArray, cores: float) -> Allocation:
    """Cores for the served jobs at the price that clears the market, 0 for the others."""
    out = np.zeros(len(jobs))
    if len(served) == 0:
        return Allocation(out, None)
    groups = member[served]
    counts = np.bincount(groups, minlength=buyers.speedups.size).astype(float)
    present = counts > 0.0

    def quantity(price: float) -> FloatArray:
        # Whoever is not served may want infinitely many cores, and 0·∞ is not a number.
        return np.where(present, buyers.demand(price), 0.0)

    # Least widths that exceed the cores by rounding are a market that clears, not one without a price.
    cleared = clear(quantity, counts, max(cores, float(counts @ np.where(present, buyers.least, 0.0))))
    tied = cleared.high > cleared.low
    if not buyers.integer and buyers.speedups.concave[tied].all():
        out[served] = cleared.quantities[groups]
        return Allocation(out, cleared.price)
    out[served] = cleared.low[groups]
    queue = served[np.lexsort((np.arange(len(served)), jobs.remaining[served], -jobs.age[served]))]
    _fill(buyers, member, queue, out, cores - float(counts @ cleared.low))
    return Allocation(out, cleared.price)


def _fill(buyers: Buyers, member: IntArray, queue: IntArray, out: FloatArray, spare: float) -> None:
    """Spend the spare cores on the most valuable steps that fit, then on a part of one step.

    A queue entry is a set of jobs of one group with the same width; raising some of them splits the set.
    """
    by_group = queue[np.argsort(member[queue], kind="stable")]
    sets = np.split(by_group, np.flatnonzero(np.diff(member[by_group])) + 1)
    widths = np.array(buyers.least)
    widths[member[queue]] = out[queue]
    wider = buyers.next_widths(widths)
    values = buyers.edge_values(widths, wider)
    heap = [
        (-float(values[group]), entry, group, members)
        for entry, members in enumerate(sets)
        if wider[group := int(member[members[0]])] > widths[group]
    ]
    heapq.heapify(heap)
    stuck: list[tuple[int, IntArray]] = []
    entries = len(sets)
    while heap and spare > DUST:
        _, _, group, members = heapq.heappop(heap)
        width = float(out[members[0]])
        next_width = buyers.next_width(group, width)
        step = next_width - width
        lucky = min(len(members), int((spare + DUST) // step))
        if lucky < len(members):
            stuck.append((group, members[lucky:]))
        if lucky:
            # The vertex itself: a sum that misses it by rounding would make the vertex the next step.
            out[members[:lucky]] = next_width
            spare -= lucky * step
            wider_still = buyers.next_width(group, next_width)
            if wider_still > next_width:
                entries += 1
                value = buyers.edge_value(group, next_width, wider_still)
                heapq.heappush(heap, (-value, entries, group, members[:lucky]))
    if spare > DUST:
        _give_rest(buyers, stuck, out, spare)


def _give_rest(buyers: Buyers, stuck: list[tuple[int, IntArray]], out: FloatArray, spare: float) -> None:
    """Give what is less than any whole step to the job that gains most from it, if one gains."""
    best, job = -np.inf, -1
    for group, members in stuck:
        width = float(out[members[0]])
        value = buyers.edge_value(group, width, width + spare)
        if (
            buyers.speedups.members[group](width + spare) > buyers.speedups.members[group](width)
            and value > best
        ):
            best, job = value, int(members[0])
    if job >= 0:
        out[job] += spare


def serve_by_index(
    buyers: Buyers, member: IntArray, jobs: Jobs, index: FloatArray, cores: float
) -> Allocation:
    """Serve everybody if the cores suffice for the least widths, else blocks of these by decreasing index."""
    least = buyers.least[member]
    if float(least.sum()) <= cores + DUST:
        return share(buyers, member, jobs, jobs.order, cores)
    queue = jobs.by(index)
    fit, spare = _blocks(least[queue], cores)
    if spare < 1.0:
        return Allocation(share(buyers, member, jobs, queue[:fit], cores).cores, None)
    out = np.zeros(len(jobs))
    out[queue[:fit]] = least[queue[:fit]]
    # The next job cannot have its full block; the whole cores that it gets still do useful work.
    out[queue[fit]] = np.floor(spare) if buyers.integer else spare
    return Allocation(out, None)


def _blocks(needs: FloatArray, cores: float) -> tuple[int, float]:
    """How many of the needs fit one after the other, and what is left."""
    used = np.cumsum(needs)
    fit = int(np.searchsorted(used, cores + DUST, side="right"))
    return fit, cores - (float(used[fit - 1]) if fit else 0.0)


def serve_by_price(
    buyers: Buyers,
    member: IntArray,
    jobs: Jobs,
    order: Callable[[], IntArray],
    value: FloatArray,
    cores: float,
) -> Allocation:
    """Serve the longest prefix of the queue whose last job is still worth its cores at the clearing price.

    The price rises and the value of the last job falls with every job served, so bisection finds the cut.
    `order` makes the queue, most valuable jobs first; it is not asked when everybody is served.
    """
    needs = buyers.least[member]
    if float(needs.sum()) <= cores + DUST:
        everybody = share(buyers, member, jobs, jobs.order, cores)
        if (everybody.price or 0.0) <= float(value.min()) * (1.0 + DUST):
            return everybody
    queue = order()
    few, many = 0, _blocks(needs[queue], cores)[0] + 1
    best = Allocation(np.zeros(len(jobs)), None)
    trial = many - 1
    while many - few > 1:
        attempt = share(buyers, member, jobs, queue[:trial], cores)
        if (attempt.price or 0.0) <= value[queue[trial - 1]] * (1.0 + DUST):
            few, best = trial, attempt
        else:
            many = trial
        trial = (few + many) // 2
    return best if few == len(queue) else _part_for_next(buyers, member, queue, few, value, best, cores)


def _part_for_next(
    buyers: Buyers,
    member: IntArray,
    queue: IntArray,
    few: int,
    value: FloatArray,
    best: Allocation,
    cores: float,
) -> Allocation:
    """Give the first job left out a part of its block if, at its own value, the others leave a core."""
    following = queue[few]
    wanted = buyers.demand(float(value[following]))[member[queue[:few]]]
    spare = min(cores - float(wanted.sum()), float(buyers.least[member[following]]))
    spare = np.floor(spare + DUST) if buyers.integer else spare
    if spare < 1.0:
        return best
    out = np.zeros_like(best.cores)
    out[queue[:few]] = wanted
    out[following] = spare
    return Allocation(out, float(value[following]))
