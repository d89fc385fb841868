"""The paper's single-armed bandit, solved: one job, cores for rent at price l, discounting at rate α.

A job of weight c with remaining size x rents k cores at a time, whichever it likes, and pays holding cost and
rent until it completes. In units in which waiting forever costs c, the least cost V(x) obeys

    α(c − V) = max over k of [s(k)·V′ − l·k],      V(0) = 0,

the maximum including k = 0. With rent y = l/(αc), horizon a = αx and q = 1 − V/c, the share of the cost that
the job can still save, this is −dq/da = φ(q, y), where φ(q, y) = min_k (q + y·k)/s(k) is what WHAM pays for a
unit of work at price y when waiting costs q. Since φ(q, y) = q·φ(y/q), with φ(r) = φ(1, r), the *effective
rent* r = y/q obeys dr/da = r·φ(r). So everything follows from one function per speedup,

    Ψ(r) = ∫_r^∞ dr'/(r' φ(r')),

the horizon at which a job stops being worth its rent r:

* the optimal action is WHAM's width g(r) at the effective rent r with Ψ(r) = Ψ(y) − αx;
* the Whittle index is l = αc·Ψ⁻¹(αx): at a higher price Ψ(y) ≤ αx, and the job waits;
* V(x) = c·(1 − y/r), and c for a job that waits;
* r rises with y, so the action falls with the price: every job is indexable, for every speedup and α > 0.

As α → 0 the horizon vanishes: r → y, which is WHAM's width at price l/α, and the index tends to
c·s(k_e)/(k_e·x).

Ψ is integrated once, on nodes of log r between the rents at which g leaves its narrowest and reaches its
widest value; beyond these g is constant and Ψ is s(k)·log(1 + 1/(rk)), but for a constant. In between a cubic
through Ψ and its slope −1/φ is used, in both directions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.contracts import FloatArray, Speedup

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

REACH = 2.0**40
"""Cores beyond which no width is tried; stands in for "no limit"."""
SPACING = 1.0 / 32.0
"""Distance of the nodes in log r: a relative error of Ψ of about 10⁻⁹."""
FLAT = 1e-13
"""Rent of the widest action, relative to the holding cost, below which it is nothing."""
LARGEST, NEWTON_STEPS = 700.0, 6
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)


@dataclass(frozen=True, eq=False)
class Arms(ABC):
    """Jobs of one speedup (or of one family, stacked) as single-armed bandits with at most `limit` cores."""

    speedup: Speedup
    remaining: FloatArray
    weight: FloatArray
    discount: float
    limit: float = REACH

    @cached_property
    def low(self) -> FloatArray:
        """The narrowest width ever optimal."""
        return np.asarray(np.minimum(self.speedup.most_efficient, self.limit), dtype=float)

    @cached_property
    def high(self) -> FloatArray:
        """The widest one."""
        return np.asarray(np.clip(self.speedup.peak, self.low, self.limit), dtype=float)

    @cached_property
    def horizon(self) -> FloatArray:
        """a = αx."""
        return self.discount * self.remaining

    @abstractmethod
    def width(self, price: ArrayLike) -> FloatArray:
        """The best action of at least one core at this price, whether or not serving the job is worth it."""

    @abstractmethod
    def action(self, price: ArrayLike) -> FloatArray:
        """The best action: `width`, or 0 where waiting is no more expensive."""

    @abstractmethod
    def value(self, price: ArrayLike) -> FloatArray:
        """The discounted cost of the best action, c at most."""

    @property
    @abstractmethod
    def log_index(self) -> FloatArray:
        """Logarithm of the price below which the job is served."""

    @abstractmethod
    def log_step_value(self, k: FloatArray, wider: FloatArray) -> FloatArray:
        """Logarithm of the price below which `wider` beats `k`; −∞ where it never does."""


class Course(NamedTuple):
    """Ψ at rising log rents, with 1/φ = −dΨ/d log r: one column for all jobs, or one for each."""

    log_rent: FloatArray
    horizon: FloatArray
    rate: FloatArray


def course(speedup: Speedup, low: FloatArray, high: FloatArray) -> Course:
    """Ψ of a speedup (or of a stacked family) whose jobs take from `low` to `high` cores."""
    low, high = np.broadcast_arrays(np.atleast_1d(low), np.atleast_1d(high))
    bottom, top = _edge(speedup, high), _edge(speedup, low)
    hull = getattr(speedup, "pricing", None)
    steps = np.zeros((0, len(low)))
    if hull is not None:
        steps = np.broadcast_to(np.atleast_2d(hull.prices).T, (hull.prices.shape[-1], len(low)))
        bottom = np.minimum(bottom, np.where(steps > 0.0, steps, np.inf).min(axis=0, initial=np.inf))
        top = np.maximum(top, steps.max(axis=0, initial=0.0))
    bottom = np.log(np.maximum(bottom, FLAT / high))
    top = np.maximum(np.log(np.where(top > 0.0, top, np.exp(bottom))), bottom)
    count = 2 + int(float((top - bottom).max()) / SPACING)
    nodes = bottom + np.linspace(0.0, 1.0, count)[:, None] * (top - bottom)
    with np.errstate(divide="ignore"):
        u = np.sort(np.concatenate([nodes, np.clip(np.log(steps), bottom, top)]), axis=0)

    def rate(log_rent: FloatArray) -> FloatArray:
        r = np.exp(log_rent)
        k = np.clip(speedup.demand(r), low, high)
        return np.asarray(speedup.speed(k) / (1.0 + r * k))

    half = 0.5 * np.diff(u, axis=0)
    pieces = sum(
        weight * half * rate(u[:-1] + half * (1.0 + point))
        for point, weight in zip(_POINTS, _WEIGHTS, strict=True)
    )
    last = speedup.speed(low) * soft(-u[-1] - np.log(low))
    horizon = last + np.concatenate([np.cumsum(np.asarray(pieces)[::-1], axis=0)[::-1], 0.0 * u[-1:]])
    return Course(u, horizon, rate(u))


def _edge(speedup: Speedup, k: FloatArray) -> FloatArray:
    """f(k) = s′/(s − k·s′), the price below which a job of weight 1 takes more than k cores."""
    s, slope, *_ = speedup.derivatives(k)
    rest = s - k * slope
    return np.where((slope > 0.0) & (rest > 0.0), slope / np.where(rest > 0.0, rest, 1.0), 0.0)


def soft(t: FloatArray) -> FloatArray:
    """log(1 + e^t)."""
    return np.logaddexp(0.0, t)


def soft_inverse(v: FloatArray) -> FloatArray:
    """The t with log(1 + e^t) = v; −∞ at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(v + np.log(-np.expm1(-np.maximum(v, 0.0))))


