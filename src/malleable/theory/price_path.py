"""A lower bound for given jobs: what cores cost over time, and what every job would do at these prices.

Take any price per core and unit of time, l(t) ≥ 0. A schedule never has more than n(t) cores in use, so
what it costs is at least what it costs with rent paid for its cores and n(t) cores' rent given back; and
each job alone can do no better than its own best schedule. So every schedule of these jobs, even one that
knows all of them beforehand, costs at least

    D(l) = Σ_i φ_i(l) − ∫ n(t) l(t) dt,
    φ_i(l) = min over own schedules of [c_i (C_i − a_i) + ∫ l(t) k_i(t) dt].

It holds for every l, so the search for a good one needs no proof. φ_i is a lower bound too, whatever the
grids (`engine.kernels.price_kernel`): jobs of no core at all up to as many as there are, and s(k) = k below
one core, or the allowed widths of restricted jobs. Resizes cost nothing here, and a job that keeps one
width for good is one that may change it: both can only lower the bound.

D is concave in l, and rises where a price moves as demand says: in a cell in which the jobs ask for more
cores than there are, it is too low. The search multiplies prices by how much is asked for, with momentum
and falling steps, on few cells first and on more and more until each has `cell_jobs` jobs.

With l fixed, D(l; n′) = D(l; n) − (n′ − n)∫l for other numbers of cores, as long as no job may use more
than it was computed for. What a schedule costs beyond D splits exactly into terms that are all at least 0
(`blame`):

    cost − D = Σ_i [c_i T_i + ∫ l k_i − φ_i] + ∫ l (n − Σ k).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.contracts import FloatArray
from malleable.engine.job_log import PricePath
from malleable.errors import JobsError, ParameterError
from malleable.model.workload import checked_cores
from malleable.theory.own_schedules import OwnSchedules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.model.job_list import JobList

COARSE, FINE = 0.1, 0.02
"""Steps of the grid of marginal costs (in the logarithm) during the search, and for the bound itself."""
FEWEST_CELLS = 32
MANY_CELLS = 256
"""Cells for a few jobs, too."""
GROWTH = 8
"""The search starts with so few cells, and goes on with so many times more."""
RATE, SLOWER, MOMENTUM = 0.3, 0.1, 0.5
"""How far a price moves if twice the cores are asked for; how this falls with the steps; what is kept."""
WORST = 4.0
"""Demand beyond this multiple of the cores counts as this."""
TAIL = 1.1
"""How much longer each cell is than the one before, after the last arrival."""
LOWEST = 1e-6
"""The lowest price, as a share of what a lone job pays: a price of nothing never rises again."""
STEPS = 8
"""Steps on cells that are still to be divided."""
MOST_STEPS = 200
PATIENCE = 5
"""The search ends when so many steps together gained less than asked for."""


@dataclass(frozen=True)
class JobsBound:
    """A lower bound on the cost of any schedule of given jobs, and the prices that prove it."""

    bound: float
    """No schedule has a lower total cost Σ c_i (C_i − a_i)."""
    by_prices: float
    """D(l), the bound by the price path; `bound` may be a simpler one that is higher."""
    alone: float
    """What the jobs cost if each had all cores for itself."""
    pooled: float
    """What they cost if their work could be divided among the cores without loss."""
    jobs: int
    cores: float
    """No job uses more: the most cores there ever are, or `widest`."""
    edges: FloatArray = field(repr=False)
    prices: FloatArray = field(repr=False)
    """The price of a core is prices[b] from edges[b] to edges[b + 1], and 0 outside."""
    own: FloatArray = field(repr=False)
    """φ_i: what each job's own best schedule costs at these prices, rent included."""
    own_ends: FloatArray = field(repr=False)
    """When that schedule ends."""
    rent: float = 0.0
    """∫ n l: what all cores cost at these prices."""
    steps: int = 0
    seconds: float = 0.0
    gain: float = 0.0
    """By how much the last steps raised the bound, relatively."""

    @property
    def per_job(self) -> float:
        """The bound on the mean cost of a job, as `Result.cost` has it."""
        return self.bound / self.jobs

    @property
    def path(self) -> PricePath:
        """The prices as `engine.replaying.replay_jobs` takes them."""
        return PricePath(self.edges, self.prices)

    def at(self, cores: float) -> float:
        """The bound by the same prices for another number of cores at all times, at most `cores`."""
        if cores > self.cores:
            raise ParameterError(
                f"this bound allows jobs up to {self.cores:g} cores, not {cores:g}",
                f"compute it with widest={cores:g}",
            )
        return max(float(self.own.sum()) - cores * float(self.path.paid[-1]), self.alone)

    def to_dict(self) -> dict[str, float]:
        """The numbers of the bound."""
        return {
            "bound": self.bound,
            "per_job": self.per_job,
            "by_prices": self.by_prices,
            "alone": self.alone,
            "pooled": self.pooled,
            "cells": len(self.prices),
            "steps": self.steps,
            "seconds": self.seconds,
        }


