"""The fluid equation of a class rule: what the class counts do when n and the arrival rates grow together.

Class i has arrival rate λ_i, phase-type sizes (p_i, Q_i), z_iu jobs in phase u and Z_i = Σ_u z_iu in all.
A class rule gives each of them g_i cores, so that they work at speed h_i = s_i(g_i):

    ż_i = λ_i p_i + h_i · z_i Q_i,      Σ_i Z_i g_i(l) = n.

Everything depends on the counts through one number, the price l. Writing G' = Σ Z g', G'' = Σ Z g'',

    l_j = ∂l/∂Z_j = −g_j/G',        l_jk = −(g_j' l_k + g_k' l_j + G'' l_j l_k)/G'
    ∂F_iu/∂z_jw = δ_ij h_i Q_i(w,u) + h_i' l_j (z_i Q_i)_u
    ∂²F_iu/∂z_jw∂z_kx = δ_ij h_i' l_k Q_i(w,u) + δ_ik h_i' l_j Q_i(x,u)
                        + (h_i'' l_j l_k + h_i' l_jk)(z_i Q_i)_u.

Where demand jumps at the price (tables, whole cores), the cores that are left decide how far the tied classes
get on their chord, and that *share* takes the place of l in the same formulas, with g and h linear in it.

The paper's equation ends where jobs outnumber cores. There we let all of them time-share, each on its least
width for n/Σz of the time, so that F is continuous and a trajectory may pass; this is again a tie, between
no cores and the least width. GREEDY with unequal weights serves the more valuable class first instead, as
it does in the system itself; EQUI needs no extension.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy import linalg

from malleable import catalog
from malleable.errors import UnstableError, UnsupportedError
from malleable.model import checked_cores
from malleable.theory.any_width import check_any_width
from malleable.theory.market import Buyers, Clearing, WhittleBuyers, clear
from malleable.theory.relaxed import relax
from malleable.theory.size_phases import size_phases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from malleable.contracts import FloatArray, Policy
    from malleable.model import Workload

TIE = 1e-6
"""Relative distance of two widths on sale at one price, above which the price is a jump of the demand."""
NEARBY = 1e-4
"""Relative change of the price over which demand is looked at to tell a corner from a smooth curve."""
STEPS, FOLLOWED = 8, 1e-11
"""Secant steps that may be spent on following the price, and the relative error that ends them."""
LARGE, TINY = 1e3, 1e-300
FEW_PHASES = 64
"""Up to this many phases a full matrix is faster than its blocks."""
FEWEST = 1e-9
"""Jobs a core below which the system is empty for all purposes, and prices beyond all digits."""


class FixedPoint(NamedTuple):
    """A state in which nothing changes, and the market there."""

    state: FloatArray
    """z_iu, jobs of each phase, class after class."""
    jobs: FloatArray
    """Z_i, jobs of each class."""
    widths: FloatArray
    """g_i, cores for each job of the class."""
    price: float
    cost: float
    """Mean holding cost per job, (1/λ) Σ c_i Z_i."""
    market: Clearing


class Response(NamedTuple):
    """Cores and speed of a job of each class, each with two derivatives in the price (rows 0, 1, 2)."""

    cores: FloatArray
    speed: FloatArray
    tied: bool
    """Whether the derivatives are in the share of a tie instead."""


class Fluid:
    """The fluid equation ż = F(z) of a policy on `cores` cores, with its derivatives and its fixed point."""

    by_price: ClassVar[bool] = True
    """Whether counts act through one price alone."""
    patience: float = np.inf
    """How often an integrator may ask for the drift on one trajectory."""

    def __init__(self, workload: Workload, policy: Policy, cores: float) -> None:
        self.workload, self.policy, self.cores = workload, policy, checked_cores(cores)
        check_any_width(workload, "fluid equation")
        # A rule that is asked itself has none; these say what is feasible, and how fast widths are.
        self.buyers: Buyers = policy.buyers(workload) or WhittleBuyers(
            workload.speedups, workload.holding_costs
        )
        laws = [size_phases(job_class, "fluid equation") for job_class in workload.classes]
        lengths = [len(p) for p, _ in laws]
        self.owner = np.repeat(np.arange(len(laws)), lengths)
        """The class of each phase."""
        self._starts = np.cumsum([0, *lengths[:-1]])
        self.arrivals = np.concatenate([rate * p for rate, (p, _) in zip(workload.rates, laws, strict=True)])
        """λ_i p_iu."""
        self.generator: FloatArray = linalg.block_diag(*(Q for _, Q in laws))
        self._entry = self.buyers.entry
        self.satiable = bool(np.isfinite(self.buyers.most).all())
        """Whether there is an end to what jobs can use."""
        self.shares_time = bool((self._entry == self._entry[0]).all())
        """Whether jobs that outnumber cores share them in time."""
        self.blocks = _blocks([Q for _, Q in laws], self._starts)
        """Classes with as many phases together: which, the places of their phases, and their generators."""

    def by_class(self, state: FloatArray) -> FloatArray:
        """Sum phases (the last axis) to classes."""
        return np.asarray(np.add.reduceat(state, self._starts, axis=-1))

    @cached_property
    def work(self) -> FloatArray:
        """λ_i p_i (−Q_i)⁻¹: the work that arrives in each phase per unit of time."""
        out = np.empty(len(self.owner))
        for _, phases, generators in self.blocks:
            out[phases] = np.linalg.solve(-generators.swapaxes(1, 2), self.arrivals[phases][..., None])[
                ..., 0
            ]
        return out

    def flow(self, state: FloatArray) -> FloatArray:
        """z_i Q_i of each class, at unit speed."""
        if len(self.owner) <= FEW_PHASES:
            return np.asarray(state @ self.generator)
        out = np.empty(state.shape)
        for _, phases, generators in self.blocks:
            out[..., phases] = (state[..., phases][..., None, :] @ generators)[..., 0, :]
        return out

    @property
    def floor(self) -> FloatArray:
        """Cores that a job of each class takes at least where all are served at the same time."""
        return np.maximum(self.buyers.floor, 1.0)

    def overload(self, state: FloatArray) -> FloatArray:
        """Cores that the least widths of all jobs need, relative to those there are; above 1 is overload."""
        return np.asarray(self.by_class(state) @ self.floor / self.cores)

    def market(self, jobs: FloatArray, previous: Clearing | None = None) -> Clearing:
        """The cores that a job of each class gets when the classes have `jobs` jobs.

        The market of a `previous`, similar state makes it several times faster, at eleven digits.
        """
        needed = float(jobs @ self.buyers.floor)
        if needed >= self.cores and self.shares_time:
            return Clearing(np.inf, np.zeros(len(jobs)), self.buyers.least, self.cores / needed)
        if self.satiable and float(jobs @ self.buyers.most) <= self.cores:
            return Clearing(0.0, self.buyers.most, self.buyers.most, 0.0)
        nearby = None if previous is None else self._followed(jobs, previous)
        return nearby or clear(self.bought, jobs, self.cores)

    def _followed(self, jobs: FloatArray, previous: Clearing) -> Clearing | None:
        """The same tie with another share, or secant steps in log price and log demand; None if lost."""
        low, high = float(jobs @ previous.low), float(jobs @ previous.high)
        if low <= self.cores < high:
            return previous._replace(share=(self.cores - low) / (high - low))
        price = previous.price
        if not 0.0 < price < np.inf:
            return None
        # Demand at a power-law speedup is proportional to 1/l: slope −1 is a good first guess.
        slope, before, last = -1.0, 0.0, 0.0
        for step in range(STEPS):
            widths = self.bought(price)
            excess = float(np.log(max(float(jobs @ widths), TINY) / self.cores))
            if abs(excess) <= FOLLOWED:
                return Clearing(price, widths, widths, 0.0)
            if step:
                slope = (excess - before) / last
            if not -LARGE < slope < -1.0 / LARGE:
                return None
            before, last = excess, -excess / slope
            price *= float(np.exp(last))
        return None

    def bought(self, price: FloatArray | float) -> FloatArray:
        """The cores that a job of each class buys at a price; several prices stand below each other."""
        return np.where(price > self._entry, 0.0, self.buyers.demand(price))

    def _speeds(self, market: Clearing) -> tuple[FloatArray, FloatArray]:
        return self.buyers.speedups(market.low), self.buyers.speedups(market.high)

    def drift(self, state: FloatArray, market: Clearing | None = None) -> FloatArray:
        """F(z). Counts that an integrator took below zero buy nothing."""
        jobs = np.maximum(self.by_class(state), 0.0)
        if not jobs.any():
            return self.arrivals
        market = market or self.market(jobs)
        slow, fast = self._speeds(market)
        speed = slow + market.share * (fast - slow)
        return self.arrivals + speed[self.owner] * (self.flow(state))

    def response(self, market: Clearing) -> Response:
        """How cores and speed react to the price, or to the share of a tie."""
        gap, widths, none = market.high - market.low, market.quantities, np.zeros(len(market.low))
        slow, fast = self._speeds(market)
        if (gap > TIE * market.high).any():
            speeds = slow + market.share * (fast - slow)
            return Response(np.array([widths, gap, none]), np.array([speeds, fast - slow, none]), tied=True)
        if market.price == 0.0:
            return Response(np.array([widths, none, none]), np.array([slow, none, none]), tied=False)
        g, g1, g2 = self.buyers.derivatives(market.price)
        below, above = (self.bought(market.price * (1.0 + step)) for step in (-NEARBY, NEARBY))
        # A corner of a speedup without formulas shows as a wild slope where demand does not move at all.
        moves = np.abs(above - below) >= 0.02 * NEARBY * market.price * np.abs(g1)
        moves &= market.price <= self._entry
        g1, g2 = np.where(moves, g1, 0.0), np.where(moves, g2, 0.0)
        _, s1, s2, _ = self.buyers.speedups.derivatives(np.maximum(g, 1.0))
        s1, s2 = np.where(g < 1.0, 1.0, s1), np.where(g < 1.0, 0.0, s2)
        return Response(
            np.array([widths, g1, g2]), np.array([slow, s1 * g1, s2 * g1**2 + s1 * g2]), tied=False
        )

    def jacobian(self, state: FloatArray, market: Clearing | None = None) -> FloatArray:
        """A = DF(z): row iu, column jw."""
        jobs = self.by_class(state)
        cores, (h, h1, _), _ = self.response(market or self.market(jobs))
        gradient, _ = price_gradients(jobs, cores)
        flow = self.flow(state)
        own = h[self.owner, None] * self.generator.T
        return np.asarray(own + np.outer(h1[self.owner] * flow, gradient[self.owner]))

    def curvature(self, state: FloatArray, W: FloatArray, market: Clearing | None = None) -> FloatArray:
        """D²F(z):W = Σ_ab ∂²F/∂z_a∂z_b W_ab for a symmetric W, without ever holding the tensor."""
        jobs = self.by_class(state)
        cores, (_, h1, h2), _ = self.response(market or self.market(jobs))
        first, second = price_gradients(jobs, cores)
        C = self.by_class(self.by_class(W).T)
        own = 2.0 * h1[self.owner] * ((W @ first[self.owner]) @ self.generator)
        shared = h2 * float(first @ C @ first) + h1 * float((second * C).sum())
        return np.asarray(own + shared[self.owner] * (self.flow(state)))

    def fixed_point(self) -> FixedPoint:
        """The state with F(z) = 0, at the price where Σ load_i k_i/s_i(k_i) = n: arriving work uses n cores.

        There Z_i = load_i/s_i(k_i), and the phases are filled in proportion to λ_i p_i (−Q_i)⁻¹.
        """
        relaxed = relax(self.workload, self.buyers, self.cores)
        price = relaxed.price / self.buyers.unit
        self._check_served(price)
        state = self.work * relaxed.durations[self.owner]
        jobs = self.by_class(state)
        total = float(jobs.sum())
        if total < FEWEST * self.cores:
            raise UnsupportedError(
                f"with {total:.2g} jobs present on {self.cores:g} cores there is no limit of many",
                "use a higher load; `malleable bound` has an answer at any",
            )
        market = clear(self.bought, jobs, self.cores, price) if price else self.market(jobs)
        cost = float(self.workload.holding_costs @ jobs) / self.workload.total_rate
        return FixedPoint(state, jobs, relaxed.widths, relaxed.price, cost, market)

    def no_expansion(self, point: FixedPoint) -> str:  # noqa: ARG002 - others look at it
        """Why there is no expansion in 1/n, whatever its terms; empty if there is."""
        return ""

    def _check_served(self, price: float) -> None:
        """A class priced out of the market grows without bound, whatever the load."""
        name, unit = catalog.display("policies", self.policy.kind), self.buyers.unit
        starved = int(np.argmax(price / self._entry))
        if price > self._entry[starved] * (1.0 + 1e-12):
            raise UnstableError(
                f"{name} leaves class {self.workload.class_names[starved]!r} without cores: the others pay "
                f"{price * unit:.4g} a core, its jobs are worth {self._entry[starved] * unit:.4g}",
                "use wham, equal weights, more cores or a lower load",
            )


def _blocks(
    generators: Sequence[FloatArray], starts: NDArray[np.intp]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]]:
    sizes = np.array([len(Q) for Q in generators])
    blocks = []
    for size in np.unique(sizes):
        classes = np.flatnonzero(sizes == size)
        phases = starts[classes][:, None] + np.arange(size)
        blocks.append((classes, phases, np.stack([Q for Q in generators if len(Q) == size])))
    return blocks


def price_gradients(jobs: FloatArray, cores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First and second derivatives of the price in the class counts, from (g, g', g'')."""
    g, g1, g2 = cores
    G1, G2 = float(jobs @ g1), float(jobs @ g2)
    if G1 == 0.0:
        # No class reacts to the price, so it does not matter.
        return np.zeros_like(g), np.zeros((len(g), len(g)))
    first = -g / G1
    mixed = np.outer(g1, first)
    return first, -(mixed + mixed.T + G2 * np.outer(first, first)) / G1
