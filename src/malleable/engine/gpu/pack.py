"""Settings of one kind side by side: their parameters in arrays, and the kernels for many settings at once.

A thread looks up its setting, and does what it would do for it alone. What settings have in common a kernel
is made for (classes, discipline, source, room); what differs stands in arrays with one row per setting, or
end to end with `…_starts` that say where each setting's part begins. The threads of a setting are neighbours,
so that those of a warp take the same way.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from malleable.engine.gpu import layout as L  # noqa: N812
from malleable.engine.gpu.class_state import decided
from malleable.engine.gpu.cohort import Cohort, Options
from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.jobs import nothing_given
from malleable.engine.gpu.kernels import Specialisation, body, for_device, launch, plain_kernel, simulated
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
from malleable.engine.gpu.run import GROUPS
from malleable.engine.gpu.setting import CountTable
from malleable.engine.rule_interface import DONE, POOLS, SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.gpu.backends import Backend
    from malleable.engine.gpu.setting import Setting


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
    """The table over class counts of every setting, by its rule: `setting.fill` by many threads."""
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


class Item(NamedTuple):
    """One setting of a sweep, ready to be packed."""

    position: int
    """Its place in the sweep."""
    setting: Setting
    seed: int
    replications: int
    stride: int
    """Jobs that each replication takes for a record."""
    room: int
    queue_room: int
    by_rule: bool
    """Whether states beyond its table are decided by the rule on the device."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """What settings of one pack have in common."""
        one = self.setting
        return (
            one.classes, one.program.discipline, one.source, one.program.rule, self.by_rule, self.room,
            min(self.replications, GROUPS),
        )  # fmt: skip

    @property
    def states(self) -> int:
        """Rows of its table."""
        return int(np.prod(self.setting.table.limits + 1))

    @property
    def bytes(self) -> int:
        """Memory that it takes on the device, about."""
        m = self.setting.classes
        queues = 0 if self.setting.program.discipline == SHARE else m * self.queue_room
        each = m * self.room + 5 * queues + 11 * m + 12 + len(self.setting.program.table)
        return 8 * (self.replications * each + self.states * L.table_row(m))


def reaching(setting: Setting, limits: Any) -> Setting:
    """The setting with a table up to these limits, which the device fills."""
    object.__setattr__(setting, "table", CountTable(np.zeros(0), limits.astype(np.int64)))
    return setting


@dataclass(eq=False)
class PackedCohort(Cohort):
    """Replications of all settings of a pack; `setting` is the first of them, and `common` holds them all."""

    def _rule_tables(self) -> Any:
        return np.zeros((1, 1))

    def specialisation(self) -> Specialisation:
        """The kernel for all settings, whatever the laws of each: nothing is known of these beforehand."""
        made = super().specialisation()
        known = {name: v for name, v in Specialisation._field_defaults.items() if name == "components"}
        return made._replace(exponential_only=False, **known)

    def advance(self, last: int, *, drain: bool = False, stream: int = 0) -> None:  # noqa: ARG002 - as there
        """Let every replication of every setting take its jobs up to the end of record `last`."""
        known = {**self.common, **self.arrays}
        lasts = self.backend.upload(last * known["job_strides"])
        made_for = self.specialisation()
        launch(
            packed_kernel(made_for),
            self.count,
            made_for.threads,
            known["owner"],
            lasts,
            int(drain),
            L.taken(Packed, known),
            L.taken(L.Arrays, known),
        )

    def sums_by_setting(self, groups: int) -> tuple[Any, Any]:
        """(fields, settings, groups) since the last call, jobs present behind them; the largest statuses."""
        sums, whole, firsts = self.arrays["sums"], self.arrays["whole"], self.common["first_threads"]
        settings, fields = len(firsts) - 1, sums.shape[0] + self.setting.classes
        if simulated():
            present = whole[L.WHOLE + L.PRESENT :: L.COUNTERS].astype(float)
            parts = np.concatenate([sums, present])
            found = np.zeros((fields, settings, groups))
            for w in range(settings):
                for group in range(groups):
                    found[:, w, group] = parts[:, firsts[w] + group : firsts[w + 1] : groups].sum(axis=1)
            sums[:] = 0.0
            return found, np.maximum.reduceat(whole[L.STATUS], firsts[:-1])
        found = self.backend.empty((fields, settings, groups), np.float64)
        statuses = self.backend.upload(np.zeros(settings, dtype=np.int64))
        launch(
            plain_kernel(sum_settings),
            found.size,
            THREADS,
            sums,
            whole,
            self.common["firsts"],
            found,
            statuses,
        )
        return self.backend.download(found), self.backend.download(statuses)


def pack(items: Sequence[Item], backend: Backend) -> PackedCohort:
    """The replications of settings of one kind, empty and at time 0, and their tables filled."""
    first, settings = items[0], [item.setting for item in items]
    options = Options(statistics=False, rule_on_device=first.by_rule)
    common = _arrays(items, backend)
    numbers = np.concatenate([np.arange(item.replications) for item in items])
    queue_room = max(item.queue_room for item in items)
    made = PackedCohort.fresh(
        first.setting, backend, options, common, numbers, room=first.room, queue_room=queue_room
    )
    cohort = cast("PackedCohort", made)
    if first.setting.program.discipline == POOLS:
        return cohort
    tables = _padded([one.program.table for one in settings]).T
    spread = backend.empty((len(tables), len(numbers)), np.float64)
    tables = backend.upload(tables)
    launch(plain_kernel(spread_tables), spread.size, THREADS, tables, common["owner"], spread)
    program = first.setting.program
    launch(
        fill_kernel(first.setting.classes, program.rule),
        len(numbers),
        THREADS,
        common["owner"],
        common["firsts"],
        int(program.discipline == SHARE),
        L.taken(Packed, common),
        spread,
    )
    if first.by_rule:
        cohort.arrays["rule_tables"] = spread
    return cohort


def _arrays(items: Sequence[Item], backend: Backend) -> dict[str, Any]:
    """The parameters of all settings: rows, or parts end to end."""
    settings = [item.setting for item in items]
    m, upload = settings[0].classes, backend.upload
    sizes = [item.states * L.table_row(m) for item in items]
    counts = [item.replications for item in items]
    return {
        "first_threads": _starts(counts),
        "firsts": upload(_starts(counts)),
        "owner": upload(np.repeat(np.arange(len(items)), counts)),
        "job_strides": np.array([item.stride for item in items], dtype=np.int64),
        "n": upload(np.array([one.cores for one in settings])),
        "keys": upload(np.array([item.seed for item in items], dtype=np.int64)),
        "gaps": upload(np.array([1.0 / one.workload.total_rate for one in settings])),
        "costs": upload(np.array([one.workload.holding_costs for one in settings], dtype=float)),
        "bounds": upload(np.concatenate([one.bounds for one in settings])),
        "kinds": upload(np.concatenate([one.kinds for one in settings]).astype(np.int64)),
        "part_starts": upload(_starts([len(one.bounds) for one in settings])),
        "laws": upload(np.concatenate([one.laws.encoded for one in settings])),
        "law_starts": upload(_starts([len(one.laws.encoded) for one in settings])),
        "speeds": backend.empty((sum(sizes),), np.float64),
        "speed_starts": upload(_starts(sizes)),
        "limits": upload(np.array([one.table.limits for one in settings])),
        "fixed": upload(np.array([one.fixed for one in settings])),
        "slots_of": upload(np.array([one.program.slots or (0,) * m for one in settings], dtype=np.int64)),
        "encoded": upload(np.concatenate([one.encoded for one in settings])),
        "encoded_starts": upload(_starts([len(one.encoded) for one in settings])),
        **nothing_given(m, backend),
    }


def _starts(lengths: Sequence[int]) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _padded(tables: Sequence[Any]) -> Any:
    """Tables as rows of one array; rules read theirs from the front."""
    found = np.zeros((len(tables), max(map(len, tables))))
    for row, table in zip(found, tables, strict=True):
        row[: len(table)] = table
    return found
