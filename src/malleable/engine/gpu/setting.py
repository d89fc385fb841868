"""What all replications of a run share, as arrays: laws, costs, the table over class counts, the rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import FloatArray
from malleable.engine.gpu.count_table import (
    MOST_ROWS,
    CountTable,
    count_table,
    expected_present,
    likely_counts,
)
from malleable.engine.gpu.laws import Laws, components, encode_laws
from malleable.engine.gpu.layout import GIVEN, POISSON, RENEWAL
from malleable.engine.pools import pool_loads, pool_widths
from malleable.engine.rule_interface import POOLS, SHARE, Program
from malleable.engine.speedup_table import encode, speed

if TYPE_CHECKING:
    from malleable.model import Workload


RARE = 24.0
"""Minus the logarithm of a probability that is negligible."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A policy on a workload and cores, ready for a device."""

    workload: Any
    cores: float
    program: Program
    source: int
    encoded: FloatArray
    laws: Laws
    bounds: FloatArray
    """Cumulated probabilities of the components: of all, or of each class, by the source."""
    kinds: Any
    """The class of each component."""
    table: CountTable
    fixed: FloatArray
    """Widths, speeds and their inverses, where they never change."""
    expected: FloatArray
    """Jobs of each class that may be there, roughly and on average."""
    cut: bool = False
    """Whether the table would be too large to reach to all states that are likely."""

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.workload.classes)

    @property
    def load(self) -> float:
        """Of the machine, or of its busiest pool: how long queues get follows from it."""
        if self.program.discipline != POOLS:
            return float(self.workload.load(self.cores))
        return max(pool_loads(self.program, self.workload, self.cores))

    @property
    def room(self) -> int:
        """Jobs of a class that may be served at a time, nearly always."""
        most = float(np.max(self.expected + 10.0 * np.sqrt(self.expected) + 12.0))
        if self.program.discipline == POOLS:
            most = float(max(self.program.slots))
        elif self.program.discipline != SHARE:
            most = min(most, self.cores)
        else:
            # No job waits, so as many are served as are there: beyond n that is geometric in the load.
            load = min(max(self.load, 0.01), 0.99)
            most = max(most, -RARE / math.log(load))
        return rounded_up(int(most) + 1)


def rounded_up(room: int) -> int:
    """One of few numbers that is at least this, so that few kernels need be compiled."""
    step = 1 << max(room.bit_length() - 3, 2)
    return -(-room // step) * step


def make_setting(
    workload: Workload, cores: float, program: Program, *, given: bool = False, rows: int | None = None
) -> Setting:
    """Encode everything, and ask the rule about all likely states."""
    encoded = encode(workload.speedups, widest=max(float(cores), 2.0))
    poisson = all(c.arrivals.poisson for c in workload.classes)
    source = GIVEN if given else POISSON if poisson else RENEWAL
    laws, bounds, kinds = _laws(workload, source)
    loads = np.asarray(workload.loads, dtype=float)
    expected = expected_present(program, loads, float(cores), encoded)
    m = len(workload.classes)
    limits = np.zeros(m, dtype=np.int64)
    fixed, cut = np.zeros(3 * m), False
    if program.discipline == POOLS:
        fixed = _fixed(program, float(cores), encoded, m)
    else:
        wanted = likely_counts(expected, float(cores), program.discipline, math.inf)
        limits = likely_counts(expected, float(cores), program.discipline, rows or MOST_ROWS)
        cut = bool((limits < wanted).any())
    table = count_table(program, float(cores), encoded, limits)
    return Setting(
        workload, float(cores), program, source, encoded, laws, bounds, kinds, table, fixed, expected, cut
    )


def _laws(workload: Workload, source: int) -> tuple[Laws, FloatArray, Any]:
    """Laws of the components of sizes, then of the gaps of each class; bounds and classes of components."""
    mixtures = [components(c.size) for c in workload.classes]
    gaps = [c.arrivals.interval for c in workload.classes] if source == RENEWAL else []
    # Given jobs are not drawn, so their laws need no table.
    laws = encode_laws([] if source == GIVEN else [law for mixture in mixtures for _, law in mixture] + gaps)
    shares = np.asarray(workload.rates, dtype=float) / workload.total_rate
    chances = [[p for p, _ in mixture] for mixture in mixtures]
    if source == POISSON:
        bounds = np.cumsum([share * p for share, mine in zip(shares, chances, strict=True) for p in mine])
    else:
        bounds = np.concatenate([np.cumsum(mine) for mine in chances])
    kinds = np.repeat(np.arange(len(mixtures)), [len(mixture) for mixture in mixtures])
    return laws, bounds, kinds


def _fixed(program: Program, cores: float, encoded: FloatArray, m: int) -> FloatArray:
    width = pool_widths(program, cores, m)
    speeds = np.array([speed(encoded, i, float(k)) for i, k in enumerate(width)])
    return np.concatenate([width, speeds, 1.0 / speeds])
