"""The market policies by other means: the market of `theory.market`, vectorised, turned into cores per job.

An oracle for the rules of `malleable.policies.rules`; `allocation(policy, jobs, cores)` answers as
`policy.allocate` does, and shares with it only the speedups and the best division of whole cores.

1. Jobs with the same speedup and weight form a group; what a group pays does not depend on who is in it.
2. If not every job can have its least useful width, the jobs with the highest index are served.
3. The served jobs share the cores at one price, along an edge of a measured speedup wherever it lies on its
   hull. Whole cores, and edges over a dent, that do not divide evenly go to single jobs, the earliest first,
   the smallest of equal age: always the most valuable step that fits. A dent too wide for what is left is
   entered in part, if that is worth more than what others would do with it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.contracts import Allocation
from malleable.policies.equi import Equi
from malleable.policies.greedy import Greedy
from malleable.policies.rules.knapsack import best_widths
from malleable.policies.wham import Wham
from malleable.theory.market import GreedyBuyers, WhittleBuyers, clear
from support.width_steps import best_part, edge_value, edge_values, is_straight, next_width, next_widths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.contracts import FloatArray, Speedup
    from malleable.model.jobs import IntArray, Jobs
    from malleable.theory.market import Buyers

MOST_VALUES = 2e5
"""Speeds that may be tabulated to improve on the steps."""
DUST = 1e-9
"""Cores below this are rounding, not capacity."""


FINISHING = (1e-100, 1e100)
"""The range of weights c/x, within that of prices: jobs about to finish count alike."""


def allocation(policy: Any, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
    """Cores and price by the vectorised procedure of WHAM, GREEDY or EQUI."""
    integer = integer or policy.whole_cores
    cores = float(np.floor(cores)) if integer else float(cores)
    if isinstance(policy, Wham):
        return _wham(jobs, cores, integer=integer)
    if isinstance(policy, Greedy):
        return _greedy(policy, jobs, cores, integer=integer)
    assert isinstance(policy, Equi)
    return _equi(jobs, cores, integer=integer)


def _wham(jobs: Jobs, cores: float, *, integer: bool) -> Allocation:
    groups = grouped(jobs, jobs.weight, by_class=not jobs.own_weights)
    buyers = WhittleBuyers(groups.speedups, groups.weights, integer=integer)
    gain = buyers.weights * buyers.speedups(buyers.least) / buyers.least
    with np.errstate(divide="ignore", over="ignore"):
        index = gain[groups.member] / jobs.remaining
    return in_costs(serve_by_index(buyers, groups.member, jobs, index, cores), buyers.unit)


def _greedy(policy: Greedy, jobs: Jobs, cores: float, *, integer: bool) -> Allocation:
    by_class = policy.weight in {"1", "mu"} or (policy.weight != "c/x" and not jobs.own_weights)
    weights = _greedy_weights(str(policy.weight), jobs)
    groups = grouped(jobs, weights, by_class=by_class and jobs.own_speedups is None)
    buyers = GreedyBuyers(groups.speedups, groups.weights, integer=integer)
    value = (buyers.weights * buyers.speedups(buyers.least) / buyers.least)[groups.member]

    def order() -> IntArray:
        if not policy.shy:
            return jobs.by(value)
        second_core = np.array([float(s(2.0)) for s in groups.speedups])[groups.member]
        arrival = np.empty(len(jobs), dtype=np.intp)
        arrival[jobs.order] = np.arange(len(jobs))
        return np.lexsort((arrival, second_core, -value))

    found = serve_by_price(buyers, groups.member, jobs, order, value, cores)
    found = improved_whole(buyers, groups.member, jobs, found, cores) if integer else found
    return in_costs(found, buyers.unit)


def _greedy_weights(weight: str, jobs: Jobs) -> FloatArray:
    if weight == "1":
        return np.ones(len(jobs))
    if weight == "c":
        return jobs.weight
    if weight == "c/x":
        with np.errstate(divide="ignore", over="ignore"):
            return np.clip(jobs.weight / jobs.remaining, *FINISHING)
    rate = 1.0 / jobs.workload.mean_sizes[jobs.class_index]
    with np.errstate(over="ignore"):
        return rate if weight == "mu" else jobs.weight * rate


def _equi(jobs: Jobs, cores: float, *, integer: bool) -> Allocation:
    peaks = np.array([float(s.peak) for s in jobs.speedups])[jobs.speedup_index]
    share = level(np.ceil(peaks - DUST) if integer else peaks, cores)
    if not integer:
        return Allocation(np.minimum(share, peaks), None)
    out = np.minimum(np.floor(share + DUST), np.ceil(peaks - DUST))
    spare = int(cores - out.sum() + DUST)
    wanting = jobs.order[(out < np.ceil(peaks - DUST))[jobs.order]]
    out[wanting[:spare]] += 1.0
    return Allocation(out, None)


def level(peaks: FloatArray, cores: float) -> float:
    """The height L with Σ min(L, peak_j) = cores, or infinity if all peaks fit."""
    rising = np.sort(peaks)
    before = np.concatenate([[0.0], np.cumsum(rising)[:-1]])
    waiting = len(rising) - np.arange(len(rising))
    candidates = (cores - before) / waiting
    reached = np.flatnonzero(candidates <= rising)
    return float(candidates[reached[0]]) if len(reached) else float("inf")


def in_costs(found: Allocation, unit: float) -> Allocation:
    """The allocation with its price in holding costs, where the market's are in multiples of a unit."""
    return found if unit == 1.0 or found.price is None else found._replace(price=found.price * unit)


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


