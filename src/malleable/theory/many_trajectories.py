"""Many trajectories of the fluid equation side by side, each with steps of its own.

The linearised equation is A = D + u vᵀ: a block D_i = h_i Q_iᵀ a class, and one matrix of rank one, because
classes see each other through the price alone. So the linear systems of an implicit method cost one pass over
the classes (Sherman and Morrison) where a general integrator factorises a full matrix, and every operation
serves all trajectories at once. The method is RODAS3, a stiffly accurate Rosenbrock method of order 3 with an
error estimate of order 2 (Sandu et al., *Benchmarking stiff ODE solvers*, 1997). With γ = ½ and step h,

    (1/(hγ) − A) U_i = F(z + Σ_j a_ij U_j) + Σ_j c_ij U_j / h,      z' = z + 2U_1 + U_3 + U_4,    error U_4.

A needs no formula: the price is moved by a hair, and the changes of cores and speeds are what u is made of.
Where demand jumps, that is the slope of the tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.theory.many_markets import Markets, first_markets, followed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.theory.fluid import Fluid

NEARBY = 1e-6
"""Relative change of the price over which the reaction of cores and speeds is measured."""
GAMMA = 0.5
GROWTH, SHRINKAGE, CAUTION = 5.0, 0.2, 0.9
"""Limits on the change of a step, and how far below the predicted one it stays."""
FEW_PHASES = 8
"""Up to this many phases of a class a full matrix is inverted; stages in a row are longer than that."""
FIRST, TINY = 1e-3, 1e-300
"""The share of its scale by which a state may move in the first step."""


class Swarm:
    """States of a fluid equation, one row per trajectory, and the step that takes all of them on."""

    def __init__(self, fluid: Fluid, states: FloatArray, price: float, accuracy: float, few: float) -> None:
        self.fluid, self.states = fluid, states
        self._accuracy, self._few = accuracy, few
        self.markets = first_markets(fluid, self._jobs(states), price)
        moving = np.maximum(np.abs(self._drift(states, self.markets)), TINY)
        self.steps = FIRST * np.min((np.abs(states) + few / accuracy) / moving, axis=1)

    def advance(self, spans: FloatArray) -> FloatArray:
        """Try a step of at most `spans`; the time that each trajectory moved, 0 where it was too long."""
        h = np.minimum(self.steps, spans)
        with np.errstate(over="ignore", invalid="ignore"):
            following, markets, error = self._attempt(h)
            good = error <= 1.0
            factor = CAUTION * np.maximum(error, 1e-9) ** (-1.0 / 3.0)
        factor = np.clip(np.where(np.isfinite(factor), factor, 0.0), SHRINKAGE, GROWTH)
        # A last step that is cut to fit says nothing about how long steps may be.
        self.steps = np.where(good & (h < self.steps), self.steps, h * factor)
        if good.any():
            after = followed(self.fluid, self._jobs(np.where(good[:, None], following, 0.0)), markets)
            self.states = np.where(good[:, None], following, self.states)
            self.markets = after.where(good, self.markets)
        return np.where(good, h, 0.0)

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Go on with some of the trajectories only."""
        self.states, self.steps = self.states[chosen], self.steps[chosen]
        self.markets = self.markets.rows(chosen)

    def _attempt(self, h: FloatArray) -> tuple[FloatArray, Markets, FloatArray]:
        """The states after a step, markets close to them, and the error in units of what is allowed."""
        z, pace = self.states, h[:, None]
        drift = self._drift(z, self.markets)
        solve = self._linear(h)
        u1 = solve(drift)
        u2 = solve(drift + 4.0 * u1 / pace)
        markets = followed(self.fluid, self._jobs(z + 2.0 * u1), self.markets)
        u3 = solve(self._drift(z + 2.0 * u1, markets) + (u1 - u2) / pace)
        markets = followed(self.fluid, self._jobs(z + 2.0 * u1 + u3), markets)
        late = self._drift(z + 2.0 * u1 + u3, markets)
        u4 = solve(late + (u1 - u2 - 8.0 / 3.0 * u3) / pace)
        following = z + 2.0 * u1 + u3 + u4
        scale = self._few + self._accuracy * np.maximum(np.abs(z), np.abs(following))
        return following, markets, np.sqrt(np.mean((u4 / scale) ** 2, axis=1))

    def _jobs(self, states: FloatArray) -> FloatArray:
        return np.maximum(self.fluid.by_class(np.nan_to_num(states, nan=0.0)), 0.0)

    def _drift(self, states: FloatArray, markets: Markets) -> FloatArray:
        speeds = markets.speeds(self.fluid)[:, self.fluid.owner]
        return np.asarray(self.fluid.arrivals + speeds * self.fluid.flow(states))

    def _linear(self, h: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """What solves (1/(hγ) − A) x = b for the states at hand."""
        fluid, owner = self.fluid, self.fluid.owner
        speeds = self.markets.speeds(fluid)
        blocks = _inverse_blocks(fluid, 1.0 / (GAMMA * h), speeds)
        reaction, quantity = self._reaction(speeds)
        u = reaction[:, owner] * fluid.flow(self.states)
        v = -quantity[:, owner]
        inner = blocks(u)
        left = 1.0 - (v * inner).sum(axis=1)
        left = np.where(np.abs(left) > TINY, left, 1.0)

        def solve(b: FloatArray) -> FloatArray:
            x = blocks(b)
            return np.asarray(x + inner * ((v * x).sum(axis=1) / left)[:, None])

        return solve

    def _reaction(self, speeds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """r and g with ∂h_i/∂Z_j = −r_i g_j: the fall of the speeds for every core that others take."""
        fluid, markets = self.fluid, self.markets
        jobs = self._jobs(self.states)
        dear, cheap = (fluid.bought(markets.price[:, None] * (1.0 + x)) for x in (NEARBY, -NEARBY))
        fewer = (jobs * (cheap - dear)).sum(axis=1)[:, None]
        slower = fluid.buyers.speedups(cheap) - fluid.buyers.speedups(dear)
        free = markets.slack[:, None] | (fewer <= 0.0)
        reaction = np.where(free, 0.0, slower / np.where(free, 1.0, fewer))
        # Jobs that time-share are served for n/needed of the time each.
        needed = np.maximum(jobs @ fluid.buyers.floor, TINY)[:, None]
        shared = markets.crowded[:, None]
        return np.where(shared, speeds / needed, reaction), np.where(
            shared, fluid.buyers.floor, markets.quantities
        )


def _inverse_blocks(fluid: Fluid, rate: FloatArray, speeds: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """What solves (rate − h_i Q_iᵀ) x_i = b_i for each class, classes with as many phases together."""
    parts = [
        (phases, _block_solver(generators, rate[:, None], speeds[:, classes]))
        for classes, phases, generators in fluid.blocks
    ]

    def solve(b: FloatArray) -> FloatArray:
        x = np.empty_like(b)
        for phases, inverse in parts:
            x[:, phases] = inverse(b[:, phases])
        return x

    return solve


def _block_solver(Q: FloatArray, rate: FloatArray, h: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The same for classes with p phases each: trajectories × classes × phases in, and out."""
    p = Q.shape[1]
    diagonal = rate[..., None] - h[..., None] * np.einsum("cuu->cu", Q)
    if p == 1:
        return lambda b: np.asarray(b / diagonal)
    onward = np.einsum("cuu->cu", Q[:, :-1, 1:])
    if p > FEW_PHASES and np.count_nonzero(Q) == np.count_nonzero(onward) + Q.shape[0] * p:
        return lambda b: _in_series(diagonal, h[..., None] * onward, b)
    inverse = np.linalg.inv(rate[..., None, None] * np.eye(p) - h[..., None, None] * Q.swapaxes(1, 2))
    return lambda b: np.asarray((inverse @ b[..., None])[..., 0])


def _in_series(diagonal: FloatArray, onward: FloatArray, b: FloatArray) -> FloatArray:
    """Stages in a row: what a stage passes on is known when its turn comes."""
    x = b / diagonal
    for u in range(1, b.shape[-1]):
        x[..., u] += onward[..., u - 1] * x[..., u - 1] / diagonal[..., u]
    return x
