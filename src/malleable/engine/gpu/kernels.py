"""The kernels around `events.replicate`, and how they become code for a GPU, a processor or the simulator."""

from __future__ import annotations

import functools
import types as python_types
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from malleable.engine.gpu import layout as L  # noqa: N812
from malleable.engine.gpu.cuda_api import config, cuda
from malleable.engine.gpu.device_code import specialised
from malleable.engine.gpu.events import replicate
from malleable.engine.gpu.layout import COUNTERS, JOB, NAMED, ROOM, SERVED, STATISTICS, STATUS, WHOLE, M
from malleable.engine.gpu.marks import mark_at, put_mark
from malleable.engine.rule_interface import DONE

PLACES = 8
"""Marks in local memory, of all classes; 1 where all are near the thread."""
DATA = 8
"""Data of jobs in local memory; 1 where no statistics are kept."""
NUMBERS = 1
"""Numbers of jobs in local memory; 1 where arrival times stand for them."""
NEAR = 3
"""Numbers near a thread: marks and tallies of all classes."""
THREADS = 128
"""Threads per block."""
SHARED, LOCAL, DEVICE = "shared", "local", "device"
"""Where marks stand: the first of them in a block's shared memory, or all in local or device memory."""


class Specialisation(NamedTuple):
    """What a kernel is made for."""

    classes: int
    room: int
    discipline: int
    source: int
    statistics: bool
    named: bool
    logged: bool
    exponential_only: bool
    rule: Any
    """The rule as a plain function, where it runs on the device; None where the table says it all."""
    memory: str
    """Where marks stand during a launch."""
    threads: int
    """Threads per block, which share memory."""
    registers: int | None = None
    """Registers per thread at most."""
    hot: int = 0
    """Marks of a class that stand in the memory that a block shares."""
    components: int = 1 << 30
    """Components of the laws of sizes; by default so many that they are searched and not gone through."""

    def constants(self) -> dict[str, Any]:
        """The values of the constants of `layout` and of this module."""
        places = self.classes * self.room
        known: dict[str, Any] = {
            "M": self.classes,
            "TABLE_ROW": L.table_row(self.classes),
            "ROOM": self.room,
            "DISCIPLINE": self.discipline,
            "SOURCE": self.source,
            "STATISTICS": self.statistics,
            "NAMED": self.named,
            "LOGGED": self.logged,
            "COMPONENTS": self.components,
            "EXPONENTIAL_ONLY": self.exponential_only,
            "RULE_ON_DEVICE": self.rule is not None,
            "HOT": self.hot,
            "TALLIES": self.classes * self.hot,
            "NEAR": self.classes * (self.hot + L.CLASS_TALLIES),
            "PLACES": places if self.hot < self.room else 1,
            "DATA": places if self.statistics else 1,
            "NUMBERS": places if self.named else 1,
            "THREADS": self.threads,
        }
        return known if self.rule is None else {**known, "rule": self.rule}


def move_in(
    t: int, whole: Any, marks: Any, born: Any, sizes: Any, names: Any,
    near: Any, my_marks: Any, my_slots: Any, my_born: Any, my_sizes: Any, my_names: Any,
) -> None:  # fmt: skip
    """Bring the jobs of a replication to where its thread can get at them quickly."""
    for i in range(M):
        length = whole[WHOLE + COUNTERS * i + SERVED, t]
        for place in range(length):
            p = i * ROOM + place
            put_mark(near, my_marks, i, place, marks[p, t])
            if STATISTICS:
                my_born[p] = born[p, t]
                my_sizes[p] = sizes[p, t]
            if NAMED:
                my_names[p] = names[p, t]
        if STATISTICS:
            for place in range(ROOM):
                my_slots[i * ROOM + place] = place


def move_out(
    t: int, whole: Any, marks: Any, born: Any, sizes: Any, names: Any,
    near: Any, my_marks: Any, my_slots: Any, my_born: Any, my_sizes: Any, my_names: Any,
) -> None:  # fmt: skip
    """Bring them back, sorted by place."""
    for i in range(M):
        length = whole[WHOLE + COUNTERS * i + SERVED, t]
        for place in range(length):
            p = i * ROOM + place
            marks[p, t] = mark_at(near, my_marks, i, place)
            if STATISTICS:
                slot = i * ROOM + my_slots[p]
                born[p, t] = my_born[slot]
                sizes[p, t] = my_sizes[slot]
                if NAMED:
                    names[p, t] = my_names[slot]


