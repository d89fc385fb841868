"""Cores as a market: every class of jobs buys cores at one price, and the price clears the market.

The three class rules differ only in what a job wants at price l:

    WHAM    argmin over k ≥ 1 of (c + l·k)/s(k)           (the paper's relaxed problem)
    GREEDY  argmax over k of w·s(k) − l·k                  (most work, or most weighted completions, now)
    EQUI    the same for all jobs, 1/l

Total demand falls with the price; it is smooth for smooth speedups and jumps for tables. `clear` ends with
two neighbouring prices, one at which the cores do not suffice and one at which they do, and shares what
lies between: for a tied class with concave speedup that is the optimal split, k = a + r/N each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import ParameterError
from malleable.numerics.roots import last_bracket
from malleable.speedups.base.numeric import NumericSpeedup
from malleable.speedups.base.stack import Stack
from malleable.speedups.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.contracts import FloatArray, Speedup

UNLIMITED = float("inf")
FREE, PROHIBITIVE = 1e-280, 1e280
"""Prices beyond which demand is taken to have reached its limits."""
ENORMOUS = 1e100
"""Cores that stand for infinitely many, so that differences remain numbers."""
EXTREME = 1e100
"""Costs up to this, and down to its inverse, leave room for the prices that they make."""
SAME = 1e-9
"""Relative difference of values that is rounding."""
WIDEST = 1e64
"""The longest step in the search for a bracket around the price."""


def cost_unit(weights: FloatArray) -> float:
    """The unit in which costs lie in the middle of the numbers: 1, or a power of two where they are extreme.

    Only ratios of costs matter to a market, but its prices must be numbers; a power of two costs no digits.
    """
    low, high = float(np.min(weights, initial=np.inf)), float(np.max(weights, initial=0.0))
    if low >= 1.0 / EXTREME and high <= EXTREME:
        return 1.0
    if not (0.0 < low <= high < np.inf and high / EXTREME**2 <= low * (1.0 + SAME)):
        raise ParameterError(
            f"weights of jobs (holding costs, as a rule) from {low:.4g} to {high:.4g} cannot be compared",
            f"let them differ by a factor of at most {EXTREME**2:g}",
        )
    return float(2.0 ** round(0.5 * (np.log2(low) + np.log2(high))))


class Buyers(ABC):
    """Groups of identical jobs, and the cores each job of a group wants at a price.

    Weights, and so prices, are in multiples of `unit` (1 unless they are extreme, see `cost_unit`).
    `least` is the width below which no job runs while cores are scarce (the most efficient one), `most`
    the width beyond which cores do not help. Under a `cap` no job may use more than that many cores.
    """

    def __init__(
        self,
        speedups: Sequence[Speedup],
        weights: FloatArray,
        *,
        cap: float = UNLIMITED,
        integer: bool = False,
    ) -> None:
        limited = [_on_integers(s, cap) if integer else s.capped(cap) for s in speedups]
        self.speedups = Stack(limited)
        self.unit = cost_unit(weights)
        self.weights = np.asarray(weights, dtype=float) / self.unit
        self.integer = integer
        self.least = np.minimum(self.speedups.most_efficient, cap)
        self.most = np.minimum(self.speedups.peak, cap)
        if integer:
            self.least = _better_integer(self.least, cap, lambda k: self.speedups(k) / k)
            self.most = np.maximum(_better_integer(self.most, cap, self.speedups), self.least)

    @property
    def floor(self) -> FloatArray:
        """Cores that a served job has at any price, however high."""
        return self.least

    @property
    def entry(self) -> FloatArray:
        """The price above which a job takes nothing at all."""
        return np.full(self.speedups.size, np.inf)

    @abstractmethod
    def wish(self, price: FloatArray | float) -> FloatArray:
        """Real-valued cores that one job of each group wants, before limits."""

    @abstractmethod
    def loss(self, price: FloatArray | float, cores: FloatArray) -> FloatArray:
        """What a job of each group minimises at this price."""

    @abstractmethod
    def derivatives(self, price: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Demand g(l) and its first two derivatives in the price."""

    def demand(self, price: FloatArray | float) -> FloatArray:
        """Cores that one job of each group wants at this price, within its limits."""
        wish = np.clip(self.wish(price), self.least, np.minimum(self.most, ENORMOUS))
        if not self.integer:
            return wish
        down, up = np.floor(wish), np.minimum(np.ceil(wish), self.most)
        return np.where(self.loss(price, up) < self.loss(price, down), up, down)

    def _within_limits(
        self, cores: FloatArray, slope: FloatArray, bend: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Demand with its derivatives, which vanish at the limits and at the corners of a speedup."""
        moves = (cores > self.least) & (cores < self.most) & np.isfinite(slope) & (not self.integer)
        return cores, np.where(moves, slope, 0.0), np.where(moves, bend, 0.0)


class WhittleBuyers(Buyers):
    """Jobs that minimise (c + l·k)/s(k): holding cost plus rent, per unit of work."""

    def wish(self, price: FloatArray | float) -> FloatArray:
        return self.speedups.demand(price, self.weights)

    def loss(self, price: FloatArray | float, cores: FloatArray) -> FloatArray:
        return (self.weights + price * cores) / self.speedups(cores)

    def derivatives(self, price: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        # g inverts c·f with f = s'/(s − k s'), f' = s s''/(s − k s')².
        g = self.demand(price)
        s, s1, s2, s3 = self.speedups.derivatives(g)
        d = s - g * s1
        with np.errstate(divide="ignore", invalid="ignore"):
            f1 = s * s2 / d**2
            f2 = (s * s3 + s1 * s2) / d**2 + 2.0 * g * s * s2**2 / d**3
            slope, bend = 1.0 / (self.weights * f1), -f2 / (self.weights**2 * f1**3)
        return self._within_limits(g, slope, bend)


class GreedyBuyers(Buyers):
    """Jobs that maximise w·s(k) − l·k, so that together they maximise Σ w_j s_j(k_j)."""

    @property
    def entry(self) -> FloatArray:
        return self.weights * self.speedups(self.least) / self.least

    def wish(self, price: FloatArray | float) -> FloatArray:
        return self.speedups.work_demand(price, self.weights)

    def loss(self, price: FloatArray | float, cores: FloatArray) -> FloatArray:
        return price * cores - self.weights * self.speedups(cores)

    def derivatives(self, price: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        g = self.demand(price)
        _, _, s2, s3 = self.speedups.derivatives(g)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope, bend = 1.0 / (self.weights * s2), -s3 / (self.weights**2 * s2**3)
        return self._within_limits(g, slope, bend)


class EqualBuyers(Buyers):
    """Jobs that all get the same: 1/l."""

    @property
    def floor(self) -> FloatArray:
        return np.zeros(self.speedups.size)

    def wish(self, price: FloatArray | float) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.divide(1.0, price) * np.ones(self.speedups.size))

    def demand(self, price: FloatArray | float) -> FloatArray:
        return np.minimum(self.wish(price), self.most)

    def loss(self, price: FloatArray | float, cores: FloatArray) -> FloatArray:
        return np.abs(cores - 1.0 / price)

    def derivatives(self, price: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        g = self.demand(price)
        inside = g < self.most
        return g, np.where(inside, -1.0 / price**2, 0.0), np.where(inside, 2.0 / price**3, 0.0)


class Clearing(NamedTuple):
    """The clearing price and the quantities on both sides of it.

    At the price just above, the jobs want `low` and the cores suffice; just below, they want `high` and the
    cores do not; `share` says how far they reach.
    """

    price: float
    low: FloatArray
    high: FloatArray
    share: float

    @property
    def quantities(self) -> FloatArray:
        """The quantities that use exactly the cores there are."""
        return self.low + self.share * (self.high - self.low)


def clear(
    quantity: Callable[[float], FloatArray], counts: FloatArray, cores: float, guess: float | None = None
) -> Clearing:
    """Find the price at which Σ counts·quantity(price) = cores.

    Price 0 means that every job has all that helps and cores are left over. The caller makes sure that
    the cores suffice at high prices. A `guess` near the price saves two thirds of the work.
    """

    def excess(price: float) -> float:
        return float(counts @ quantity(price)) - cores

    high = low = 1.0 if guess is None else min(max(guess, FREE), PROHIBITIVE)
    factor = 16.0 if guess is None else 1.001
    # The steps grow, so that "cores are left over at any price" takes ten of them and not hundreds.
    if excess(low) > 0.0:
        while high < PROHIBITIVE and excess(high) > 0.0:
            low, high, factor = high, min(high * factor, PROHIBITIVE), min(factor**2, WIDEST)
        if excess(high) > 0.0:
            # Rounding: the least widths exceed the cores by dust, and no price can help.
            least = quantity(high)
            return Clearing(high, least, least, 0.0)
    else:
        while low > FREE and excess(low) <= 0.0:
            low, high, factor = max(low / factor, FREE), low, min(factor**2, WIDEST)
        if excess(low) <= 0.0:
            everything = quantity(FREE)
            return Clearing(0.0, everything, everything, 0.0)
    low, high = last_bracket(excess, low, high)
    least, most = quantity(high), quantity(low)
    missing, gap = cores - float(counts @ least), float(counts @ (most - least))
    return Clearing(high, least, most, min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0)


def _better_integer(width: FloatArray, cap: float, merit: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """The neighbouring integer of each width with the higher merit, the wider one where they tie."""
    finite = np.where(np.isfinite(width), width, 1.0)
    down, up = np.floor(finite), np.minimum(np.ceil(finite), np.floor(cap))
    better = merit(up) >= merit(down)
    return np.where(np.isfinite(width), np.where(better, up, down), width)


def _on_integers(speedup: Speedup, cap: float) -> Speedup:
    """A speedup to be used on whole cores only: where it is not concave, the table of its integer values."""
    if speedup.concave:
        return speedup
    limit = np.floor(min(cap, np.ceil(speedup.peak)))
    if isinstance(speedup, NumericSpeedup):
        widths = np.unique(np.round(speedup.grid[0]))
        widths = np.append(widths[widths < limit], limit)
    else:
        widths = np.arange(1.0, limit + 1.0)
    speeds = np.maximum.accumulate(speedup(widths))
    return Table(tuple(widths.tolist()), tuple(speeds.tolist()))
