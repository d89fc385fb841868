"""`Learner`: a speedup that is learned while jobs run, one observation at a time.

An observation is the rate (progress per unit of time) of a job on a whole number of cores. The model starts
from a prior speedup s₀ and lets the truth drift away from it over the widths:

    log r(k) = a + log s₀(k) + δ(k),   δ(1) = 0,   Cov(δ(k), δ(k')) = τ² · log₂ min(k, k'),

with a unknown: δ is a Brownian motion in log₂ k, so s₀ is trusted to within a factor of e^τ per doubling.
Where nothing was observed, ratios of speeds are those of the prior. Given the observed widths this is a
Gaussian regression in closed form (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006,
section 2.7, for the unknown level), which also says how uncertain s(k) is. The answer is then moved to the
nearest concave, non-falling speedup with s(k) ≤ k, by non-negative least squares.

Robust to bad samples: per width, the first few observations count by their median, later ones move a running
mean by no more than a few standard deviations (Huber's estimator as a recursion); and a width observed once
or twice that contradicts all others is given less weight. Several observations out of reach in a row, all on
one side, are no accident: the job has changed, and that width starts anew.

Memory does not grow: at most `MOST_WIDTHS` widths are kept, with a handful of numbers each; an observation at
a further width counts at the nearest kept one, corrected by the ratio of the speedup last asked for. Adding
takes microseconds; the regression waits until the speedup is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Speedup
from malleable.errors import ParameterError
from malleable.speedups.table import Table

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

MOST_WIDTHS = 32
FIRST = 5
"""Observations at a width that count by their median."""
REACH = 3.0
"""Standard deviations by which one observation may pull at most."""
NOISE, NOISE_WEIGHT = 0.1, 4.0
"""The standard deviation of log rates believed at the start, and how many observations that is worth."""
MAD = 0.7979
"""Mean absolute deviation of a normal law, over its standard deviation."""
DOUBT = 2.0
"""Standard deviations from the others beyond which a width observed once or twice is doubted."""
WIDE = 100.0
"""Variance of the level, which is unknown."""
LEAST = 1e-6
"""Least variance of what is known about a width: 0.1 %, far below what matters."""
MEMORY = 1000
"""Observations at a width that count; older ones fade, so that a job that changes is followed."""


@dataclass
class _Width:
    """What was observed at one width: log rates."""

    first: list[float] = field(default_factory=list)
    count: int = 0
    centre: float = 0.0
    streak: int = 0
    """Observations out of reach one after the other, all above (positive) or all below the centre."""

    def add(self, value: float, noise: float) -> float:
        """Take in an observation; returns how far it lay from the centre, cut at the reach."""
        far = int(value > self.centre + REACH * noise) - int(value < self.centre - REACH * noise)
        self.streak = self.streak + far if far * self.streak > 0 else far
        if abs(self.streak) >= FIRST and self.count > FIRST:  # no noise does that: the job has changed
            self.first, self.count, self.streak = [], 0, 0
        self.count += 1
        off = min(max(value - self.centre, -REACH * noise), REACH * noise) if self.count > 1 else 0.0
        if self.count <= FIRST:
            self.first.append(value)
            self.centre = float(np.median(self.first))
        else:
            self.centre += off / min(self.count, MEMORY)
        return off


class Learner:
    """Learns a speedup from rates observed at whole widths, in constant memory.

    `prior` is where it starts from; `trust` is how far the truth may be from it, as the standard deviation of
    the logarithm per doubling of the cores; `limit` is the widest width that will be asked for.
    """

    def __init__(self, prior: Any, *, trust: float = 0.2, limit: int = 1024) -> None:
        self.prior = Speedup.of(prior)
        if not 0.0 < trust < inf:
            raise ParameterError(f"trust must be a number above 0, got {trust!r:.40}", "for example 0.2")
        self.trust = float(trust)
        self.limit = _whole(limit, "limit")
        self.observations = 0
        self._widths: dict[int, _Width] = {}
        self._deviation, self._deviations = MAD * NOISE, NOISE_WEIGHT
        self._current: tuple[Speedup, FloatArray, FloatArray] | None = None
        self._last = self.prior

    def add(self, cores: int, rate: float) -> None:
        """Take in one observation: `rate` is work per unit of time, 1/time for a whole run."""
        k = _whole(cores, "cores")
        if not 0.0 < rate < inf:
            raise ParameterError(f"a rate must be a number above 0, got {rate!r:.40}", "give work per time")
        value = log(rate)
        if k not in self._widths and len(self._widths) >= MOST_WIDTHS:
            near = min(self._widths, key=lambda kept: abs(log(kept / k)))
            value += log(float(self._last(near)) / float(self._last(k)))
            k = near
        width = self._widths.setdefault(k, _Width())
        off = abs(width.add(value, self.noise))
        if width.count > 1:
            # The centre holds the observation's own share already; √(n/(n−1)) makes up for it.
            self._deviations = min(self._deviations + 1.0, 1e6)
            self._deviation += (off * (1.0 - 1.0 / width.count) ** 0.5 - self._deviation) / self._deviations
        self.observations += 1
        self._current = None

    @property
    def noise(self) -> float:
        """The standard deviation of one observed log rate, as far as is known."""
        return max(self._deviation / MAD, 1e-4)

    @property
    def speedup(self) -> Speedup:
        """What is believed now: concave, not falling, and s(k) ≤ k; at first the prior, if it is so."""
        return self._learned()[0]

    @property
    def points(self) -> tuple[tuple[int, float], ...]:
        """The typical rate observed at each width, as a multiple of the speed believed on one core.

        Rates have a level of their own; it is taken to be the one at which half of the points lie above the
        speedup that is believed.
        """
        if not self._widths:
            return ()
        widths = sorted(self._widths)
        logs = np.array([self._widths[k].centre for k in widths])
        level = np.median(logs - np.log(np.asarray(self.speedup(np.array(widths, dtype=float)))))
        return tuple(zip(widths, np.exp(logs - level).tolist(), strict=True))

    def uncertainty(self, cores: int) -> float:
        """The standard deviation of log s(k): 0.1 means that s(k) is known to about 10 %."""
        _, knots, deviations = self._learned()
        return float(np.interp(np.log2(_whole(cores, "cores")), np.log2(knots), deviations))

    def _learned(self) -> tuple[Speedup, FloatArray, FloatArray]:
        """The speedup, and the standard deviation of its logarithm at some widths."""
        if self._current is None:
            knots = self._knots()
            mean, deviation = self._posterior(knots)
            base = np.log(np.asarray(self.prior(knots), dtype=float))
            believed = np.exp(base + mean)
            as_is = not self._widths and self._is_sound(knots, believed)
            self._last = self.prior if as_is else _projected(knots, believed, deviation)
            self._current = self._last, knots, deviation
        return self._current

    def _is_sound(self, knots: FloatArray, speeds: FloatArray) -> bool:
        """Whether the prior is concave, does not fall up to the limit, and is at most linear."""
        rises = np.all(np.diff(speeds) >= 0.0) and np.all(speeds <= knots * (1.0 + 1e-12))
        return bool(self.prior.concave and rises)

    def _knots(self) -> FloatArray:
        """Widths at which the speedup may bend: two per doubling, those observed, and the widest."""
        doublings = np.arange(int(np.log2(self.limit)) + 1)
        grid = np.append(2.0**doublings, 3.0 * 2.0**doublings)
        return np.unique([*grid[grid <= self.limit], float(self.limit), *map(float, self._widths)])

    def _posterior(self, knots: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of δ at the knots."""
        k = np.array(sorted(self._widths), dtype=float)
        cells = [self._widths[int(width)] for width in k]
        counts = np.array([float(cell.count) for cell in cells])
        if not cells:
            return np.zeros(len(knots)), self.trust * np.sqrt(np.log2(knots))
        y = np.array([cell.centre for cell in cells]) - np.log(np.asarray(self.prior(k), dtype=float))
        y -= np.median(y)  # the level is unknown, and this keeps numbers small
        noise = np.maximum(self.noise**2 / np.minimum(counts, MEMORY), LEAST)
        noise *= self._doubt(k, y, noise, counts)
        shared = self._covariance(k, knots)
        gain = np.linalg.solve(self._covariance(k, k) + WIDE + np.diag(noise), shared).T
        variance = np.diag(self._covariance(knots, knots)) - np.sum(gain * shared.T, axis=1)
        return np.asarray(gain @ y), np.sqrt(np.maximum(variance, 0.0))

    def _covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Covariances of δ at widths."""
        return np.asarray(self.trust**2 * np.log2(np.minimum(a[:, None], b[None, :])))

    def _doubt(self, k: FloatArray, y: FloatArray, noise: FloatArray, counts: FloatArray) -> FloatArray:
        """By how much to raise the variance of widths that were observed little and contradict the rest.

        What the others say about each comes from the inverse of the covariance (same book, section 5.4.2).
        """
        precision = np.linalg.inv(self._covariance(k, k) + WIDE + np.diag(noise))
        z = (precision @ y) / np.sqrt(np.diag(precision))
        return np.where((counts <= 2.0) & (np.abs(z) > DOUBT), z**4, 1.0)


def _projected(knots: FloatArray, speeds: FloatArray, deviation: FloatArray) -> Speedup:
    """The nearest speedup that is concave, does not fall, and is at most linear; sure widths count more."""
    from scipy.optimize import nnls  # noqa: PLC0415 - slow to import

    weight = 1.0 / (speeds * (0.01 + deviation))
    # Every sum of min(k, kⱼ) with weights of at least 0 is concave and goes through the origin.
    found, _ = nnls(np.minimum(knots[:, None], knots[None, :]) * weight[:, None], speeds * weight)
    fitted = np.minimum(knots[:, None], knots[None, :]) @ found
    return Table(tuple(knots.tolist()), (1.0, *(fitted[1:] / fitted[0]).tolist()), hull=True)


def _whole(value: Any, name: str) -> int:
    if value != value or value in {inf, -inf} or int(value) != value or value < 1:  # noqa: PLR0124 - NaN
        raise ParameterError(f"{name} must be a whole number of at least 1, got {value!r:.40}")
    return int(value)