def in_device_memory(
    n: Any, last: Any, drain: Any, key: Any, mean_gap: Any, numbers: Any, costs: Any, bounds: Any,
    kinds: Any, laws: Any, speeds: Any, limits: Any, strides: Any, fixed: Any, slots_of: Any, encoded:
    Any, rule_tables: Any, given_times: Any, given_classes: Any, given_sizes: Any, reals: Any, whole:
    Any, marks: Any, slots: Any, born: Any, sizes: Any, names: Any, queue: Any, sums: Any, histogram:
    Any, every: Any, log: Any,
) -> None:  # fmt: skip
    """A thread per replication; marks are sorted where they are."""
    t = cuda.grid(1)
    if t < numbers.shape[0] and (whole[JOB, t] < last or drain or whole[STATUS, t] != DONE):
        numbered = names[:, t] if NAMED else born[:, t]
        near = cuda.local.array(NEAR, np.float64)
        replicate(
            t, n, last, drain, key, mean_gap, numbers, costs, bounds, kinds, laws, speeds, limits, strides,
            fixed, slots_of, encoded, rule_tables, given_times, given_classes, given_sizes, reals, whole,
            marks[:, t], slots[:, t], born[:, t], sizes[:, t], numbered, queue,
            sums, histogram, every, log, near,
        )  # fmt: skip


def in_local_memory(
    n: Any, last: Any, drain: Any, key: Any, mean_gap: Any, numbers: Any, costs: Any, bounds: Any,
    kinds: Any, laws: Any, speeds: Any, limits: Any, strides: Any, fixed: Any, slots_of: Any, encoded:
    Any, rule_tables: Any, given_times: Any, given_classes: Any, given_sizes: Any, reals: Any, whole:
    Any, marks: Any, slots: Any, born: Any, sizes: Any, names: Any, queue: Any, sums: Any, histogram:  # noqa: ARG001
    Any, every: Any, log: Any,
) -> None:  # fmt: skip
    """A thread per replication; marks stand in its local memory while it runs, and `slots` with them."""
    t = cuda.grid(1)
    if t < numbers.shape[0] and (whole[JOB, t] < last or drain or whole[STATUS, t] != DONE):
        near = cuda.local.array(NEAR, np.float64)
        my_marks = cuda.local.array(PLACES, np.float64)
        my_slots = cuda.local.array(DATA, np.int32)
        my_born = cuda.local.array(DATA, np.float64)
        my_sizes = cuda.local.array(DATA, np.float64)
        my_names = cuda.local.array(NUMBERS, np.float64)
        move_in(t, whole, marks, born, sizes, names, near, my_marks, my_slots, my_born, my_sizes, my_names)
        numbered = my_names if NAMED else my_born
        replicate(
            t, n, last, drain, key, mean_gap, numbers, costs, bounds, kinds, laws, speeds, limits, strides,
            fixed, slots_of, encoded, rule_tables, given_times, given_classes, given_sizes, reals, whole,
            my_marks, my_slots, my_born, my_sizes, numbered, queue,
            sums, histogram, every, log, near,
        )  # fmt: skip
        move_out(t, whole, marks, born, sizes, names, near, my_marks, my_slots, my_born, my_sizes, my_names)


def in_shared_memory(
    n: Any, last: Any, drain: Any, key: Any, mean_gap: Any, numbers: Any, costs: Any, bounds: Any,
    kinds: Any, laws: Any, speeds: Any, limits: Any, strides: Any, fixed: Any, slots_of: Any, encoded:
    Any, rule_tables: Any, given_times: Any, given_classes: Any, given_sizes: Any, reals: Any, whole:
    Any, marks: Any, slots: Any, born: Any, sizes: Any, names: Any, queue: Any, sums: Any, histogram:  # noqa: ARG001
    Any, every: Any, log: Any,
) -> None:  # fmt: skip
    """A thread per replication; its first marks are in the memory that its block shares, in its own banks."""
    t = cuda.grid(1)
    block = cuda.shared.array((NEAR, THREADS), np.float64)
    if t < numbers.shape[0] and (whole[JOB, t] < last or drain or whole[STATUS, t] != DONE):
        near = block[:, cuda.threadIdx.x]
        my_marks = cuda.local.array(PLACES, np.float64)
        my_slots = cuda.local.array(DATA, np.int32)
        my_born = cuda.local.array(DATA, np.float64)
        my_sizes = cuda.local.array(DATA, np.float64)
        my_names = cuda.local.array(NUMBERS, np.float64)
        move_in(t, whole, marks, born, sizes, names, near, my_marks, my_slots, my_born, my_sizes, my_names)
        numbered = my_names if NAMED else my_born
        replicate(
            t, n, last, drain, key, mean_gap, numbers, costs, bounds, kinds, laws, speeds, limits, strides,
            fixed, slots_of, encoded, rule_tables, given_times, given_classes, given_sizes, reals, whole,
            my_marks, my_slots, my_born, my_sizes, numbered, queue,
            sums, histogram, every, log, near,
        )  # fmt: skip
        move_out(t, whole, marks, born, sizes, names, near, my_marks, my_slots, my_born, my_sizes, my_names)