class OptimalArms(Arms):
    """Jobs that may take another number of cores at any time."""

    @cached_property
    def _course(self) -> Course:
        return course(self.speedup, self.low, self.high)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """log k and s(k) of the narrowest and of the widest action."""
        low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
        return np.log(low), self.speedup.speed(low), np.log(high), self.speedup.speed(high)

    def _log_rent(self, price: ArrayLike) -> FloatArray:
        """log y."""
        with np.errstate(divide="ignore"):
            rent = np.log(np.asarray(price, dtype=float)) - np.log(self.discount) - np.log(self.weight)
        return np.asarray(rent)

    def _psi(self, u: FloatArray) -> FloatArray:
        """Ψ at log rents, one for each job."""
        known, (log_low, s_low, log_high, s_high) = self._course, self._ends
        bottom, top = known.log_rent[0], known.log_rent[-1]
        inner, _ = _cubic(known, np.clip(u, bottom, top))
        with np.errstate(invalid="ignore"):
            below = known.horizon[0] + s_high * (soft(-u - log_high) - soft(-bottom - log_high))
        return np.where(u >= top, s_low * soft(-u - log_low), np.where(u <= bottom, below, inner))

    def _psi_inverse(self, horizon: FloatArray) -> FloatArray:
        """The log rents at which Ψ takes these values; ∞ at 0."""
        known, (log_low, s_low, log_high, s_high) = self._course, self._ends
        most, least = known.horizon[0], known.horizon[-1]
        above = -log_low - soft_inverse(horizon / s_low)
        below = -log_high - soft_inverse(
            np.maximum(horizon - most, 0.0) / s_high + soft(-known.log_rent[0] - log_high)
        )
        inner = _cubic_inverse(known, np.clip(horizon, least, most))
        return np.where(horizon <= least, above, np.where(horizon >= most, below, inner))

    def _effective(self, price: ArrayLike) -> FloatArray:
        """log r, for jobs that are worth their rent; ∞ for others."""
        rest = self._psi(np.broadcast_to(self._log_rent(price), self.horizon.shape)) - self.horizon
        return np.where(rest > 0.0, self._psi_inverse(np.maximum(rest, 0.0)), np.inf)

    def width(self, price: ArrayLike) -> FloatArray:
        return self._bought(self._effective(price))

    def _bought(self, log_rent: FloatArray) -> FloatArray:
        rent = np.exp(np.minimum(log_rent, LARGEST))
        with np.errstate(divide="ignore"):
            k = np.where(rent > 0.0, self.speedup.demand(np.where(rent > 0.0, rent, 1.0)), self.high)
        return np.clip(k, self.low, self.high)

    def action(self, price: ArrayLike) -> FloatArray:
        log_rent = self._effective(price)
        return np.where(log_rent < np.inf, self._bought(log_rent), 0.0)

    def value(self, price: ArrayLike) -> FloatArray:
        """V(x): the least cost, c at most."""
        log_rent = self._effective(price)
        with np.errstate(invalid="ignore"):
            saved = np.where(log_rent < np.inf, np.exp(self._log_rent(price) - log_rent), 0.0)
        return np.asarray(self.weight * (1.0 - saved))

    @cached_property
    def log_index(self) -> FloatArray:
        return np.asarray(np.log(self.discount) + np.log(self.weight) + self._psi_inverse(self.horizon))

    def log_step_value(self, k: FloatArray, wider: FloatArray) -> FloatArray:
        """With V′ given, `wider` beats `k` if φ(r)/r exceeds (k' − k)/(s' − s), cores for a unit of speed."""
        gain = self.speedup(wider) - self.speedup(k)
        ratio = np.where(gain > 0.0, (wider - k) / np.where(gain > 0.0, gain, 1.0), 1.0)
        # φ(r)/r = min_k (1/r + k)/s(k) is this ratio at 1/r = max_k ratio·s(k) − k.
        best = np.clip(self.speedup.work_demand(1.0, ratio), self.low, self.high)
        inverse = np.maximum(ratio * self.speedup.speed(best) - best, 0.0)
        with np.errstate(divide="ignore"):
            beyond = np.where(inverse > 0.0, self._psi(-np.log(inverse)), 0.0)
        found = np.log(self.discount) + np.log(self.weight) + self._psi_inverse(self.horizon + beyond)
        return np.where(gain > 0.0, found, -np.inf)


