"""Kernels for many settings at once: a thread looks up its setting, and does what it would do for it alone.

What settings have in common a kernel is made for (classes, discipline, source, room); what differs stands in
arrays with one row per setting, or end to end with `…_starts` that say where each setting's part begins. The
threads of a setting are neighbours, so that those of a warp take the same way.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.kernels import Specialisation, body, for_device
from malleable.engine.gpu.layout import (
    COUNTERS,
    PRESENT,
    STATUS,
    TABLE_ROW,
    WHOLE,
    Arrays,
    M,
    Parameters,
    table_row,
)
from malleable.engine.gpu.speeds import decided
from malleable.engine.rule_interface import DONE

THREADS = 128
"""Threads per block of the small kernels."""


class Packed(NamedTuple):
    """The `Parameters` of all settings of a pack, and where each setting's part begins."""

    n: Any
    keys: Any
    gaps: Any
    costs: Any
    bounds: Any
    kinds: Any
    part_starts: Any
    laws: Any
    law_starts: Any
    speeds: Any
    speed_starts: Any
    limits: Any
    fixed: Any
    slots_of: Any
    encoded: Any
    encoded_starts: Any


def one(last: Any, drain: Any, p: Parameters, a: Arrays) -> None:
    """Stands for what a thread does for one setting, by which the kernel is specialised."""


def packed(owner: Any, lasts: Any, drain: Any, of: Packed, a: Arrays) -> None:
    """A thread per replication; thread t simulates one of setting owner[t], up to job lasts[owner[t]]."""
    t = cuda.grid(1)
    if t < owner.shape[0]:
        w = owner[t]
        p = Parameters(
            of.n[w],
            of.keys[w],
            of.gaps[w],
            of.costs[w],
            of.bounds[of.part_starts[w] : of.part_starts[w + 1]],
            of.kinds[of.part_starts[w] : of.part_starts[w + 1]],
            of.laws[of.law_starts[w] : of.law_starts[w + 1]],
            of.speeds[of.speed_starts[w] : of.speed_starts[w + 1]],
            of.limits[w],
            of.fixed[w],
            of.slots_of[w],
            of.encoded[of.encoded_starts[w] : of.encoded_starts[w + 1]],
        )
        one(lasts[w], drain, p, a)


def fill_states(owner: Any, firsts: Any, sharing: Any, of: Packed, rule_tables: Any) -> None:
    """The table over class counts of every setting, by its rule: `count_table.fill` by many threads."""
    t = cuda.grid(1)
    if t < rule_tables.shape[1]:
        w = owner[t]
        each = firsts[w + 1] - firsts[w]
        count = cuda.local.array(M, np.int32)
        asked = cuda.local.array(M, np.float64)
        width = cuda.local.array(M, np.float64)
        s = cuda.local.array(M, np.float64)
        inverse = cuda.local.array(M, np.float64)
        n, limits = of.n[w], of.limits[w]
        encoded = of.encoded[of.encoded_starts[w] : of.encoded_starts[w + 1]]
        speeds = of.speeds[of.speed_starts[w] : of.speed_starts[w + 1]]
        states = speeds.shape[0] // TABLE_ROW
        state = t - firsts[w]
        while state < states:
            rest = state
            jobs = 0
            for i in range(M):
                count[i] = rest % (limits[i] + 1)
                rest //= limits[i] + 1
                jobs += count[i]
                s[i] = 0.0
                inverse[i] = np.inf
            used = 0.0
            # A crowd has one core each, and a rule that does not share is not made for it.
            if jobs > 0 and (sharing or jobs < n):
                used = decided(count, n, rule_tables[:, t], encoded, asked, width, s, inverse)
            start = state * TABLE_ROW
            speeds[start] = used
            for i in range(M):
                speeds[start + 1 + i] = s[i]
                speeds[start + 1 + M + i] = inverse[i]
            state += each


def spread_tables(tables: Any, owner: Any, out: Any) -> None:
    """A copy of its setting's table for every thread: rules keep the last price in theirs."""
    at = cuda.grid(1)
    if at < out.shape[0] * out.shape[1]:
        row, t = at // out.shape[1], at % out.shape[1]
        out[row, t] = tables[row, owner[t]]


def sum_settings(sums: Any, whole: Any, firsts: Any, found: Any, statuses: Any) -> None:
    """found[f, w, g]: sums of row f over group g of setting w, which start again at 0; then jobs present.

    `statuses[w]` becomes the largest status of a replication of setting w.
    """
    at = cuda.grid(1)
    rows, settings, groups = sums.shape[0], found.shape[1], found.shape[2]
    if at < found.shape[0] * settings * groups:
        group = at % groups
        w = (at // groups) % settings
        f = at // (groups * settings)
        total = 0.0
        for t in range(firsts[w] + group, firsts[w + 1], groups):
            if f < rows:
                total += sums[f, t]
                sums[f, t] = 0.0
            else:
                total += whole[WHOLE + COUNTERS * (f - rows) + PRESENT, t]
            if f == 0 and whole[STATUS, t] != DONE:
                cuda.atomic.max(statuses, w, whole[STATUS, t])
        found[f, w, group] = total


@functools.lru_cache(maxsize=256)
def packed_kernel(made_for: Specialisation) -> Any:
    """The kernel of a pack."""
    return for_device(packed, {**made_for.constants(), "one": body(made_for)}, made_for.registers)


@functools.lru_cache(maxsize=256)
def fill_kernel(classes: int, rule: Any) -> Any:
    """The kernel that fills tables by a rule."""
    return for_device(fill_states, {"M": classes, "TABLE_ROW": table_row(classes), "rule": rule})