def on_processor(
    n: Any, last: Any, drain: Any, key: Any, mean_gap: Any, numbers: Any, costs: Any, bounds: Any,
    kinds: Any, laws: Any, speeds: Any, limits: Any, strides: Any, fixed: Any, slots_of: Any, encoded:
    Any, rule_tables: Any, given_times: Any, given_classes: Any, given_sizes: Any, reals: Any, whole:
    Any, marks: Any, slots: Any, born: Any, sizes: Any, names: Any, queue: Any, sums: Any, histogram:
    Any, every: Any, log: Any,
) -> None:  # fmt: skip
    """One replication after the other."""
    near = np.zeros(NEAR)
    for t in range(numbers.shape[0]):
        if whole[JOB, t] < last or drain or whole[STATUS, t] != DONE:
            numbered = names[:, t] if NAMED else born[:, t]
            replicate(
                t, n, last, drain, key, mean_gap, numbers, costs, bounds, kinds, laws, speeds, limits,
                strides, fixed, slots_of, encoded, rule_tables, given_times, given_classes, given_sizes,
                reals, whole, marks[:, t], slots[:, t], born[:, t], sizes[:, t],
                numbered, queue, sums, histogram, every, log, near,
            )  # fmt: skip


def smaller(a: Any, b: Any) -> Any:
    """min(a, b): from 0.66 on, numba's own cannot be compiled for CUDA (its issue 10753)."""
    return b if b < a else a  # noqa: FURB136 - that is the point


def larger(a: Any, b: Any) -> Any:
    """max(a, b), likewise."""
    return b if b > a else a  # noqa: FURB136


BUILTINS: dict[str, Any] = {"min": smaller, "max": larger}


def simulated() -> bool:
    """Whether numba's simulator stands in for a device."""
    return bool(config.ENABLE_CUDASIM)


def device_function(copy: Any) -> Any:
    """A helper for the device: ours are pasted into their callers, so that registers stay registers."""
    if simulated():
        # The simulator puts itself in the place of `cuda` at every call; most helpers can do without.
        return cuda.jit(device=True)(copy) if "cuda" in copy.__code__.co_names else copy
    ours = str(copy.__module__).startswith("malleable.engine.gpu")
    if ours:
        try:
            return cuda.jit(device=True, forceinline=True)(copy)
        except Exception:  # noqa: BLE001 - the CUDA target that numba itself brings knows another word
            return cuda.jit(device=True, inline=True)(copy)
    return cuda.jit(device=True)(copy)


@functools.lru_cache(maxsize=64)
def device_kernel(made_for: Specialisation) -> Any:
    """The kernel for a device, compiled at its first launch."""
    body = {SHARED: in_shared_memory, LOCAL: in_local_memory, DEVICE: in_device_memory}[made_for.memory]
    replaced = {} if simulated() else BUILTINS
    options = {} if made_for.registers is None or simulated() else {"max_registers": made_for.registers}
    return cuda.jit(**options)(specialised(body, {**made_for.constants(), **replaced}, device_function))


@functools.cache
def plain_kernel(function: Any) -> Any:
    """A kernel that is specialised by nothing."""
    return cuda.jit(function)


@functools.lru_cache(maxsize=64)
def processor_kernel(made_for: Specialisation) -> Any:
    """The same events compiled for a processor, replication by replication."""
    options: dict[str, Any] = {"error_model": "numpy"}
    constants = {**made_for.constants(), "cuda": _stand_in()}
    return njit(**options)(specialised(on_processor, constants, njit(**options)))


def _zeros(shape: Any, dtype: Any) -> Any:
    return np.zeros(shape, dtype)


def _stand_in() -> Any:
    """What kernels use of `numba.cuda`, for a processor."""
    module = python_types.ModuleType("stand_in")
    module.local = python_types.ModuleType("local")  # type: ignore[attr-defined]
    module.atomic = python_types.ModuleType("atomic")  # type: ignore[attr-defined]
    module.local.array = njit(_zeros)

    def add(array: Any, index: Any, value: Any) -> None:
        array[index] += value

    module.atomic.add = njit(add)
    return module
