"""What all replications of a run share, as arrays: laws, costs, the table over class counts, the rule.

The cores of every state that is likely, as a table over class counts: made on the processor by the rule.

A row holds the cores in use, the speed of each class, and its inverse. Where the rule's answer cannot be
obeyed the first entry is minus the status that says why; it matters only if a replication gets there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.contracts import FloatArray
from malleable.engine.compiling import AS_ARGUMENT, CLASS_RULE, RuleAddress, compiled, on_copies
from malleable.engine.enforcement import pool_loads, pool_widths
from malleable.engine.gpu.laws import Laws, components, encode_laws
from malleable.engine.gpu.layout import GIVEN, POISSON, RENEWAL, table_row
from malleable.engine.rule_interface import (
    NEGATIVE,
    NOT_A_NUMBER,
    OVER_ALLOCATED,
    POOLS,
    SHARE,
    TOLERANCE,
    Program,
)
from malleable.engine.speedup_table import encode, speed

if TYPE_CHECKING:
    from malleable.model import Workload


STEPS = 40
"""Steps towards the numbers of jobs that are expected."""
MOST_ROWS = 1_000_000
"""A rule that searches for a price fills so many in some seconds."""


class CountTable(NamedTuple):
    """Rows for all states with at most `limits` jobs of each class."""

    rows: FloatArray
    limits: Any


def signature(rule: Any) -> Any:
    """The types of `fill`'s arguments, for a rule of the given type."""
    from numba import float64, int64, void  # noqa: PLC0415 - as in `class_kernel`

    f1 = float64[::1]
    return void(rule, float64, int64, int64, f1, f1, int64[::1], f1, f1, f1)


def fill(
    rule: Any,
    n: float,
    sharing: int,
    size: int,
    table: Any,
    encoded: Any,
    limits: Any,
    asked: Any,
    width: Any,
    rows: Any,
) -> None:
    """Ask the rule about every state that it may be asked about."""
    m = len(limits)
    for state in range(len(rows) // size):
        rest = state
        jobs = 0.0
        for i in range(m):
            asked[i] = rest % (limits[i] + 1)
            rest //= limits[i] + 1
            jobs += asked[i]
        start = state * size
        # A crowd has one core each, and a rule that does not share is not made for it.
        if jobs == 0.0 or (jobs >= n and not sharing):
            continue
        rule(asked, n, table, width)
        used = 0.0
        status = 0
        for i in range(m):
            k = width[i]
            s = 0.0
            if asked[i] > 0.0:
                if np.isnan(k):
                    status = NOT_A_NUMBER
                elif k < 0.0:
                    status = NEGATIVE
                else:
                    s = speed(encoded, i, k)
                used += asked[i] * k
            rows[start + 1 + i] = s
            rows[start + 1 + m + i] = 1.0 / s if s > 0.0 else np.inf
        if used > n * (1.0 + TOLERANCE):
            status = OVER_ALLOCATED
        rows[start] = used if status == 0 else -float(status)


def likely_counts(present: FloatArray, cores: float, discipline: int, rows: float) -> Any:
    """How many jobs of each class the table reaches to, given the numbers expected, so that it fits."""
    wanted = present + 10.0 * np.sqrt(present) + 12.0
    if discipline != SHARE:
        wanted = np.minimum(wanted, cores - 1.0)
    wanted = np.maximum(np.floor(wanted), 0.0)
    while np.prod(wanted + 1.0) > rows:
        wanted = np.floor(0.95 * wanted)
    return wanted.astype(np.int64)


def count_table(
    program: Program, cores: float, encoded: FloatArray, limits: Any, *, interpreted: bool = False
) -> CountTable:
    """The table of a rule up to the limits."""
    m = len(limits)
    rows = np.zeros(int(np.prod(limits + 1)) * table_row(m))
    asked, width = np.zeros(m), np.zeros(m)
    sharing = int(program.discipline == SHARE)
    arguments = (
        float(cores),
        sharing,
        table_row(m),
        program.table.copy(),
        encoded,
        limits,
        asked,
        width,
        rows,
    )
    # With none of its jobs there, a class has no speed.
    rows.reshape(-1, table_row(m))[:, 1 + m : 1 + 2 * m] = np.inf
    with np.errstate(all="ignore"):
        if interpreted:
            fill(on_copies(program.rule), *arguments)
        else:
            rule = RuleAddress(compiled(program.rule, CLASS_RULE), CLASS_RULE)
            compiled(fill, signature(AS_ARGUMENT[CLASS_RULE]))(rule, *arguments)
    return CountTable(rows, limits)


def expected_present(program: Program, loads: FloatArray, cores: float, encoded: FloatArray) -> FloatArray:
    """Jobs of each class that may be there: as many as keep up with the arrivals at the rule's widths.

    A class of load ρ_i holds ρ_i/s_i(k_i) jobs on average, if k_i are the widths at these numbers: a fixed
    point, as in the mean field. With one core each there are ρ_i, or as many as there are cores.
    """
    crowd = loads * min(1.0, cores / max(float(loads.sum()), 1e-300))
    rule, table, width = compiled(program.rule, CLASS_RULE), program.table.copy(), np.zeros(len(loads))
    counts = crowd.copy()
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            rule(counts, float(cores), table, width)
            speeds = np.array([speed(encoded, i, float(k)) for i, k in enumerate(width)])
            counts = 0.5 * counts + 0.5 * loads / speeds
    return np.where(np.isfinite(counts) & (counts < crowd), counts, crowd)


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
