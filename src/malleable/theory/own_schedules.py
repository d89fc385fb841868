"""What the best schedule of each given job costs by itself when cores have prices: for `theory.price_path`.

Jobs of one speedup and one choice of widths make a kind. To the kernel (`engine.kernels.price_kernel`) a
kind is a table of G(r) = max_k r·s(k) − k over the widths that it may have, no cores included: one function
of one number, as the gain at a price is homogeneous in value and price. A chord lies above a convex
function, so whatever the grids, what comes out is a lower bound.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.compiling import can_compile, compiled
from malleable.engine.kernels import price_kernel as K  # noqa: N812 - K.FINER reads better

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.contracts import FloatArray, Speedup
    from malleable.model.job_list import JobList

LOWEST = 1e-12
"""How far below its first ratio a table starts, relatively, so that rounding finds 0 there."""
RATIO_RANGE = 1e9
"""Ratios up to which the gain is tabulated if its widths never reach their limit; then the steepest line."""
AT_LIMIT = 1.0 - 1e-9
"""A width this close to its limit, relatively, is there."""
SHORTEST_RING = 1 << 8
PIECE = 1 << 13
"""Jobs that are worth a thread of their own."""


class Kind:
    """Jobs that gain alike: a speedup, and the widths they may have up to the cores there are."""

    def __init__(self, speedup: Speedup, widths: FloatArray | None, cores: float) -> None:
        self.widths = widths
        self.speedup = speedup.capped(cores)
        if widths is None:
            self.least = float(min(self.speedup.most_efficient, cores))
            self.most = float(min(self.speedup.peak, cores))
        else:
            self.speeds = np.asarray(speedup(widths), dtype=float)
            self.least = float(widths[np.argmax(self.speeds / widths)])
            self.most = float(widths[np.argmax(self.speeds)])
        self.fastest = float(speedup(self.most))
        self.first = self.least / float(speedup(self.least))
        """The ratio of value to price below which no cores are worth their price."""

    def wanted(self, ratios: FloatArray) -> FloatArray:
        """argmax over the widths of r·s(k) − k, for ratios above the first."""
        if self.widths is None:
            wish = np.asarray(self.speedup.work_demand(1.0, ratios), dtype=float)
            return np.clip(wish, self.least, self.most)
        best, wanted = np.full(len(ratios), -np.inf), np.zeros(len(ratios))
        for k, s in zip(self.widths, self.speeds, strict=True):
            value = ratios * s - k
            wanted, best = np.where(value > best, k, wanted), np.maximum(value, best)
        return wanted

    def gain(self, ratios: FloatArray) -> FloatArray:
        """G(r) = max(0, max_k r·s(k) − k)."""
        k = self.wanted(ratios)
        speeds = (
            np.asarray(self.speedup(k)) if self.widths is None else np.interp(k, self.widths, self.speeds)
        )
        return np.maximum(ratios * np.asarray(speeds, dtype=float) - k, 0.0)

    def last_ratio(self) -> float:
        """The ratio from which on the widest is best."""
        ratio = 2.0 * self.first
        while ratio < RATIO_RANGE * self.first and self.wanted(np.array([ratio]))[0] < self.most * AT_LIMIT:
            ratio *= 2.0
        return ratio

    def dearest(self, weight: float, price: float) -> float:
        """A cost for a unit of work for which it can be had at this price: (c + l·k)/s(k) for some k."""
        return (weight + price * self.least) * self.first / self.least


class Tables(NamedTuple):
    """A kind's gain as the kernel reads it."""

    gains: FloatArray
    rises: FloatArray
    widths: FloatArray
    about: FloatArray


def tables(kind: Kind, step: float) -> Tables:
    """The gain with `FINER` points per step of p's grid (steps in the logarithm)."""
    fine = step / K.FINER
    start = kind.first * (1.0 - LOWEST)
    columns = int(np.ceil(np.log(kind.last_ratio() / start) / step)) + 2
    ratios = start * np.exp(fine * np.arange(columns * K.FINER + 1))
    gains, widths = kind.gain(ratios), kind.wanted(ratios)
    gains[0] = widths[0] = 0.0
    rises = np.diff(gains)
    count = columns * K.FINER
    about = [np.log(start), fine, gains[count], ratios[count], kind.fastest, kind.most]
    by_phase = [one[:count].reshape(columns, K.FINER).T.ravel() for one in (gains, rises)]
    return Tables(by_phase[0], by_phase[1], widths[: count + 1].copy(), np.array(about))


class Own(NamedTuple):
    """What came of one price path: for each job, and in all."""

    costs: FloatArray
    """φ_i: no schedule of the job costs less at these prices."""
    ends: FloatArray
    marginal: FloatArray
    """What a little more work would cost."""
    asked: FloatArray
    """Core-time that the jobs' own schedules use in each cell."""


