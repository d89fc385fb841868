"""The least Σ c_j T_j for jobs that are all there at the start, when nothing else arrives: bound and optimum.

Number the jobs from the last to finish to the first. While jobs 1 … k are present costs grow at the rate
C_k = c_1 + … + c_k. Let d_k be the length of this time, and let job i have θ_ik cores during it (constant
ones are best, as speedups are concave; below one core s(θ) = θ, a core that is shared in time):

    minimise Σ_k C_k d_k   subject to   Σ_{k≥i} d_k s_i(θ_ik) ≥ x_i,   Σ_i θ_ik ≤ n.

With p_i for the price of job i's work, the dual is to maximise Σ p_i x_i subject to

    H_k(p) = max { Σ_{i≤k} p_i s_i(θ_i) : Σ θ_i ≤ n } ≤ C_k      for all k.

The *costates* make all of these equalities: p_1 = c_1/s_1(n), and given p_1 … p_{k−1} the k-th equation fixes
p_k. So Σ p_i x_i is a lower bound for every order of finishing, whether or not the order is a good one, and
the least over all orders is a lower bound for every policy. If jobs that are served by GREEDY with weights p
do finish in the order that p was computed for, the bound is attained, and the policy is optimal.

The k-th equation, by a price l on cores: u = C_k − l·n − Σ_{i<k} max_θ [p_i s_i(θ) − l·θ]⁺ is what job k must
be worth at that price, so p_k = min_θ (u + l·θ)/s_k(θ). Total demand falls with l; at the price it is n.
For one power law this is heSRPT (`policies.hesrpt`), for one concave speedup SmartFill (arXiv 2509.01811).
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup

BISECTIONS = 55
"""Halvings of the bracket of the price."""
MOST_JOBS = 8
"""Jobs of which all orders are looked at."""
LATE = 1e-7
"""Share of its size that a job may be behind when the next one is to finish."""


class Batch(NamedTuple):
    """Jobs that are all there at the start."""

    speedups: tuple[Speedup, ...]
    costs: FloatArray
    sizes: FloatArray
    cores: float

    @classmethod
    def of(cls, speedups: Sequence[Speedup], costs: object, sizes: object, cores: float) -> Batch:
        """Check that the theory applies."""
        c, x = np.asarray(costs, dtype=float), np.asarray(sizes, dtype=float)
        if not len(speedups) == len(c) == len(x) or not len(x):
            raise ParameterError("a batch needs a speedup, a cost and a size for each of its jobs")
        if not (np.isfinite(c) & np.isfinite(x) & (c > 0.0) & (x > 0.0)).all() or not cores >= 1.0:
            raise ParameterError("costs and sizes must be positive, and there must be at least one core")
        for speedup in speedups:
            if not speedup.concave or float(speedup(speedup.most_efficient)) > float(speedup.most_efficient):
                raise UnsupportedError(
                    f"a {speedup.kind} speedup that is not concave has no optimum by prices",
                    "use the concave hull of the speedup",
                )
        return cls(tuple(speedups), c, x, float(cores))


class Step(NamedTuple):
    """The price of cores while the first k jobs of the order are present, and what each of them gets."""

    price: float
    widths: FloatArray


class Schedule(NamedTuple):
    """What a batch costs at least if its jobs finish in an order."""

    order: tuple[int, ...]
    """Jobs from the last to finish to the first."""
    costates: FloatArray
    """What a unit of each job's work costs, in the order of the batch."""
    bound: float
    """Σ p x: no policy that finishes the jobs in this order costs less."""
    steps: tuple[Step, ...]
    """For k = 1, 2, … jobs present."""
    completions: FloatArray | None
    """When each job is done, if they finish in this order when they are given these widths: then `bound` is
    attained, and is the optimum of the order."""


def clearing(batch: Batch, order: Sequence[int]) -> Schedule:
    """The costates of an order of finishing, from the last job to the first."""
    if sorted(order) != list(range(len(batch.sizes))):
        raise ParameterError(f"not an order of {len(batch.sizes)} jobs: {tuple(order)}")
    costates, steps, total = np.zeros(len(batch.sizes)), [], 0.0
    for k, job in enumerate(order):
        total += float(batch.costs[job])
        costates[job], step = _next_costate(batch, costates, order[: k + 1], total)
        steps.append(step)
    completions = _completions(batch, order, steps)
    return Schedule(tuple(order), costates, float(costates @ batch.sizes), tuple(steps), completions)


def least_cost(batch: Batch) -> Schedule:
    """The order with the least bound: a lower bound for every policy, and the optimum if it is attained."""
    if len(batch.sizes) > MOST_JOBS:
        raise ParameterError(
            f"the orders of {len(batch.sizes)} jobs are too many to look at", "use `clearing` with one order"
        )
    every = (clearing(batch, order) for order in permutations(range(len(batch.sizes))))
    return min(every, key=lambda found: found.bound * (1.0 - LATE * (found.completions is not None)))


def _next_costate(
    batch: Batch, costates: FloatArray, present: Sequence[int], total: float
) -> tuple[float, Step]:
    """p of the last of the jobs present, the others' being known, and the market at that moment."""
    low, high = 0.0, total / batch.cores
    costate, wide = _market(batch, costates, present, total, low)
    if wide.sum() <= batch.cores * (1.0 + 1e-12):
        return costate, Step(low, wide)
    narrow = wide
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        costate, widths = _market(batch, costates, present, total, middle)
        if widths.sum() > batch.cores:
            low, wide = middle, widths
        else:
            high, narrow = middle, widths
    costate, narrow = _market(batch, costates, present, total, high)
    gap = wide.sum() - narrow.sum()
    part = (batch.cores - narrow.sum()) / gap if gap > 0.0 else 0.0
    return costate, Step(high, narrow + min(max(part, 0.0), 1.0) * (wide - narrow))


def _market(
    batch: Batch, costates: FloatArray, present: Sequence[int], total: float, price: float
) -> tuple[float, FloatArray]:
    """p of the last job at a price, and what all want."""
    widths = np.zeros(len(present))
    worth = total - price * batch.cores
    for position, job in enumerate(present[:-1]):
        speedup, costate = batch.speedups[job], float(costates[job])
        k = speedup.work_demand(price, costate) if price > 0.0 else speedup.peak
        k = min(float(k), batch.cores)
        gain = costate * float(speedup(k)) - price * k
        if gain > 0.0:
            widths[position] = k
            worth -= gain
    if worth <= 0.0:  # the job would take a core at this price, and no higher one
        return price, widths
    speedup = batch.speedups[present[-1]]
    k = speedup.demand(price, worth) if price > 0.0 else speedup.peak
    widths[-1] = min(float(k), batch.cores)
    return (worth + price * widths[-1]) / float(speedup(widths[-1])), widths


def _completions(batch: Batch, order: Sequence[int], steps: Sequence[Step]) -> FloatArray | None:
    """When each job is done if all have the widths of the steps; None if they finish in another order."""
    left, done, now = batch.sizes.copy(), np.zeros(len(batch.sizes)), 0.0
    for k in range(len(order) - 1, -1, -1):
        speeds = [
            float(batch.speedups[job](width))
            for job, width in zip(order[: k + 1], steps[k].widths, strict=True)
        ]
        job = order[k]
        if left[job] > LATE * batch.sizes[job]:
            if speeds[-1] <= 0.0:
                return None
            span = float(left[job]) / speeds[-1]
            now += span
            for other, speed in zip(order[: k + 1], speeds, strict=True):
                left[other] -= span * speed
        done[job], left[job] = now, 0.0
        if (left < -LATE * batch.sizes).any():
            return None
    return done
