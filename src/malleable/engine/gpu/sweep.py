"""Many settings on one device at once: those that one kernel can serve are packed, and run in one launch.

A setting is a policy's program on a workload and cores, with a seed and a number of replications. Its numbers
are those that a run of its own with this seed and as many replications would give. Only the numbers of jobs
present are kept: costs and mean response times follow from them, percentiles do not.

Rooms and tables have what replications nearly always need. A replication that needs more stops; its setting
is then simulated again, on the same jobs, with more of it. Nothing is cut.
"""

from __future__ import annotations

import time
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.enforcement import refusal
from malleable.engine.gpu import layout as L  # noqa: N812
from malleable.engine.gpu.backends import default_backend
from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.kernels import simulated
from malleable.engine.gpu.pack import Item, PackedCohort, pack, reaching
from malleable.engine.gpu.record_rows import lean_records, pooled
from malleable.engine.gpu.run import GROUPS, KEY_BITS
from malleable.engine.gpu.setting import likely_counts, make_setting
from malleable.engine.rule_interface import DONE, FIFO, GROW, INDEX, POOLS, SHARE
from malleable.engine.run import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from malleable.engine.gpu.backends import Backend
    from malleable.engine.rule_interface import Program
    from malleable.model import Workload

RECORDS = 50
"""Records of a replication."""
MOST_STATES = {SHARE: 1 << 16, INDEX: 1 << 20, FIFO: 1 << 20}
"""States of a setting's table at most; where more are likely, the rule itself is asked beyond them."""
MOST_BYTES = 5 << 30
"""Memory that a pack may take on the device."""
MOST_REPLICATIONS = 1 << 18
"""Replications of a pack: some times as many as a device runs at once, so that few wait for the slowest."""
ROOMS = (16, 32, 48, 64, 128)
"""Rooms for the served jobs of a class, and then twice as much and so on; every one is another kernel."""
LESS = 4
"""By how much a room may be larger than needed, to spare another kernel."""
MORE = 2
"""By how much rooms and tables that were too small are enlarged."""
LIKELY_QUEUE = 20.0
"""Minus the logarithm of the chance of a longer queue, roughly."""
MOST_SPREAD = 5.0
"""Queues are longer by half of 1 + SCV of the sizes, but for heavy tails we wait and see."""


class Asked(NamedTuple):
    """One setting of a sweep."""

    workload: Workload
    cores: float
    program: Program
    seed: int
    replications: int
    """Should be a multiple of 32, so that a warp has replications of one setting."""
    jobs: int
    """Of all replications together."""


def sweep(
    asked: Sequence[Asked],
    *,
    backend: Backend | None = None,
    keep: Callable[[int, Outcome], None],
    most_bytes: int = MOST_BYTES,
) -> None:
    """Simulate all settings; `keep(position, outcome)` is called as each one is done, in any order."""
    chosen = default_backend() if backend is None else backend
    items = [_item(position, one) for position, one in enumerate(asked)]
    while items:
        again: list[Item] = []
        for together in packs(few_kinds(items), most_bytes):
            again += _run(together, chosen, keep)
            _release()
        items = again


def _release() -> None:
    """Give the memory of a pack back at once: other processes may share the device."""
    if not simulated():
        cuda.current_context().deallocations.clear()


def few_kinds(items: Sequence[Item]) -> list[Item]:
    """The same settings with fewer different rooms: more room costs less than compiling another kernel."""
    made = list(items)
    order = sorted(range(len(items)), key=lambda i: -items[i].room)
    rooms: dict[Any, int] = {}
    by_rule = {_family(item) for item in items if item.by_rule}
    for i in order:
        item, family = items[i], _family(items[i])
        if LESS * item.room < rooms.get(family, 0) or family not in rooms:
            rooms[family] = item.room
        made[i] = item._replace(room=rooms[family], by_rule=family in by_rule)
    return made


def _family(item: Item) -> tuple[Any, ...]:
    """What kernels differ in besides rooms; for rules that share, the rule is asked of all or of none."""
    program = item.setting.program
    sharing = program.rule if program.discipline == SHARE else item.by_rule
    return item.setting.classes, program.discipline, item.setting.source, sharing


def packs(items: Sequence[Item], most_bytes: int = MOST_BYTES) -> Iterator[list[Item]]:
    """Settings of one kind together, as many as the device has memory for; those of similar queues first."""
    numbers: dict[Any, int] = {}
    kinds = [numbers.setdefault(item.kind, len(numbers)) for item in items]
    order = sorted(range(len(items)), key=lambda i: (kinds[i], -items[i].queue_room, i))
    for _, group in groupby(order, key=lambda i: kinds[i]):
        made: list[Item] = []
        size = count = 0
        for item in (items[i] for i in group):
            count += item.replications
            # The longest queues come first, and all have room for as long ones.
            alike = item._replace(queue_room=made[0].queue_room) if made else item
            if made and (count > MOST_REPLICATIONS or size + alike.bytes > most_bytes):
                yield made
                made, size, count, alike = [], 0, item.replications, item
            made.append(alike)
            size += alike.bytes
        yield made


