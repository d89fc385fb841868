"""The best division of n cores, in many states at once: max Σ_p gain_p · R_p(z_p, a_p) with Σ a_p ≤ n.

A *part* is a group of jobs that nothing tells apart (a class, or a class in a phase). In a state there are
z_p jobs of part p; R_p(z, a) is the most speed that z of them can have together on a cores, and gain_p is
what a unit of that speed is worth. Two sets of allocations:

- `WholeCores`: every job has a whole number of cores. R_p(z, ·) is the z-fold max-plus power of s_p, that is
  R(z, a) = max_k R(z−1, a−k) + s(k), whatever the shape of s; the parts are then joined by max-plus
  convolution, F(a) = max_b F(a−b) + gain·R(z, b). Exact, as it looks at every division.
- `RealCores`: any widths, and a job on less than one core shares that core in time, s(k) = k for k ≤ 1. For
  a concave s equal widths are best, R(z, a) = z·s(a/z), and a price ν on cores solves the rest: part p takes
  the k that maximises gain·s(k) − ν·k, and ν is bisected until n cores are taken (in all states together).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from malleable.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup

IntArray = NDArray[np.int64]

BISECTIONS = 64
"""Halvings of the bracket of log ν; it is then as narrow as floats are."""
CHEAPEST = 1e-30
"""The lowest price looked at, relative to the highest gain: below it cores are free."""


class Division(NamedTuple):
    """Cores and total speed of each part (columns) in each state (rows)."""

    cores: FloatArray
    speeds: FloatArray


class Sharing(ABC):
    """A set of allocations, prepared for one workload, one n and one list of states."""

    @abstractmethod
    def best(self, gains: FloatArray) -> Division:
        """The division with the highest Σ gain·speed in every state; a part without gain may get nothing."""


class WholeCores(Sharing):
    """Whole cores for every job."""

    def __init__(self, speedups: Sequence[Speedup], counts: IntArray, cores: float) -> None:
        if not float(cores).is_integer():
            raise ParameterError(f"{cores:g} cores cannot be given out whole", 'use widths="real"')
        self._most = int(cores)
        self._counts = counts
        self._tables = [most_speed(s, int(counts.max(initial=0)), self._most) for s in speedups]

    def best(self, gains: FloatArray) -> Division:
        worth = [
            np.maximum(gain, 0.0)[:, None] * table[z]
            for gain, table, z in zip(gains.T, self._tables, self._counts.T, strict=True)
        ]
        value, choices = worth[0], [np.zeros(0, dtype=np.int64)]
        for one in worth[1:]:
            value, choice = _joined(value, one)
            choices.append(choice)
        cores = np.zeros(self._counts.shape, dtype=np.int64)
        rows, left = np.arange(len(value)), np.argmax(value, axis=1)
        for part in range(len(worth) - 1, 0, -1):
            cores[:, part] = choices[part][rows, left]
            left = left - cores[:, part]
        # With one job fewer cores than are left may be as good: the first best is the least.
        cores[:, 0] = _least(worth[0], rows, left)
        columns = zip(self._tables, self._counts.T, cores.T, strict=True)
        return Division(cores.astype(float), np.column_stack([table[z, a] for table, z, a in columns]))


def most_speed(speedup: Speedup, jobs: int, cores: int) -> FloatArray:
    """R(z, a), z ≤ jobs and a ≤ cores: the highest total speed of z jobs that share a whole cores."""
    alone = np.array([float(speedup(k)) for k in range(cores + 1)])
    table = np.zeros((jobs + 1, cores + 1))
    for z in range(1, jobs + 1):
        table[z] = _joined(table[z - 1][None, :], alone[None, :])[0][0]
    return table


def _joined(first: FloatArray, second: FloatArray) -> tuple[FloatArray, IntArray]:
    """Max-plus convolution in every row: max_b first(a − b) + second(b), and the least b that attains it."""
    value, choice = np.empty(first.shape), np.empty(first.shape, dtype=np.int64)
    for a in range(first.shape[1]):
        sums = first[:, a::-1] + second[:, : a + 1]
        choice[:, a] = np.argmax(sums, axis=1)
        value[:, a] = np.take_along_axis(sums, choice[:, a, None], axis=1)[:, 0]
    return value, choice


def _least(worth: FloatArray, rows: IntArray, most: IntArray) -> IntArray:
    """The least number of cores, up to `most`, that is worth as much as `most` (worth never falls)."""
    return np.asarray(np.argmax(worth >= worth[rows, most][:, None], axis=1))


class RealCores(Sharing):
    """Real-valued widths; below one core a job shares it in time."""

    def __init__(self, speedups: Sequence[Speedup], counts: IntArray, cores: float) -> None:
        for speedup in speedups:
            if not speedup.concave or float(speedup(speedup.most_efficient)) > speedup.most_efficient:
                raise UnsupportedError(
                    f"a {speedup.kind} speedup that is not concave has no best equal division",
                    'use widths="whole"',
                )
        self._speedups, self._cores = tuple(speedups), float(cores)
        self._counts = counts.astype(float)

    def best(self, gains: FloatArray) -> Division:
        gains = np.where(self._counts > 0.0, np.maximum(gains, 0.0), 0.0)
        # Where nothing is worth anything, any price will do.
        top = np.maximum(gains.max(axis=1), np.finfo(float).tiny / CHEAPEST)
        low, high = np.log(top * CHEAPEST), np.log(2.0 * top)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            scarce = self._taken(self._wish(gains, middle)) > self._cores
            low, high = np.where(scarce, middle, low), np.where(scarce, high, middle)
        narrow, wide = self._wish(gains, high), self._wish(gains, low)
        used, gap = self._taken(narrow), self._taken(wide) - self._taken(narrow)
        share = np.divide(self._cores - used, gap, out=np.zeros_like(gap), where=gap > 0.0)
        widths = narrow + np.clip(share, 0.0, 1.0)[:, None] * (wide - narrow)
        speeds = np.column_stack([s(k) for s, k in zip(self._speedups, widths.T, strict=True)])
        return Division(self._counts * widths, self._counts * speeds)

    def _wish(self, gains: FloatArray, log_price: FloatArray) -> FloatArray:
        """Cores that a job of each part takes at a price in each state; nothing above its own gain."""
        price = np.exp(log_price)
        columns = []
        for speedup, gain in zip(self._speedups, gains.T, strict=True):
            bought = gain >= price
            wish = speedup.work_demand(price, np.where(bought, gain, price))
            columns.append(np.where(bought, np.minimum(wish, min(speedup.peak, self._cores)), 0.0))
        return np.column_stack(columns)

    def _taken(self, widths: FloatArray) -> FloatArray:
        return np.asarray((self._counts * widths).sum(axis=1))
