"""The discounted Whittle policy, from which the paper derives WHAM by letting the discount rate α go to 0.

Each job is a single-armed bandit that rents cores at price l (`malleable.theory.whittle`): it waits above its
index, αc / min_k k·(e^{αx/s(k)} − 1), and below it takes the width of least discounted cost. The policy sets
the smallest price at which the jobs together want at most n cores.

At its index a job jumps from 0 to one core or, if it is long, to many. The cores that do not suffice for the
next jump would idle, so they are used as follows:

1. The jobs that the clearing price serves are served, equal indices by arrival.
2. The first job left out gets what is left at the price where that little is just worth it to it, if by then
   the served jobs leave it at least one core. (So the block of a speedup with a linear start is split, as
   by WHAM.)
3. Otherwise the price falls on among the served jobs alone until they use all the cores that help them.

With whole cores the widths are rounded down and the rest goes to the steps of highest value, core by core.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy import optimize

from malleable.catalog.spec import Positive, positive
from malleable.contracts import Allocation, Policy, Speedup
from malleable.engine.rule_interface import JobProgram
from malleable.model import checked_cores
from malleable.policies.rules.tolerances import DUST
from malleable.policies.rules.whittle_jobs import whittle_rule, whittle_table
from malleable.theory.market import PROHIBITIVE
from malleable.theory.whittle import Arms, whittle_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray, Jobs

CLEARED = 1e-13
"""Relative error at which demand counts as equal to the cores."""
LOWEST = 1e-300
"""The price at which the search gives up: cores are as good as free."""


@dataclass(frozen=True)
class Whittle(Policy):
    """Discounted Whittle index policy: WHAM before its limit α → 0; `discount` is α, in 1/time."""

    discount: Positive = 0.05

    alternatives: ClassVar[dict[str, Any]] = {"alpha": ("discount", positive("alpha"))}

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        cores = checked_cores(cores)
        if len(jobs) == 0:
            return Allocation(np.zeros(0), None)
        cores = float(np.floor(cores)) if integer else cores
        index = _Bandits.of(jobs, np.arange(len(jobs)), self.discount, cores).log_index
        # Everybody served takes at least one core, so nobody behind the first job left out can matter.
        queue = jobs.by(index)[: int(cores) + 1]
        bandits = _Bandits.of(jobs, queue, self.discount, cores)
        prices = np.exp(np.minimum(index[queue], np.log(PROHIBITIVE)))
        served = _served(bandits, prices, cores)
        widths, price = None, 0.0
        if served < len(queue):
            price = float(prices[served])
            widths = self._part_for_next(jobs, queue[served], bandits, price, served, cores)
        if widths is None:
            widths, widening_price = _widened(bandits, prices, served, cores)
            price = max(price, widening_price)
        out = np.zeros(len(jobs))
        out[queue] = _whole(bandits, widths, cores) if integer else widths
        return Allocation(out, price)

    def program(self, workload: Workload, cores: float) -> JobProgram:
        return JobProgram(whittle_rule, whittle_table(workload, float(cores), self.discount))

    def _part_for_next(
        self, jobs: Jobs, job: int, bandits: _Bandits, price: float, served: int, cores: float
    ) -> FloatArray | None:
        """Widths that leave the first job left out a part of its block, if that is one core or more."""
        spare = cores - float(bandits.width(price)[:served].sum())
        if spare < 1.0:
            return None
        speedup = jobs.speedups[jobs.speedup_index[job]]
        price = whittle_index(speedup, jobs.remaining[job], jobs.weight[job], self.discount, limit=spare)
        widths = bandits.width(price)
        spare = cores - float(widths[:served].sum())
        widths[served:] = 0.0
        widths[served] = spare
        return widths if spare >= 1.0 else None


class _Bandits(NamedTuple):
    """Jobs of any speedups as bandits: their positions, and one `Arms` a class or family."""

    parts: tuple[tuple[IntArray, Arms], ...]
    weight: FloatArray

    @classmethod
    def of(cls, jobs: Jobs, chosen: IntArray, discount: float, limit: float) -> _Bandits:
        """The chosen jobs, in that order, none of which may use more than `limit` cores."""
        x, c = jobs.remaining[chosen], jobs.weight[chosen]
        families = _families(jobs, chosen, limit)
        return cls(tuple((at, Arms(speedup, x[at], c[at], discount, limit)) for at, speedup in families), c)

    def gather(self, one: Callable[..., FloatArray], *columns: FloatArray) -> FloatArray:
        """A value for each job, computed part by part from its entries of the columns."""
        out = np.empty(len(self.weight))
        for at, arms in self.parts:
            out[at] = one(arms, *(column[at] for column in columns))
        return out

    @property
    def log_index(self) -> FloatArray:
        return self.gather(lambda arms: arms.log_index)

    def width(self, price: float) -> FloatArray:
        return self.gather(lambda arms: arms.width(price))


def _families(jobs: Jobs, chosen: IntArray, limit: float) -> list[tuple[IntArray, Speedup]]:
    """Who shares a speedup: the jobs of a class or, where jobs bring their own, of a stacked family."""
    index = jobs.speedup_index[chosen]
    if jobs.own_speedups is None:
        return [(np.flatnonzero(index == i), jobs.speedups[i].capped(limit)) for i in np.unique(index)]
    members = [jobs.speedups[i].capped(limit) for i in index]
    families: dict[Any, list[int]] = {}
    for position, speedup in enumerate(members):
        families.setdefault(type(speedup) if speedup.vectorised else speedup, []).append(position)
    return [
        (np.array(at), kind if isinstance(kind, Speedup) else kind.stack([members[j] for j in at]))
        for kind, at in families.items()
    ]


def _served(bandits: _Bandits, prices: FloatArray, cores: float) -> int:
    """The longest prefix whose jobs, at the index of the last of them, together want at most `cores`.

    The total rises with every job, so bisection finds it; one job alone always fits.
    """
    few, many = 1, len(prices) + 1
    trial = many - 1
    while many - few > 1:
        if float(bandits.width(float(prices[trial - 1]))[:trial].sum()) <= cores + DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    return few


def _widened(bandits: _Bandits, prices: FloatArray, served: int, cores: float) -> tuple[FloatArray, float]:
    """Widths that use all cores the served jobs can use, and the price at which they want them."""

    def quantity(price: float) -> FloatArray:
        return bandits.width(price)[:served]

    widths = np.zeros(len(prices))
    high, price = quantity(0.0), 0.0
    low = high
    if float(high.sum()) > cores:
        # The cores suffice at the index of the last job served, and in overload even at that of the next.
        price = float(prices[min(served, len(prices) - 1)])
        low = quantity(price)
        if float(low.sum()) > cores + DUST:
            price = float(prices[served - 1])
            low = quantity(price)
        if float(low.sum()) < cores - DUST or served == len(prices):
            low, high, price = _cleared(quantity, low, high, price, cores)
    # Between two neighbouring prices lie only jumps; who jumps first is decided by the order of the queue.
    gap = np.maximum(high - low, 0.0)
    before = np.cumsum(gap) - gap
    widths[:served] = low + np.clip(cores - float(low.sum()) - before, 0.0, gap)
    widths[np.argmax(widths)] -= max(0.0, float(widths.sum()) - cores)
    return widths, price


def _cleared(
    quantity: Callable[[float], FloatArray], low: FloatArray, high: FloatArray, price: float, cores: float
) -> tuple[FloatArray, FloatArray, float]:
    """The quantities on both sides of the clearing price, which is at most `price`, and the price itself."""

    @functools.cache
    def excess(logarithm: float) -> float:
        nonlocal low, high
        wanted = quantity(math.exp(logarithm))
        ratio = math.log(float(wanted.sum()) / cores)
        low, high = (low, wanted) if ratio > 0.0 else (wanted, high)
        # Aiming a hair above n finds the lower end of a range of prices at which demand is n.
        return ratio - CLEARED if abs(ratio - CLEARED) > 0.5 * CLEARED else 0.0

    top, step = math.log(max(price, LOWEST)), 2.0
    while top - step > math.log(LOWEST) and excess(top - step) < 0.0:
        top, step = top - step, 2.0 * step
    bottom = max(top - step, math.log(LOWEST))
    if excess(bottom) >= 0.0 > excess(top):
        # Where demand jumps there is no root; the two quantities then belong to neighbouring prices.
        bottom = optimize.brentq(excess, bottom, top, xtol=CLEARED, maxiter=200, disp=False)
    return low, high, math.exp(bottom)


def _whole(bandits: _Bandits, widths: FloatArray, cores: float) -> FloatArray:
    """Round down, then hand out the freed cores by value, half of them a round: a job may win twice.

    Steps are single cores as long as one of these gains speed; a table may need several at once.
    """
    whole = np.floor(widths + DUST)
    spare, step = cores - float(whole.sum()), 1.0
    most = bandits.gather(_whole_peak)
    while spare >= step:
        room = (whole >= 1.0) & (whole + step <= most)
        if not room.any():
            break
        narrow = np.maximum(whole, 1.0)
        value = bandits.gather(Arms.log_step_value, narrow, np.where(room, whole + step, narrow))
        winners = np.argsort(-value, kind="stable")[: max(1, int(spare / step) // 2)]
        winners = winners[value[winners] > -np.inf]
        whole[winners] += step
        spare -= step * len(winners)
        step = 1.0 if len(winners) else step + 1.0
    return whole


def _whole_peak(arms: Arms) -> FloatArray:
    """The integer next to the peak with the higher speed, the smaller one where they tie."""
    down, up = np.floor(arms.high), np.ceil(arms.high)
    return np.where(arms.speedup.speed(up) > arms.speedup.speed(down), up, down)
