"""Replications that are simulated side by side, with the same room for jobs each.

A replication that outgrows its room stops between two events. It is then taken out, with all that it knows,
and goes on in a cohort with more room: nothing is dropped, and nothing is done twice.

Where the threads of a launch keep what they need: measured on an H200, `benchmarks.bench_gpu variants`.

What a thread needs at every event stands in registers and in the memory that its block shares. Both are few,
and the more a thread has, the fewer threads are resident, whose waiting could be filled with other work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from malleable.engine.gpu import layout as L  # noqa: N812 - L.NOW reads like a row's name
from malleable.engine.gpu.backends import Backend
from malleable.engine.gpu.job_orders import COLUMNS
from malleable.engine.gpu.kernels import DEVICE, LOCAL, SHARED, Specialisation
from malleable.engine.gpu.layout import CLASS_TALLIES
from malleable.engine.gpu.reductions import NEVER
from malleable.engine.gpu.setting import Setting
from malleable.engine.rule_interface import DONE, FIFO, GROW, INDEX, SHARE

MOST_SHARED = 48 << 10
"""Bytes of memory that a block may share."""
MOST_THREADS, FEWEST_THREADS = 128, 32
"""Threads per block."""
FEWEST_HOT, MOST_HOT, NEAR_BYTES = 8, 24, 1536
"""Marks of a class in shared memory, and bytes of it per thread at most."""
FEW_CLASSES, FEW_REGISTERS, QUEUE_REGISTERS, MANY_REGISTERS = 3, 80, 96, 128
"""Registers per thread: what few classes need, what they need where jobs often wait, and what as many threads
as shared memory is for can have."""
MOST_LOCAL = 1 << 15
"""Bytes of local memory per thread up to which marks are kept there."""


class Placement(NamedTuple):
    """Part of what a kernel is made for (see `Specialisation`)."""

    memory: str
    """Where marks stand."""
    hot: int
    """Marks of a class that stand in the memory that a block shares."""
    threads: int
    """Threads per block."""
    registers: int | None
    """Registers per thread at most."""


def placement(
    classes: int,
    room: int,
    wanted: str,
    *,
    statistics: bool,
    named: bool,
    queues: bool = False,
    hot: int | None = None,
    registers: int | None = None,
) -> Placement:
    """Where it is fastest, if it fits; `hot` and `registers` are chosen where they are not given.

    `queues` says that jobs often wait.
    """
    each = 36 if named else 28 if statistics else 8
    if wanted == DEVICE or classes * room * each > MOST_LOCAL:
        return Placement(DEVICE, 0, MOST_THREADS, registers)
    if wanted == LOCAL or 8 * classes * CLASS_TALLIES * FEWEST_THREADS > MOST_SHARED:
        return Placement(LOCAL, 0, MOST_THREADS, registers)
    near = 0 if statistics else _hot(classes, room, hot)
    bytes_near = 8 * classes * (near + CLASS_TALLIES)
    fitting = (t for t in (MOST_THREADS, MOST_THREADS // 2) if t * bytes_near <= MOST_SHARED)
    if registers is None and not statistics:
        few = classes <= FEW_CLASSES and near <= FEWEST_HOT
        registers = (QUEUE_REGISTERS if queues else FEW_REGISTERS) if few else MANY_REGISTERS
    return Placement(SHARED, near, next(fitting, FEWEST_THREADS), registers)


def _hot(classes: int, room: int, wanted: int | None) -> int:
    """Most of the marks that are ever there, up to where too few threads would be resident."""
    chosen = wanted or min(max(room // 4, FEWEST_HOT), MOST_HOT)
    fitting = NEAR_BYTES // (8 * classes) - CLASS_TALLIES
    return max(min(chosen, room, fitting), 0)


FIRST_QUEUE = 16
"""Jobs that can wait in a queue at first."""
CROWDED = 0.5
"""The load from which on there are often more jobs than cores."""
MORE = 4
"""By how much a room that is too small is enlarged."""


class Options(NamedTuple):
    """What is kept of a run."""

    statistics: bool = True
    logged: bool = False
    rule_on_device: bool = False
    """Whether the rule is asked beyond the table; else the table is enlarged."""
    memory: str = SHARED
    """Where marks stand during a launch, if there is room."""
    registers: int | None = None
    """Registers per thread at most."""
    hot: int | None = None
    """Marks of a class in the memory that a block shares."""
    every: int = 1
    """Of how many warps (32 replications) one keeps statistics; the others keep areas only."""


class HostState(NamedTuple):
    """All that replications know, on this processor: sorted by place, queues from their heads on."""

    numbers: Any
    reals: Any
    whole: Any
    sums: Any
    marks: Any
    """(classes, room, replications); likewise the next three."""
    born: Any
    sizes: Any
    names: Any
    queue: Any
    """(columns, queues, room, replications)."""


@dataclass(eq=False)
class Cohort:
    """The arrays of some replications; `common` are those that all cohorts share."""

    setting: Setting
    backend: Backend
    options: Options
    common: dict[str, Any]
    room: int
    queue_room: int
    count: int
    arrays: dict[str, Any]
    aligned: bool = False
    """Whether replication r stands in a column c with c ≡ r modulo 32, as at the beginning."""

    @classmethod
    def fresh(
        cls,
        setting: Setting,
        backend: Backend,
        options: Options,
        common: dict[str, Any],
        numbers: Any,
        room: int | None = None,
        queue_room: int = FIRST_QUEUE,
    ) -> Cohort:
        """Replications of the numbers given, all empty and at time 0."""
        m, count = setting.classes, len(numbers)
        cohort = cls(setting, backend, options, common, room or setting.room, queue_room, count, {})
        whole = np.zeros((L.WHOLE + L.COUNTERS * m, count), dtype=np.int64)
        whole[L.STATUS] = -1
        cohort.arrays = {
            "numbers": backend.upload(np.asarray(numbers, dtype=np.int64)),
            "reals": backend.upload(np.zeros((L.REALS + 3 * m, count))),
            "whole": backend.upload(whole),
            "sums": backend.upload(np.zeros((L.CLASS_SUMS * m + L.MACHINE_SUMS, count))),
            **{name: backend.empty(shape, np.float64) for name, shape in cohort.shapes().items()},
            "slots": backend.upload(cohort.first_slots()),
            "rule_tables": backend.upload(cohort._rule_tables()),
        }
        return cohort

    @classmethod
    def of(cls, one: Cohort, state: HostState, room: int, queue_room: int) -> Cohort:
        """Replications taken out of another cohort, in one with that room."""
        made = cls.fresh(one.setting, one.backend, one.options, one.common, state.numbers, room, queue_room)
        upload = one.backend.upload
        for name in ("reals", "whole", "sums"):
            made.arrays[name] = upload(getattr(state, name))
        for name in ("marks", "born", "sizes", "names"):
            shape = made.shapes()[name]
            old = getattr(state, name)
            new = np.zeros(shape)
            if shape[0] > 1:
                new.reshape(old.shape[0], room, -1)[:, : old.shape[1]] = old
            made.arrays[name] = upload(new)
        queue = np.zeros((*state.queue.shape[:2], queue_room, made.count))
        queue[:, :, : state.queue.shape[2]] = state.queue
        made.arrays["queue"] = upload(queue.reshape(COLUMNS, -1, made.count))
        return made

    @property
    def named(self) -> bool:
        """Whether ties can happen, so that jobs need numbers."""
        law = (L.GIVEN, L.RENEWAL)
        return self.options.statistics and (
            self.options.logged or self.setting.source in law or not self.setting.laws.continuous
        )

    @property
    def often_wait(self) -> bool:
        """Whether there are often more jobs than cores, and some of them wait."""
        shared = self.setting.program.discipline == SHARE
        return not shared and self.setting.load > CROWDED

    @property
    def placed(self) -> Placement:
        """Where the threads of a launch keep what they need."""
        return placement(
            self.setting.classes,
            self.room,
            self.options.memory if self.backend.local else DEVICE,
            statistics=self.options.statistics,
            named=self.named,
            queues=self.often_wait,
            hot=self.options.hot,
            registers=self.options.registers,
        )

    @property
    def queues(self) -> int:
        """How many queues a replication has."""
        return 1 if self.setting.program.discipline == FIFO else self.setting.classes

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the arrays that hold jobs."""
        places, count = self.setting.classes * self.room, self.count
        data = places if self.options.statistics else 1
        waiting = 1 if self.setting.program.discipline == SHARE else self.queue_room
        return {
            "marks": (places, count),
            "born": (data, count),
            "sizes": (data, count),
            "names": (places if self.named else 1, count),
            "queue": (COLUMNS, self.queues * waiting, count),
        }

    def first_slots(self) -> Any:
        """Every place with the slot of its number."""
        if self.placed.memory != DEVICE or not self.options.statistics:
            return np.zeros((1, self.count), dtype=np.int32)
        one = np.tile(np.arange(self.room, dtype=np.int32), self.setting.classes)
        return np.repeat(one[:, None], self.count, axis=1)

    def _rule_tables(self) -> Any:
        if not self.options.rule_on_device:
            return np.zeros((1, 1))
        return np.repeat(self.setting.program.table[:, None], self.count, axis=1)

    def ask_rule(self) -> None:
        """Let the rule itself decide beyond the table from now on."""
        self.options = self.options._replace(rule_on_device=True)
        self.arrays["rule_tables"] = self.backend.upload(self._rule_tables())

    def specialisation(self) -> Specialisation:
        """The kernel that these replications need."""
        setting = self.setting
        return Specialisation(
            classes=setting.classes,
            room=self.room,
            discipline=setting.program.discipline,
            source=setting.source,
            statistics=self.options.statistics,
            named=self.named,
            logged=self.options.logged,
            exponential_only=setting.source == L.POISSON and setting.laws.exponential,
            rule=setting.program.rule if self.options.rule_on_device else None,
            **self.placed._asdict(),
            components=len(setting.kinds),
        )

    def advance(self, last: int, *, drain: bool = False, stream: int = 0) -> None:
        """Let every replication take its jobs up to number `last`, unless it runs out of room.

        Cohorts in different streams run side by side.
        """
        known = {**self.common, **self.arrays}
        arguments = last, int(drain), L.taken(L.Parameters, known), L.taken(L.Arrays, known)
        self.backend.launch(self.specialisation(), self.count, arguments, stream)

    def extract(self, columns: Any) -> HostState:
        """Copies of all that some of the replications know."""
        m = self.setting.classes
        got = {
            name: self.backend.columns(array, columns)
            for name, array in self.arrays.items()
            if name not in {"numbers", "rule_tables"}
        }
        stored = {}
        for name in ("marks", "born", "sizes", "names"):
            rows = got[name].shape[0]
            stored[name] = got[name].reshape(m, self.room, -1) if rows > 1 else np.zeros((m, 0, len(columns)))
        if self.placed.memory == DEVICE and self.options.statistics:
            slots = got["slots"].reshape(m, self.room, -1).astype(np.int64)
            for name in ("born", "sizes", "names"):
                if stored[name].size:
                    stored[name] = np.take_along_axis(stored[name], slots, axis=1)
        queue = got["queue"].reshape(COLUMNS, self.queues, -1, len(columns))
        whole = got["whole"].copy()
        if self.setting.program.discipline not in {INDEX, SHARE}:
            _unroll(queue, whole)
        numbers = self.backend.download(self.arrays["numbers"])[columns]
        return HostState(numbers, got["reals"], whole, got["sums"], **stored, queue=queue)

    def remaining(self) -> Any:
        """The replications that have not gone on elsewhere."""
        return np.flatnonzero(self.backend.download(self.arrays["whole"])[L.JOB] != NEVER)

    def outgrown(self) -> tuple[Any, Any]:
        """Statuses of all replications, and which of them need more room."""
        statuses = self.backend.download(self.arrays["whole"][L.STATUS])
        return statuses, np.flatnonzero(statuses == GROW)

    def take_out(self, columns: Any) -> Cohort:
        """A cohort of these replications, with more room where they need it; here they are left alone."""
        state = self.extract(columns)
        served = state.whole[L.WHOLE + L.SERVED :: L.COUNTERS]
        room = self.room * MORE if (served >= self.room).any() else self.room
        queue_room = self.queue_room * MORE if room == self.room else self.queue_room
        state.whole[L.STATUS] = DONE
        moved = Cohort.of(self, state, room, queue_room)
        self.backend.retire(self.arrays["whole"], self.arrays["sums"], columns)
        return moved


def joined(one: Cohort, other: Cohort) -> Cohort:
    """Two cohorts of the same rooms as one."""
    a, b = (c.extract(c.remaining()) for c in (one, other))
    state = HostState(*(np.concatenate(pair, axis=-1) for pair in zip(a, b, strict=True)))
    return Cohort.of(one, state, one.room, one.queue_room)


def _unroll(queue: Any, whole: Any) -> None:
    """Let every ring start at 0."""
    for q in range(queue.shape[1]):
        row = L.WHOLE + L.COUNTERS * q + L.HEAD
        for column in np.flatnonzero(whole[row]):
            queue[:, q, :, column] = np.roll(queue[:, q, :, column], -int(whole[row, column]), axis=1)
        whole[row] = 0