def _item(position: int, asked: Asked) -> Item:
    """A setting with the rooms and the table that it nearly always needs."""
    setting = make_setting(asked.workload, asked.cores, asked.program, rows=1)
    load = min(max(setting.load, 0.0), 0.99)
    spread = min(max(0.5 * (1.0 + one.size.scv) for one in asked.workload.classes), MOST_SPREAD)
    likely = LIKELY_QUEUE * max(spread, 1.0) / (1.0 - load)
    queue_room = 1 << int(np.ceil(np.log2(max(likely, 16.0))))
    stride = max(1, -(-asked.jobs // (asked.replications * RECORDS)))
    key, count = asked.seed & KEY_BITS, asked.replications
    one = Item(position, setting, key, count, stride, 0, queue_room, by_rule=False)
    if asked.program.discipline == POOLS:
        return one._replace(room=setting.room)
    wanted = likely_counts(setting.expected, setting.cores, asked.program.discipline, np.inf)
    if asked.program.discipline == SHARE:
        # No job waits, so a queue is a state.
        wanted = wanted + int(LIKELY_QUEUE / -np.log(max(load, 0.01)))
    return _with_states(one._replace(room=_room(setting.room)), wanted)


def _with_states(item: Item, wanted: Any) -> Item:
    """A table up to these counts if they are not too many; else a smaller one, and the rule beyond it."""
    setting, discipline = item.setting, item.setting.program.discipline
    by_rule = bool(np.prod(wanted + 1.0) > MOST_STATES[discipline])
    limits = likely_counts(setting.expected, setting.cores, discipline, MOST_STATES[discipline])
    return item._replace(setting=reaching(setting, limits if by_rule else wanted), by_rule=by_rule)


def _room(least: int) -> int:
    """One of few rooms."""
    for room in ROOMS:
        if least <= room:
            return room
    return 1 << (least - 1).bit_length()


def _enlarged(item: Item, status: int) -> Item:
    """The setting with more of what one of its replications was short of."""
    if status == GROW:
        # Where there is room for as many as there are cores, a queue was too long.
        served = item.room <= item.setting.cores or item.setting.program.discipline == SHARE
        room = _room(MORE * item.room) if served else item.room
        return item._replace(room=room, queue_room=MORE * MORE * item.queue_room)
    limits = MORE * item.setting.table.limits + 4
    if item.setting.program.discipline != SHARE:
        limits = np.minimum(limits, max(int(item.setting.cores) - 1, 0))
    return _with_states(item, limits)


def _run(items: list[Item], backend: Backend, keep: Callable[[int, Outcome], None]) -> list[Item]:
    """Simulate a pack; settings that need more room come back."""
    started = time.perf_counter()
    cohort, groups = pack(items, backend), min(GROUPS, items[0].replications)
    rows, stopped = [], np.zeros(len(items), dtype=np.int64)
    for record in range(1, RECORDS + 1):
        cohort.advance(record)
        found, statuses = cohort.sums_by_setting(groups)
        rows.append(found)
        _retire(cohort, (statuses != DONE) & (stopped == DONE))
        stopped = np.maximum(stopped, statuses)
        if (stopped != DONE).all():
            break
    seconds = (time.perf_counter() - started) / len(items)
    by_setting = np.moveaxis(np.array(rows), 2, 0)  # settings, records, fields, groups
    again = []
    for item, mine, status in zip(items, by_setting, stopped.tolist(), strict=True):
        if status == DONE:
            keep(item.position, _outcome(mine, item, seconds, backend.name))
        elif status in {GROW, L.OUTSIDE}:
            again.append(_enlarged(item, status))
        else:
            raise refusal(status, item.setting.cores, "in a sweep", "see the policy's rule")
    return again


def _retire(cohort: PackedCohort, settings: Any) -> None:
    """Leave the settings alone that have to be simulated again."""
    firsts = cohort.common["first_threads"]
    columns = [np.arange(firsts[w], firsts[w + 1]) for w in np.flatnonzero(settings)]
    if columns:
        cohort.backend.retire(cohort.arrays["whole"], cohort.arrays["sums"], np.concatenate(columns))


def _outcome(rows: Any, item: Item, seconds: float, device: str) -> Outcome:
    groups = lean_records(rows, item.setting.classes)
    records = pooled(groups)
    events = round(float((records.arrivals + records.departures).sum()))
    together = item.replications // len(groups)
    jobs = RECORDS * item.stride * item.replications
    return Outcome(records, jobs, events, seconds, False, groups, together, device)