class Blame(NamedTuple):
    """Where the cost of a schedule beyond a bound comes from; all terms are at least 0, but for rounding."""

    regrets: FloatArray
    """For each job, what its schedule cost with rent, less what its own best one costs."""
    idle: float
    """What the cores that stood idle cost at the prices."""

    @property
    def total(self) -> float:
        """Cost less bound."""
        return float(self.regrets.sum()) + self.idle


def blame(bound: JobsBound, jobs: JobList, ends: FloatArray, rents: FloatArray) -> Blame:
    """Split what a schedule cost beyond `bound.by_prices`: when each job ended, and ∫ l k of each."""
    regrets = jobs.weight * (ends - jobs.times) + rents - bound.own
    return Blame(regrets, bound.rent - float(rents.sum()))


def bound_for_jobs(
    jobs: JobList,
    cores: float | Sequence[tuple[float, float]],
    *,
    cell_jobs: float | None = None,
    precision: float = 5e-4,
    seconds: float = math.inf,
    widest: float | None = None,
    threads: int | None = None,
    on_progress: Callable[[int, float], None] | None = None,
) -> JobsBound:
    """A lower bound on what any schedule of the jobs costs on so many cores, or on cores from times on.

    `cell_jobs` is how many jobs there are for each price. The search ends when some steps together raised
    the bound by less than `precision`, relatively, or after `seconds`. `widest` lets jobs have more cores
    than there are, so that the bound holds for more cores, too (`JobsBound.at`). `on_progress` hears of
    each step and the bound so far.
    """
    if not len(jobs):
        raise JobsError("there are no jobs to bound the cost of")
    started = time.perf_counter()
    supply = Supply.of(cores)
    most = max(supply.most, widest or 0.0)
    own = OwnSchedules(jobs, most, threads=threads)
    cells = len(jobs) / (default_cell_jobs(supply.most, len(jobs)) if cell_jobs is None else cell_jobs)
    search = _Search(own, supply, on_progress, started + seconds)
    search.start()
    few = FEWEST_CELLS
    while few < cells:
        search.divide(few)
        search.climb(STEPS, precision)
        few *= GROWTH
    search.divide(max(int(cells), 1))
    gain = search.climb(MOST_STEPS, precision)
    found = own.at(search.edges, search.best_prices, step=FINE, asks=False)
    rent = float(search.available @ search.best_prices)
    by_prices = float(found.costs.sum()) - rent
    alone = float((own.weights * jobs.sizes / own.fastest).sum())
    pooled = own.pooled(most)
    return JobsBound(
        bound=max(by_prices, alone, pooled),
        by_prices=by_prices,
        alone=alone,
        pooled=pooled,
        jobs=len(jobs),
        cores=most,
        edges=search.edges,
        prices=search.best_prices,
        own=found.costs,
        own_ends=found.ends,
        rent=rent,
        steps=search.steps,
        seconds=time.perf_counter() - started,
        gain=gain,
    )


def default_cell_jobs(cores: float, jobs: int) -> float:
    """Jobs for each price. On more cores the price moves less when one comes or leaves."""
    return min(max(cores / 128.0, 0.25), 64.0, jobs / MANY_CELLS)


class Supply(NamedTuple):
    """How many cores there are over time."""

    times: FloatArray
    cores: FloatArray
    """From each of the times on; the first holds before, too."""

    @classmethod
    def of(cls, cores: float | Sequence[tuple[float, float]]) -> Supply:
        """Read a number of cores, or pairs of a time and the number from then on."""
        if isinstance(cores, int | float):
            return cls(np.zeros(1), np.array([checked_cores(cores)]))
        pairs = np.array(list(cores), dtype=float).reshape(-1, 2)
        times, counts = pairs[:, 0], pairs[:, 1]
        if not len(pairs) or not (
            np.isfinite(pairs).all() and (counts >= 0.0).all() and (counts >= 1.0).any()
        ):
            raise ParameterError(
                "the numbers of cores over time are no such numbers", "give (time, cores) pairs"
            )
        if not (np.diff(times) > 0.0).all():
            raise ParameterError("the times at which the number of cores changes must rise")
        return cls(times, counts)

    @property
    def most(self) -> float:
        """The most cores there ever are."""
        return float(self.cores.max())

    def between(self, edges: FloatArray) -> FloatArray:
        """Core-time that there is from each edge to the next."""
        inner = self.times[1:]
        paid = np.append(0.0, np.cumsum(self.cores[:-1] * np.diff(self.times)))
        place = np.searchsorted(inner, edges, side="right")
        total = paid[place] + self.cores[place] * (edges - self.times[place])
        return np.diff(total)


