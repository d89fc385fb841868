"""The kernels around `events.replicate`, and how they become code for a GPU, a processor or the simulator.

Plain functions as code for a device, specialised by constants.

The functions of this package refer to constants of their modules (the number of classes, what is counted, the
rule); `specialised` copies a function with all that it calls, and puts other values in their place. So every
setting has a kernel of its own, in which loops over classes are unrolled and what is not needed is not there,
and there is one text of it.
"""

from __future__ import annotations

import functools
import types as python_types
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from malleable.engine.compiling import helpers
from malleable.engine.gpu import layout as L  # noqa: N812
from malleable.engine.gpu.cuda_api import config, cuda
from malleable.engine.gpu.events import replicate
from malleable.engine.gpu.job_orders import mark_at, put_mark
from malleable.engine.gpu.layout import (
    BLOCK_SHARES,
    COUNTERS,
    JOB,
    NAMED,
    ROOM,
    SERVED,
    STATISTICS,
    STATUS,
    WHOLE,
    Arrays,
    M,
    Parameters,
)
from malleable.engine.rule_interface import DONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def specialised(
    function: Any, constants: Mapping[str, Any], compile_helper: Callable[[Any], Any] = lambda copy: copy
) -> Any:
    """A copy of the function, over copies of its helpers, that sees the constants given."""
    made: dict[Any, Any] = {}

    def copied(one: Any) -> Any:
        called = {name: helper(value) for name, value in helpers(one).items() if name not in constants}
        replaced = {
            name: helper(value) if isinstance(value, python_types.FunctionType) else value
            for name, value in constants.items()
            if name in _names(one)
        }
        copy = python_types.FunctionType(
            one.__code__,
            {**one.__globals__, **called, **replaced},
            one.__name__,
            one.__defaults__,
            _closure(one, called),
        )
        copy.__qualname__, copy.__module__ = one.__qualname__, one.__module__
        return copy

    def helper(one: Any) -> Any:
        if one not in made:
            made[one] = compile_helper(copied(one))
        return made[one]

    return copied(function)


def _names(function: Any) -> set[str]:
    return set(function.__code__.co_names)


def _closure(function: Any, called: Mapping[str, Any]) -> tuple[Any, ...]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return tuple(python_types.CellType(called[name]) if name in called else cell for name, cell in cells)


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
            "BLOCK_SHARES": self.memory == SHARED,
            "HOT": self.hot,
            "TALLIES": self.classes * self.hot,
            "NEAR": self.classes * (self.hot + L.CLASS_TALLIES),
            "PLACES": places if self.hot < self.room else 1,
            "DATA": places if self.statistics else 1,
            "NUMBERS": places if self.named else 1,
            "THREADS": self.threads,
        }
        return known if self.rule is None else {**known, "rule": self.rule}


def in_device_memory(last: Any, drain: Any, p: Parameters, a: Arrays) -> None:
    """A thread per replication; marks are sorted where they are."""
    t = cuda.grid(1)
    if t < a.numbers.shape[0]:
        in_place(t, last, drain, p, a, cuda.local.array(NEAR, np.float64))


def on_processor(last: Any, drain: Any, p: Parameters, a: Arrays) -> None:
    """One replication after the other."""
    near = np.zeros(NEAR)
    for t in range(a.numbers.shape[0]):
        in_place(t, last, drain, p, a, near)


def in_place(t: int, last: Any, drain: Any, p: Parameters, a: Arrays, near: Any) -> None:
    """Simulate a replication whose jobs stay where they stand."""
    if unfinished(t, last, drain, a):
        numbered = a.names[:, t] if NAMED else a.born[:, t]
        replicate(
            t, last, drain, p, a, a.marks[:, t], a.slots[:, t], a.born[:, t], a.sizes[:, t], numbered, near
        )


def in_thread_memory(last: Any, drain: Any, p: Parameters, a: Arrays) -> None:
    """A thread per replication, whose jobs stand in its local memory while it runs, and `slots` with them.

    Its first marks are near: in the memory that its block shares, in its own banks, or in local memory too.
    """
    t = cuda.grid(1)
    if t < a.numbers.shape[0] and unfinished(t, last, drain, a):
        if BLOCK_SHARES:
            near = cuda.shared.array((NEAR, THREADS), np.float64)[:, cuda.threadIdx.x]
        else:
            near = cuda.local.array(NEAR, np.float64)
        marks = cuda.local.array(PLACES, np.float64)
        slots = cuda.local.array(DATA, np.int32)
        born = cuda.local.array(DATA, np.float64)
        sizes = cuda.local.array(DATA, np.float64)
        names = cuda.local.array(NUMBERS, np.float64)
        move_in(t, a, near, marks, slots, born, sizes, names)
        replicate(t, last, drain, p, a, marks, slots, born, sizes, names if NAMED else born, near)
        move_out(t, a, near, marks, slots, born, sizes, names)


def unfinished(t: int, last: Any, drain: Any, a: Arrays) -> bool:
    """Whether a replication has something left to do."""
    return bool(a.whole[JOB, t] < last or drain or a.whole[STATUS, t] != DONE)


def move_in(t: int, a: Arrays, near: Any, marks: Any, slots: Any, born: Any, sizes: Any, names: Any) -> None:
    """Bring the jobs of a replication to where its thread can get at them quickly."""
    for i in range(M):
        length = a.whole[WHOLE + COUNTERS * i + SERVED, t]
        for place in range(length):
            at = i * ROOM + place
            put_mark(near, marks, i, place, a.marks[at, t])
            if STATISTICS:
                born[at] = a.born[at, t]
                sizes[at] = a.sizes[at, t]
            if NAMED:
                names[at] = a.names[at, t]
        if STATISTICS:
            for place in range(ROOM):
                slots[i * ROOM + place] = place


def move_out(t: int, a: Arrays, near: Any, marks: Any, slots: Any, born: Any, sizes: Any, names: Any) -> None:
    """Bring them back, sorted by place."""
    for i in range(M):
        length = a.whole[WHOLE + COUNTERS * i + SERVED, t]
        for place in range(length):
            at = i * ROOM + place
            a.marks[at, t] = mark_at(near, marks, i, place)
            if STATISTICS:
                slot = i * ROOM + slots[at]
                a.born[at, t] = born[slot]
                a.sizes[at, t] = sizes[slot]
                if NAMED:
                    a.names[at, t] = names[slot]


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


def body(made_for: Specialisation) -> Any:
    """What a thread does, by where its marks stand."""
    return in_device_memory if made_for.memory == DEVICE else in_thread_memory


@functools.lru_cache(maxsize=64)
def device_kernel(made_for: Specialisation) -> Any:
    """The kernel for a device."""
    return for_device(body(made_for), made_for.constants(), made_for.registers)


def for_device(function: Any, constants: dict[str, Any], registers: int | None = None) -> Any:
    """A kernel that sees these constants, compiled at its first launch."""
    if simulated():
        return cuda.jit(specialised(function, constants, device_function))
    options = {} if registers is None else {"max_registers": registers}
    return cuda.jit(**options)(specialised(function, {**constants, **BUILTINS}, device_function))


def launch(kernel: Any, threads: int, per_block: int, *arguments: Any, stream: Any = 0) -> None:
    """Start a kernel; in the simulator a block is one thread, which it is quickest with."""
    each = 1 if simulated() else per_block
    kernel[-(-threads // each), each, stream](*arguments)


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