def share(
    buyers: Buyers,
    member: IntArray,
    jobs: Jobs,
    served: IntArray,
    cores: float,
    waiting: IntArray | None = None,
) -> Allocation:
    """Cores for the served jobs at the price that clears the market, 0 for the others.

    What the price leaves over, because a step does not fit, is offered to those who are `waiting` as well.
    """
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
    tied = np.flatnonzero(cleared.high > cleared.low)
    if not buyers.integer and all(is_straight(buyers, int(g), cleared.low[g], cleared.high[g]) for g in tied):
        out[served] = cleared.quantities[groups]
        return Allocation(out, cleared.price)
    out[served] = cleared.low[groups]
    _fill(buyers, member, jobs, (served, waiting), out, cores - float(counts @ cleared.low))
    return Allocation(out, cleared.price)


class Step(NamedTuple):
    """A set of jobs of one group and width, and the next width of each; in a heap, most valuable first."""

    value: float
    """Minus what the step is worth."""
    entry: int
    group: int
    members: IntArray
    target: float
    reach: float
    """The spare cores for which the target is the best part of a step that does not fit; 0 for a step."""


def _fill(
    buyers: Buyers,
    member: IntArray,
    jobs: Jobs,
    queues: Sequence[IntArray | None],
    out: FloatArray,
    spare: float,
) -> None:
    """Spend the spare cores on the most valuable steps that fit, given to the earliest of those who tie.

    A step that does not fit comes back as the best part of it within reach of the cores that are left. These
    only get fewer, so that the value at which it comes back is never below what it is worth later.
    """
    heap: list[Step] = []
    entries = 0
    for queue in queues:
        sets = [] if queue is None else _sets(member, jobs, queue)
        heap += _first_steps(buyers, member, sets, out, entries)
        entries += len(sets)
    heapq.heapify(heap)
    while heap and spare > DUST:
        step = heapq.heappop(heap)
        width, lucky = float(out[step.members[0]]), 0
        if step.reach in {0.0, spare}:
            most = len(step.members) if step.reach == 0.0 else 1
            lucky = min(most, int((spare + DUST) // (step.target - width)))
        raised, rest = step.members[:lucky], step.members[lucky:]
        if lucky:
            # The vertex itself: a sum that misses it by rounding would make the vertex the next step.
            out[raised] = step.target
            spare -= lucky * (step.target - width)
            entries += 1
            wider = next_width(buyers, step.group, step.target)
            if wider > step.target:
                value = edge_value(buyers, step.group, step.target, wider)
                heapq.heappush(heap, Step(-value, entries, step.group, raised, wider, 0.0))
        if len(rest) and spare > DUST:
            value, target = best_part(buyers, step.group, width, spare)
            if target > width:
                heapq.heappush(heap, Step(-value, step.entry, step.group, rest, target, spare))


def improved_whole(
    buyers: Buyers, member: IntArray, jobs: Jobs, found: Allocation, cores: float
) -> Allocation:
    """Whole cores that maximise Σ w·s(k), where dents keep steps from it; the earliest have the widest."""
    limits = np.minimum(buyers.most, cores)
    if buyers.speedups.concave.all() or float(limits.sum()) > MOST_VALUES:
        return found
    sets = _sets(member, jobs, np.arange(len(jobs)))
    groups = [int(member[members[0]]) for members in sets]
    values = [
        buyers.weights[g] * buyers.speedups.members[g](np.arange(float(limits[g]) + 1.0)) for g in groups
    ]
    counts = np.array([len(members) for members in sets])
    given = [found.cores[members].astype(np.int64) for members in sets]
    widths = best_widths(values, counts, int(cores), given)
    if widths is None:
        return found
    out = np.zeros(len(jobs))
    for members, own in zip(sets, widths, strict=True):
        out[members] = own
    return Allocation(out, found.price)


def _sets(member: IntArray, jobs: Jobs, queue: IntArray) -> list[IntArray]:
    """The jobs of each group, the earliest first, the smallest of equal age."""
    if len(queue) == 0:
        return []
    queue = queue[np.lexsort((np.arange(len(queue)), jobs.remaining[queue], -jobs.age[queue]))]
    by_group = queue[np.argsort(member[queue], kind="stable")]
    return np.split(by_group, np.flatnonzero(np.diff(member[by_group])) + 1)


def _first_steps(
    buyers: Buyers, member: IntArray, sets: Sequence[IntArray], out: FloatArray, entries: int
) -> list[Step]:
    """The next steps of sets of different groups, all at once."""
    groups = np.array([member[members[0]] for members in sets], dtype=np.intp)
    widths = np.array(buyers.least)
    widths[groups] = [out[members[0]] for members in sets]
    wider = next_widths(buyers, widths)
    values = -edge_values(buyers, widths, wider)
    rows = zip(values[groups].tolist(), groups.tolist(), sets, wider[groups].tolist(), strict=True)
    return [
        Step(value, entry, group, members, target, 0.0)
        for entry, (value, group, members, target) in enumerate(rows, entries)
        if target > widths[group]
    ]


def serve_by_index(
    buyers: Buyers, member: IntArray, jobs: Jobs, index: FloatArray, cores: float
) -> Allocation:
    """Serve all jobs if the cores suffice for the least widths, else blocks of these by decreasing index."""
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
    `order` makes the queue, most valuable jobs first; it is not asked when all jobs are served.
    """
    needs = buyers.least[member]
    if float(needs.sum()) <= cores + DUST:
        together = share(buyers, member, jobs, jobs.order, cores)
        if (together.price or 0.0) <= float(value.min()) * (1.0 + DUST):
            return together
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
    if few == len(queue):
        return best
    return _with_rest(buyers, member, jobs, queue, few, value, best, cores)


def _with_rest(
    buyers: Buyers,
    member: IntArray,
    jobs: Jobs,
    queue: IntArray,
    few: int,
    value: FloatArray,
    best: Allocation,
    cores: float,
) -> Allocation:
    """Give the first job left out a part of its block if, at its own value, the others leave a core.

    Where some speedup has a dent, what is left is offered to all jobs, served or not.
    """
    following = queue[few]
    wanted = buyers.demand(float(value[following]))[member[queue[:few]]]
    spare = min(cores - float(wanted.sum()), float(buyers.least[member[following]]))
    spare = np.floor(spare + DUST) if buyers.integer else spare
    dented = not buyers.speedups.concave.all()
    if spare < 1.0:
        return share(buyers, member, jobs, queue[:few], cores, queue[few:]) if dented and few else best
    out = np.zeros_like(best.cores)
    out[queue[:few]] = wanted
    if dented:
        _fill(buyers, member, jobs, (queue[:few], queue[few:]), out, cores - float(wanted.sum()))
    else:
        out[following] = spare
    return Allocation(out, float(value[following]))