class _Search:
    """Prices over time, and the steps that raise the bound."""

    def __init__(
        self, own: OwnSchedules, supply: Supply, tell: Callable[[int, float], None] | None, until: float
    ) -> None:
        self.own, self.supply, self.tell, self.until = own, supply, tell, until
        self.times = own.jobs.times
        self.steps, self.best = 0, -math.inf
        first, last = float(self.times[0]), float(self.times[-1])
        self.horizon = last
        self.edges = np.array([first, first + 1.0])
        self.prices = self.best_prices = np.ones(1)
        self.available = np.ones(1)
        self.latest = last
        # About what a job pays that is there alone. Cores that are never scarce on average are while it is.
        self.lone_price = 0.5 * float(own.weights.mean()) / supply.most

    def start(self) -> None:
        """One price at which the cores just suffice until the jobs have been worked off."""
        jobs = self.own.jobs
        first, last = float(self.times[0]), float(self.times[-1])
        work = float((jobs.sizes * self.own.least).sum())
        alone = float((jobs.sizes / self.own.fastest).max())
        span = max(last - first, 0.0) + max(alone, 1.5 * work / float(self.supply.cores.mean()) * 0.1)
        low, high = math.log(self.lone_price), math.log(self.lone_price) + 40.0
        edges = np.array([first, first + span])
        there = float(self.supply.between(edges)[0])
        for _ in range(24):
            middle = 0.5 * (low + high)
            found = self.own.at(edges, np.array([math.exp(middle)]), step=0.2)
            if found.asked[0] > there:
                low = middle
            else:
                high = middle
        self.prices = self.best_prices = np.array([math.exp(high)])
        self.edges = edges
        self.latest = float(found.ends.max())

    def divide(self, cells: int) -> None:
        """Go on with about so many cells until the last arrival, and some after it."""
        times = self.times
        first, last = float(times[0]), float(times[-1])
        inner: list[FloatArray] = [np.array([first, last])]
        if last > first:
            every = max(1, round(2.0 * len(times) / cells))
            inner += [times[::every], np.linspace(first, last, max(cells - len(times) // every, 1) + 1)]
        inner.append(self.supply.times[(self.supply.times > first) & (self.supply.times < last)])
        edges = np.unique(np.concatenate(inner))
        length = (last - first) / cells if last > first else (self.latest - last) / 64.0
        self.horizon = max(self.horizon, last + 1.5 * (self.latest - last))
        tail, end = [], last
        while end < self.horizon:
            end += length
            length *= TAIL
            tail.append(end)
        edges = np.concatenate([edges, tail])
        keep = np.append(True, np.diff(edges) > 1e-9 * (edges[-1] - edges[0]) / len(edges))
        edges = edges[keep]
        middles = 0.5 * (edges[1:] + edges[:-1])
        place = np.searchsorted(self.edges, middles, side="right") - 1
        prices = np.append(self.best_prices, self.best_prices[-1] * 0.1)[np.minimum(place, len(self.prices))]
        prices = np.maximum(prices, self.lone_price)
        self.edges, self.prices, self.best_prices = edges, prices, prices
        self.available = self.supply.between(edges)
        self.best = -math.inf

    def climb(self, most: int, precision: float) -> float:
        """Raise the bound by steps on the same cells; the relative gain of the last ones."""
        speed = np.zeros(len(self.prices))
        floor = LOWEST * self.lone_price
        scale = np.maximum(self.available, 1e-9 * self.supply.most * np.diff(self.edges))
        so_far: list[float] = []
        for step in range(most):
            found = self.own.at(self.edges, self.prices, step=COARSE)
            value = float(found.costs.sum()) - float(self.available @ self.prices)
            self.steps += 1
            if value > self.best:
                self.best, self.best_prices = value, self.prices
                self.latest = float(found.ends.max())
            so_far.append(self.best)
            if self.tell is not None:
                self.tell(self.steps, self.best)
            if time.perf_counter() > self.until:
                break
            if step > PATIENCE and so_far[-1] - so_far[-1 - PATIENCE] < precision * abs(so_far[-1]):
                break
            excess = np.clip((found.asked - self.available) / scale, -1.0, WORST)
            speed = MOMENTUM * speed + RATE / (1.0 + SLOWER * step) * excess
            self.prices = np.maximum(self.prices * np.exp(np.clip(speed, -2.0, 2.0)), floor)
        before = so_far[-1 - PATIENCE] if len(so_far) > PATIENCE else so_far[0]
        return (so_far[-1] - before) / abs(so_far[-1])
