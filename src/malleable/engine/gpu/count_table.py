"""The cores of every state that is likely, as a table over class counts: made on the processor by the rule.

A row holds the cores in use, the speed of each class, and its inverse. Where the rule's answer cannot be
obeyed the first entry is minus the status that says why; it matters only if a replication gets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.compiling import AS_ARGUMENT, CLASS_RULE, RuleAddress, compiled, on_copies
from malleable.engine.gpu.layout import table_row
from malleable.engine.rule_interface import NEGATIVE, NOT_A_NUMBER, OVER_ALLOCATED, SHARE, TOLERANCE, Program
from malleable.engine.speedup_table import speed

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

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
