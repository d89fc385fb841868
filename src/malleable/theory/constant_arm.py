"""One action for life: the arm of the paper's definition, whose best action is held until the job completes.

Holding action k costs, with rent y = l/(αc) and horizon a = αx,

    c·(1 + y·k)·(1 − e^{−a/s(k)})   for k ≥ 1,        c   for k = 0 (the job waits forever).

This is WHAM's cost (c + l·k)/s(k) at price l/α for the *discounted speedup* 1/(1 − e^{−a/s(k)}), a convex
increasing function of s(k) that is positive at k = 0. Three facts follow:

* Only 0 and widths on the upper concave hull of s, from the most efficient one upward, are ever best.
* Every job is indexable, for any speedup and any α > 0: log(1 + y·k) has increasing differences in (y, k),
  so the best action never rises with the price.
* A job is served below the price αc / min_k k·(e^{a/s(k)} − 1); c/x as α → 0.

The cost may have two valleys: with elasticity e(k) = k·s'/s and w(u) = u/(e^u − 1) its slope in log k has the
sign of y·k/(1 + y·k) − e(k)·w(a/s(k)), where w grows with k. So a long job jumps from 0 (or 1) to many cores.

Holding one action is optimal only as α → 0; the paper's lemma says no more. `optimal_arm` is for α > 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.speedups.base.numeric import NumericSpeedup
from malleable.speedups.table import Table
from malleable.theory.optimal_arm import Arms

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from malleable.contracts import FloatArray

SPACING = 0.25
"""Distance of the search grid's nodes in log k; the cost's valleys are at least about 1 wide."""
STEEP = 640.0
"""Logarithm of the highest rent told apart from an infinite one; its exponential still leaves headroom."""
NEWTON_STEPS, SETTLED = 60, 1e-16
WORSE = 1e-12
"""Relative loss at which a refined width is rejected for the grid's own."""


