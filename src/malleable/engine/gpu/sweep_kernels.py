"""Kernels for many settings at once: a thread looks up its setting, and does what it would do for it alone.

What settings have in common a kernel is made for (classes, discipline, source, room); what differs stands in
arrays with one row per setting, or end to end with `…_starts` that say where each setting's part begins. The
threads of a setting are neighbours, so that those of a warp take the same way.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.device_code import specialised
from malleable.engine.gpu.kernels import (
    BUILTINS,
    DEVICE,
    LOCAL,
    SHARED,
    Specialisation,
    device_function,
    in_device_memory,
    in_local_memory,
    in_shared_memory,
    simulated,
)
from malleable.engine.gpu.layout import COUNTERS, PRESENT, STATUS, TABLE_ROW, WHOLE, M
from malleable.engine.gpu.speeds import decided
from malleable.engine.rule_interface import DONE

BODIES = {SHARED: in_shared_memory, LOCAL: in_local_memory, DEVICE: in_device_memory}
THREADS = 128
"""Threads per block of the small kernels."""


def body(*arguments: Any) -> None:
    """Stands for one of the `BODIES`, by which the kernel is specialised."""


def packed(
    owner: Any, n: Any, lasts: Any, drain: Any, keys: Any, gaps: Any, numbers: Any, costs: Any, bounds: Any,
    kinds: Any, part_starts: Any, laws: Any, law_starts: Any, speeds: Any, speed_starts: Any, limits: Any,
    strides: Any, fixed: Any, slots_of: Any, encoded: Any, encoded_starts: Any, rule_tables: Any,
    given_times: Any, given_classes: Any, given_sizes: Any, reals: Any, whole: Any, marks: Any, slots: Any,
    born: Any, sizes: Any, names: Any, queue: Any, sums: Any, histogram: Any, every: Any, log: Any,
) -> None:  # fmt: skip
    """A thread per replication; thread t simulates one of setting owner[t], up to job lasts[owner[t]]."""
    t = cuda.grid(1)
    if t < owner.shape[0]:
        w = owner[t]
        body(
            n[w], lasts[w], drain, keys[w], gaps[w], numbers, costs[w],
            bounds[part_starts[w] : part_starts[w + 1]], kinds[part_starts[w] : part_starts[w + 1]],
            laws[law_starts[w] : law_starts[w + 1]], speeds[speed_starts[w] : speed_starts[w + 1]],
            limits[w], strides[w], fixed[w], slots_of[w],
            encoded[encoded_starts[w] : encoded_starts[w + 1]], rule_tables, given_times, given_classes,
            given_sizes, reals, whole, marks, slots, born, sizes, names, queue, sums, histogram, every, log,
        )  # fmt: skip


def fill_states(
    owner: Any, firsts: Any, n: Any, sharing: Any, limits: Any, encoded: Any, encoded_starts: Any,
    rule_tables: Any, speeds: Any, speed_starts: Any,
) -> None:  # fmt: skip
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
        mine = encoded[encoded_starts[w] : encoded_starts[w + 1]]
        states = (speed_starts[w + 1] - speed_starts[w]) // TABLE_ROW
        state = t - firsts[w]
        while state < states:
            rest = state
            jobs = 0
            for i in range(M):
                count[i] = rest % (limits[w, i] + 1)
                rest //= limits[w, i] + 1
                jobs += count[i]
                s[i] = 0.0
                inverse[i] = np.inf
            used = 0.0
            # A crowd has one core each, and a rule that does not share is not made for it.
            if jobs > 0 and (sharing or jobs < n[w]):
                used = decided(count, n[w], rule_tables[:, t], mine, asked, width, s, inverse)
            start = speed_starts[w] + state * TABLE_ROW
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
    """The kernel of a pack, compiled at its first launch."""
    constants = {**made_for.constants(), "body": BODIES[made_for.memory]}
    limit = {} if made_for.registers is None or simulated() else {"max_registers": made_for.registers}
    return cuda.jit(**limit)(specialised(packed, {**constants, **_builtins()}, device_function))


@functools.lru_cache(maxsize=256)
def fill_kernel(classes: int, rule: Any) -> Any:
    """The kernel that fills tables by a rule."""
    row = -(-(2 * classes + 1) // 4) * 4
    constants = {"M": classes, "TABLE_ROW": row, "rule": rule, **_builtins()}
    return cuda.jit(specialised(fill_states, constants, device_function))


def _builtins() -> dict[str, Any]:
    return {} if simulated() else BUILTINS


def launch(kernel: Any, threads: int, per_block: int, *arguments: Any) -> None:
    """Start a kernel; in the simulator a block is one thread, which it is quickest with."""
    if simulated():
        kernel[threads, 1](*arguments)
    else:
        kernel[-(-threads // per_block), per_block](*arguments)