def _cell(rising: FloatArray, value: FloatArray) -> Any:
    """Rows and columns of the pieces in which the values lie."""
    if rising.shape[1] == 1:
        row = np.searchsorted(rising[:, 0], value, side="right") - 1
        return np.clip(row, 0, len(rising) - 2), np.zeros(len(value), dtype=np.intp)
    row = np.clip((rising <= value).sum(axis=0) - 1, 0, len(rising) - 2)
    return row, np.arange(len(value))


def _piece(known: Course, row: Any, column: Any, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The cubic through Ψ and its slopes at both ends of a piece, and its own slope."""
    (u0, u1), (p0, p1), (m0, m1) = (
        (array[row, column], array[row + 1, column]) for array in (known.log_rent, known.horizon, known.rate)
    )
    h = np.where(u1 > u0, u1 - u0, 1.0)
    t, d = np.clip((u - u0) / h, 0.0, 1.0), p0 - p1
    # In the share d of the piece: 0 at its left end and 1 at its right one.
    a, b = h * m0, h * m1
    fallen = t * (a + t * (3.0 * d - 2.0 * a - b + t * (a + b - 2.0 * d)))
    slope = (a + t * (2.0 * (3.0 * d - 2.0 * a - b) + 3.0 * t * (a + b - 2.0 * d))) / h
    return p0 - fallen, slope


def _cubic(known: Course, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    row, column = _cell(known.log_rent, u)
    return _piece(known, row, column, u)


def _cubic_inverse(known: Course, horizon: FloatArray) -> FloatArray:
    row, column = _cell(-known.horizon, -horizon)
    low, high = known.log_rent[row, column], known.log_rent[row + 1, column]
    p0, p1 = known.horizon[row, column], known.horizon[row + 1, column]
    u = low + (high - low) * np.clip((p0 - horizon) / np.where(p0 > p1, p0 - p1, 1.0), 0.0, 1.0)
    for _ in range(NEWTON_STEPS):
        value, slope = _piece(known, row, column, u)
        u = np.clip(u + (value - horizon) / slope, low, high)
    return np.asarray(u)