@dataclass(frozen=True, eq=False)
class ConstantArms(Arms):
    """Jobs that hold one action for life."""

    @cached_property
    def _nodes(self) -> FloatArray:
        """Widths to compare, one row each: a column for all jobs, or one per job for stacked speedups."""
        if isinstance(self.speedup, Table):
            corners = np.atleast_2d(self.speedup.pricing.widths).T
            return np.clip(corners, self.low, self.high)
        low, high = np.broadcast_arrays(np.atleast_1d(self.low), np.atleast_1d(self.high))
        span = np.log(high / low)
        count = 2 + int(span.max() / SPACING)
        # Valleys are born next to the narrowest width, so the grid starts with small steps.
        share = np.concatenate([[0.0], 0.25 ** np.arange(4, 0, -1) / count, np.linspace(0.0, 1.0, count)[1:]])
        nodes: FloatArray = np.minimum(low * np.exp(share[:, None] * span), high)
        nodes[-1] = high
        if isinstance(self.speedup, NumericSpeedup):
            corners = self.speedup.pricing.widths[:, None]
            nodes = np.unique(np.concatenate([nodes, np.clip(corners, low, high)]))[:, None]
        return nodes

    @cached_property
    def _node_speeds(self) -> FloatArray:
        return np.stack([self.speedup.speed(row) for row in self._nodes])

    @cached_property
    def _node_terms(self) -> tuple[FloatArray, FloatArray]:
        return self._terms(self._nodes, self._node_speeds)

    @cached_property
    def _scale(self) -> FloatArray:
        """Keeps the savings of long jobs from vanishing: the least a/s if that exceeds 1, else 0."""
        least = self.horizon / self._node_speeds[-1]
        return np.where(least > 1.0, least, 0.0)

    def _terms(self, k: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(A, B) such that A + scaled rent · B orders actions like the cost does.

        For short jobs that is (1 + y·k)(1 − e^{−u})/a with u = a/s. For long ones, whose cost is 1 to all
        digits, it is minus the saving against action 0: −(e^{−u} − y·k(1 − e^{−u})), times e^scale.
        """
        u = self.horizon / s
        spent = -np.expm1(-u)
        per_work = np.where(u > 0.0, spent, 1.0) / (np.where(u > 0.0, u, 1.0) * s)
        long = self._scale > 0.0
        saved = np.exp(np.minimum(self._scale - u, 0.0))
        return np.where(long, -saved, per_work), k * np.where(long, spent, per_work)

    def _rent(self, price: ArrayLike) -> FloatArray:
        """y = l/(αc)."""
        with np.errstate(over="ignore"):
            rent = np.asarray(price, dtype=float) / (self.discount * self.weight)
        return np.asarray(np.minimum(rent, np.exp(STEEP)))

    def _scaled(self, rent: FloatArray) -> FloatArray:
        """y·e^scale; in logarithms, because the second factor alone may overflow."""
        with np.errstate(divide="ignore"):
            return np.where(self._scale > 0.0, np.exp(np.minimum(np.log(rent) + self._scale, STEEP)), rent)

    def width(self, price: ArrayLike) -> FloatArray:
        """The best action of at least one core at this price, whether or not serving the job is worth it."""
        rent = self._rent(price)
        scaled = self._scaled(rent)
        steady, rented = self._node_terms
        cost = steady + scaled * rented
        nodes = np.broadcast_to(self._nodes, cost.shape)
        jobs = np.arange(cost.shape[1])
        if isinstance(self.speedup, Table):
            # On a straight piece the discounted speedup is convex, so only corners are optimal.
            return np.asarray(nodes[np.argmin(cost, axis=0), jobs])
        first, last = self._end_pulls
        falls_at_first = _share(rent * self.low) < first
        falls_at_last = _share(rent * self.high) < last
        best = _deepest_valley(cost, falls_at_first)
        k = _descend(lambda z: self._slope(z, rent), nodes, best)
        k = np.where((best == len(nodes) - 1) & falls_at_last, self.high, k)
        a, b = self._terms(k, self.speedup.speed(k))
        refined, found = a + scaled * b, cost[best, jobs]
        k = np.where(refined <= found + WORSE * np.abs(steady[best, jobs]), k, nodes[best, jobs])
        return np.where(falls_at_first | (np.minimum(refined, found) < cost[0]), k, nodes[0])

    def action(self, price: ArrayLike) -> FloatArray:
        """The optimal action: `width`, or 0 where waiting forever is no more expensive."""
        k = self.width(price)
        with np.errstate(divide="ignore"):
            toll = np.log(self._rent(price)) + self._log_toll(k, self.speedup.speed(k))
        return np.where(toll < 0.0, k, 0.0)

    def value(self, price: ArrayLike) -> FloatArray:
        k = self.action(price)
        spent = -np.expm1(-self.horizon / self.speedup.speed(np.maximum(k, 1.0)))
        return np.asarray(self.weight * np.where(k > 0.0, (1.0 + self._rent(price) * k) * spent, 1.0))

    def log_step_value(self, k: FloatArray, wider: FloatArray) -> FloatArray:
        """Logarithm of the price below which `wider` beats `k`; −∞ where it never does."""
        (steady, rented), (less, more) = (self._terms(w, self.speedup.speed(w)) for w in (k, wider))
        with np.errstate(divide="ignore"):
            saved, paid = np.log(np.maximum(steady - less, 0.0)), np.log(np.maximum(more - rented, 0.0))
        unit = np.log(self.discount * self.weight) - self._scale
        return np.where(steady > less, unit + saved - np.where(steady > less, paid, 0.0), -np.inf)

    @cached_property
    def log_index(self) -> FloatArray:
        """Logarithm of the price below which the job is served: log αc − min_k log k(e^{αx/s(k)} − 1)."""
        toll = self._log_toll(self._nodes, self._node_speeds)
        best = np.argmin(toll, axis=0)
        least = toll[best, np.arange(toll.shape[1])]
        if not isinstance(self.speedup, Table):
            k = _descend(self._toll_slope, np.broadcast_to(self._nodes, toll.shape), best)
            least = np.minimum(least, self._log_toll(k, self.speedup.speed(k)))
        return np.asarray(np.log(self.discount * self.weight) - least)

    def _log_toll(self, k: FloatArray, s: FloatArray) -> FloatArray:
        """log k(e^u − 1), without overflow; −∞ for a job of size 0."""
        u = self.horizon / s
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(k) + u + np.log(-np.expm1(-u)))

    @cached_property
    def _end_pulls(self) -> tuple[FloatArray, FloatArray]:
        """e(k)·w(u) at the narrowest and the widest action: the cost falls there at smaller rented shares."""
        ends = (np.broadcast_to(k, self.remaining.shape) for k in (self.low, self.high))
        first, last = (e * w for e, _, _, w in map(self._elasticity, ends))
        return first, last

    def _elasticity(self, k: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """e = k·s'/s, its derivative in log k, u = αx/s and w(u)."""
        s, s1, s2, _ = self.speedup.derivatives(k)
        e = k * s1 / s
        u = self.horizon / s
        with np.errstate(over="ignore"):
            growth = np.expm1(u)
        return e, e * (1.0 - e) + k**2 * s2 / s, u, np.where(u > 0.0, u, 1.0) / np.where(u > 0.0, growth, 1.0)

    def _slope(self, z: FloatArray, rent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The derivative of log cost in z = log k, and its own derivative."""
        k = np.exp(z)
        e, e1, u, w = self._elasticity(k)
        share = _share(rent * k)
        return share - e * w, share / (1.0 + rent * k) - w * (e1 - e**2 * (1.0 - u - w))

    def _toll_slope(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The derivative of log k(e^u − 1) in z = log k, and its own derivative."""
        e, e1, u, w = self._elasticity(np.exp(z))
        return 1.0 - e * (u + w), e**2 * (u + w * (1.0 - u - w)) - e1 * (u + w)


def _share(rent: FloatArray) -> FloatArray:
    """The rent's share of the cost rate, yk/(1 + yk)."""
    return rent / (1.0 + rent)


def _deepest_valley(cost: FloatArray, falls_at_first: NDArray[np.bool_]) -> Any:
    """The cheapest node that is a local minimum; the first one only if the cost falls there.

    A first node at which the cost rises is a valley of its own and needs no refinement, so the search looks
    at the deepest of the others, which may undercut it between two nodes.
    """
    valley = np.ones(cost.shape, dtype=bool)
    valley[1:] &= cost[1:] < cost[:-1]
    valley[:-1] &= cost[:-1] <= cost[1:]
    valley[0] = falls_at_first
    return np.argmin(np.where(valley, cost, np.inf), axis=0)


def _descend(
    slope: Callable[[FloatArray], tuple[FloatArray, FloatArray]], nodes: FloatArray, best: Any
) -> FloatArray:
    """Where the slope turns positive between the nodes around `best`: Newton in log k, kept in a bracket."""
    jobs = np.arange(nodes.shape[1])
    low, z, high = (np.log(nodes[np.clip(best + i, 0, len(nodes) - 1), jobs]) for i in (-1, 0, 1))
    for _ in range(NEWTON_STEPS):
        value, rate = slope(z)
        rising = value >= 0.0
        low, high = np.where(rising, low, z), np.where(rising, z, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = z - value / rate
        inside = (rate > 0.0) & (newton >= low) & (newton <= high)
        following = np.where(inside, newton, 0.5 * (low + high))
        # The error after a Newton step is of the order of the step's square.
        settled = np.all(np.abs(following - z) <= np.where(inside, math.sqrt(SETTLED), SETTLED))
        z = following
        if settled:
            break
    return np.asarray(np.exp(z))
