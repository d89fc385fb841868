"""Mixtures of Erlang laws: density and survival function of every law that is fitted to sizes, and their EM.

Exponential, Erlang, hyperexponential and the Coxian laws of `moments` all are sums Σⱼ wⱼ·Erlang(nⱼ, μⱼ) with
Σwⱼ = 1; in a Coxian law a weight may be negative. With positive weights they come near to any positive law
(Tijms, *Stochastic Models*, 1994, section 3.9), and each step of EM for given stages is in closed form: with
qᵢⱼ the probability that sample xᵢ is from part j, wⱼ = meanᵢ qᵢⱼ and μⱼ = nⱼ Σᵢqᵢⱼ / Σᵢqᵢⱼxᵢ. The stages are
tried in all ways that use at most the given number of phases (Thümmler, Buchholz and Telek, *A novel
approach for phase-type fitting with the EM algorithm*, IEEE TDSC 2006).
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.contracts import FloatArray

STEPS = 500
ENOUGH = 1e-7
"""Relative gain in likelihood per sample at which EM ends."""
BINS = 4096
"""More samples than this are replaced by the means of so many groups of neighbours."""


class Mixture(NamedTuple):
    """Weights, stages and rates of the parts."""

    weights: FloatArray
    stages: FloatArray
    rates: FloatArray

    def log_density(self, x: FloatArray) -> FloatArray:
        """The logarithm of the density."""
        parts = self.log_parts(x)
        top = parts.max(axis=1, keepdims=True)
        total = np.sum(self.weights * np.exp(parts - top), axis=1)
        # Weights of both signs may cancel to rounding far out in the tail.
        return np.asarray(np.log(np.maximum(total, 1e-300)) + top[:, 0])

    @property
    def parameters(self) -> int:
        """Weights that sum to 1, stages and rates."""
        return 3 * len(self.weights) - 1

    def bic(self, x: FloatArray, counts: FloatArray) -> float:
        """The Bayesian information criterion, where x[i] stands for counts[i] samples."""
        return -2.0 * float(counts @ self.log_density(x)) + self.parameters * log(counts.sum())

    def survival(self, x: FloatArray) -> FloatArray:
        """P(X > x)."""
        from scipy.special import gammaincc  # noqa: PLC0415 - slow to import

        values = gammaincc(self.stages, np.asarray(x)[:, None] * self.rates) @ self.weights
        return np.asarray(np.clip(values, 0.0, 1.0))

    def log_parts(self, x: FloatArray) -> FloatArray:
        """The logarithm of the density of each part."""
        from scipy.special import gammaln  # noqa: PLC0415 - slow to import

        n, mu, column = self.stages, self.rates, x[:, None]
        return np.asarray(n * np.log(mu) + (n - 1.0) * np.log(column) - mu * column - gammaln(n))

    def phase_type(self) -> tuple[FloatArray, FloatArray]:
        """(p, Q): the parts one below the other, each a row of stages."""
        p, Q = np.zeros(int(self.stages.sum())), np.zeros((int(self.stages.sum()),) * 2)
        start = 0
        for weight, count, rate in zip(self.weights, self.stages.astype(int), self.rates, strict=True):
            p[start] = weight
            inside = np.arange(start, start + count)
            Q[inside, inside] = -rate
            Q[inside[:-1], inside[1:]] = rate
            start += count
        return p, Q


def fit_mixture(samples: FloatArray, phases: int) -> Mixture:
    """The mixture of Erlang laws of at most that many phases with the lowest BIC for the samples."""
    groups = np.array_split(np.sort(samples), min(len(samples), BINS))
    x = np.array([group.mean() for group in groups])
    counts = np.array([float(len(group)) for group in groups])
    shapes = {stages for total in range(1, phases + 1) for stages in _partitions(total, total)}
    # The order of the parts matters where EM starts: peaks at small sizes, or at large ones.
    orders = sorted({order for stages in shapes for order in (stages, stages[::-1])})
    found = [_em(x, counts, np.array(stages, dtype=float)) for stages in orders]
    return min(found, key=lambda one: one.bic(x, counts))


def _partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum."""
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in _partitions(total - first, first):
            yield (first, *rest)


def _em(x: FloatArray, counts: FloatArray, stages: FloatArray) -> Mixture:
    """EM for given stages, started from equal parts of the sorted samples, in the order of the stages."""
    count = len(stages)
    means = np.array([part.mean() for part in np.array_split(x, count)])
    now = Mixture(np.full(count, 1.0 / count), stages, stages / means)
    before, share = -np.inf, counts / counts.sum()
    for _ in range(STEPS):
        logs = now.log_parts(x) + np.log(now.weights)
        top = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - top)
        total = shares.sum(axis=1, keepdims=True)
        likelihood = float(share @ (np.log(total) + top)[:, 0])
        shares /= total
        weights = np.maximum(share @ shares, 1e-12)
        rates = stages * (share @ shares) / np.maximum((share * x) @ shares, 1e-300)
        now = Mixture(weights / weights.sum(), stages, np.clip(rates, 1e-150, 1e150))
        if likelihood - before <= ENOUGH * max(1.0, abs(likelihood)):
            break
        before = likelihood
    return now