class OwnSchedules:
    """Given jobs, asked again and again what their own schedules cost at other prices."""

    def __init__(self, jobs: JobList, cores: float, *, threads: int | None = None) -> None:
        self.jobs = jobs
        self.weights = np.ascontiguousarray(jobs.weight)
        self.threads = threads or len(os.sched_getaffinity(0))
        found: dict[Any, int] = {}
        self.kinds: list[Kind] = []
        kind_of = np.zeros(len(jobs.workload.classes), dtype=np.int64)
        for i in np.unique(jobs.classes):
            one = jobs.workload.job_types[i]
            widths = one.widths_on(cores)
            key = (one.speedup, None if widths is None else tuple(widths))
            if key not in found:
                found[key] = len(self.kinds)
                self.kinds.append(Kind(one.speedup, widths, cores))
            kind_of[i] = found[key]
        kinds = kind_of[jobs.classes]
        order = np.argsort(kinds, kind="stable")
        self._members = np.split(order, np.searchsorted(kinds[order], np.arange(1, len(self.kinds))))
        self._columns = [(jobs.times[rows], self.weights[rows], jobs.sizes[rows]) for rows in self._members]
        self.fastest = np.array([kind.fastest for kind in self.kinds])[kinds]
        """The speed of each job on all the cores that help it."""
        self.least = np.array([kind.first for kind in self.kinds])[kinds]
        """The least core-time for a unit of each job's work."""
        self._tables: dict[tuple[int, float], Tables] = {}
        self._kernel = compiled(K.own_schedules, K.signature()) if can_compile() else K.own_schedules

    def pooled(self, cores: float) -> float:
        """What the jobs would cost at least if their work could be divided among the cores without loss."""
        kernel = compiled(K.pooled_cost, K.pooled_signature()) if can_compile() else K.pooled_cost
        start = float(self.jobs.times[0])
        lengths = self.jobs.sizes * self.least / cores
        alike = bool((self.weights == self.weights[0]).all())
        return float(kernel(self.jobs.times - start, lengths, self.weights, alike))

    def at(self, edges: FloatArray, prices: FloatArray, *, step: float, asks: bool = True) -> Own:
        """Each job's own schedule at prices that are constant between edges, and 0 beyond.

        `step` is that of the grid of p, in its logarithm; prices are positive.
        """
        out = Own(*(np.zeros(len(self.jobs)) for _ in range(3)), np.zeros(len(prices)))
        logs, highest = np.log(prices), float(prices.max())
        pieces = []
        for number, kind in enumerate(self.kinds):
            times, weights, sizes = self._columns[number]
            table = self._table(number, step)
            low = float(weights.min()) / kind.fastest * (1.0 - LOWEST)
            high = kind.dearest(float(weights.max()), highest)
            count = max(int(np.ceil(np.log(high / low) / step)) + 2, 3)
            grid = low * np.exp(step * np.arange(count))
            parts = max(1, min(4 * self.threads, len(times) // PIECE)) if self.threads > 1 else 1
            cuts = np.linspace(0, len(times), parts + 1).astype(np.int64)
            for a, z in pairwise(cuts):
                mine = (times[a:z], weights[a:z], sizes[a:z])
                pieces.append((self._members[number][a:z], mine, grid, table))

        def work(piece: Any) -> FloatArray:
            rows, mine, grid, table = piece
            results = [np.zeros(len(rows)) for _ in range(3)]
            asked = np.zeros(len(prices) if asks else 0)
            self._run(mine, results, edges, prices, logs, grid, table, asked)
            for column, values in zip(out[:3], results, strict=True):
                column[rows] = values
            return asked

        def add(found: Iterable[FloatArray]) -> None:
            for asked in found:
                if asks:
                    out.asked[:] += asked

        if self.threads == 1 or len(pieces) == 1:
            add(map(work, pieces))
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                add(pool.map(work, pieces))
        return out

    def _table(self, number: int, step: float) -> Tables:
        if (number, step) not in self._tables:
            self._tables[number, step] = tables(self.kinds[number], step)
        return self._tables[number, step]

    def _run(
        self,
        mine: Any,
        results: list[FloatArray],
        edges: FloatArray,
        prices: FloatArray,
        logs: FloatArray,
        grid: FloatArray,
        table: Tables,
        asked: FloatArray,
    ) -> None:
        ring = np.zeros(SHORTEST_RING * len(grid))
        base, places = np.zeros(len(grid)), np.array([0, -1, 0], dtype=np.int64)
        while self._kernel(
            *mine, *results, edges, prices, logs, grid, *table, ring, base, asked, places
        ):  # fmt: skip
            ring, places[K.BUILT] = np.zeros(2 * len(ring)), -1
