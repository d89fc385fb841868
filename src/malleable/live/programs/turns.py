"""Turns: how paused programs go on while there is no broker.

A supervisor whose program is paused looks for a core of its own as soon as there has been no broker for a
while. What each program may be using stands in its folder, so all supervisors see the same. The one that was
submitted first is next. It goes on when a core is free, on as many as it had before; where none becomes free
for long, it goes on all the same and shares a core. So never more than one program joins those that run
within `PATIENCE_SECONDS` while the cores are taken.

The next broker counts what runs, and pauses what is too much.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.live.broker.broker_lock import without_broker
from malleable.live.programs.job_folder import HeldCores, JobFolder, ProcessName
from malleable.live.system.whole_files import read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LOOK_SECONDS = 1.0
"""Seconds between two looks of a supervisor whose program is paused."""
ALONE_SECONDS = 5.0
"""Seconds without a broker before the first program goes on: one that is started again takes fewer."""
PATIENCE_SECONDS = 60.0
"""Seconds without a change after which the next program goes on though no core is free."""
MACHINE, CLIENTS = "machine.json", "clients.json"
"""Files of a broker: what it divides (in its state folder), what clients hold (in its runtime folder)."""


def note_machine(state: Path, cores: int, cpus: Sequence[int]) -> None:
    """Write down what a broker divides, for when it is gone; no CPUs where it binds jobs to none."""
    with suppress(OSError):
        write_document(state / MACHINE, {"cores": cores, "cpus": list(cpus)})


class Share(NamedTuple):
    """What a program may use from now on."""

    cores: int
    cpus: tuple[int, ...]


class Turn:
    """The turn of one program, whose supervisor asks for it now and then while the program is paused."""

    def __init__(self, folder: JobFolder, runtime: Path) -> None:
        self._folder, self._clients = folder, runtime / CLIENTS
        self._state = folder.path.parent.parent
        self._alone: float | None = None
        """Since when there has been no broker."""
        self._others: list[JobFolder] | None = None
        """Programs with a supervisor; without a broker there will be no more of them."""
        self._seen: Any = None
        self._changed = 0.0
        """When what others use has changed."""

    def forget(self) -> None:
        """The program is not paused any more."""
        self._alone = None

    @contextmanager
    def taken(self, wanted: int) -> Iterator[Share | None]:
        """What the program may use from now on, of so many cores that it wants; None while it has to wait.

        No broker starts, and no other program takes its turn, before this is left.
        """
        with without_broker(self._state) as alone:
            now = time.monotonic()
            if not alone or self._alone is None:
                self._alone = now if alone else None
                self._others = None
                yield None
            elif now - self._alone < ALONE_SECONDS:
                yield None
            else:
                with _one_at_a_time(self._state):
                    yield self._share(wanted, now)

    def _share(self, wanted: int, now: float) -> Share | None:
        """This program's part, if it is its turn."""
        held = self._held_by_others()
        used = [(each.cores, each.cpus) for each in held.values()]
        used += [(cores, tuple(cpus)) for _, cores, cpus in living_clients(read_document(self._clients))]
        if used != self._seen:
            self._seen, self._changed = used, now
        machine = read_document(self._state / MACHINE) or {"cores": 0, "cpus": []}
        free = machine["cores"] - sum(cores for cores, _ in used)
        mine = int(self._folder.path.name)
        before = sum(int(job) < mine for job, each in held.items() if not each.cores)
        if before or free <= 0:
            if now - self._changed < PATIENCE_SECONDS * (before + 1):
                return None
            free = 1
        busy = Counter(cpu for cores, cpus in used for cpu in cpus[:cores])
        cores = min(wanted, free)
        return Share(cores, tuple(sorted(machine["cpus"], key=lambda cpu: (busy[cpu], cpu))[:cores]))

    def _held_by_others(self) -> dict[str, HeldCores]:
        """What each other program that was started may be using."""
        if self._others is None:
            paths = self._folder.path.parent.iterdir()
            self._others = [JobFolder(path) for path in paths if path.name.isdecimal()]
        self._others = [each for each in self._others if each.supervisor() and each.path != self._folder.path]
        return {each.path.name: each.held() for each in self._others if each.started}


def living_clients(record: Any) -> Iterator[tuple[str, int, list[int]]]:
    """The clients that a broker has written down and that live, with the cores and CPUs that they keep."""
    with suppress(AttributeError, TypeError, ValueError):  # not written by a broker
        for job, (cores, cpus, process) in record.items():
            if process is None or ProcessName(*process).process() is not None:
                yield job, int(cores), list(cpus)


@contextmanager
def _one_at_a_time(state: Path) -> Iterator[None]:
    """Wait until no other supervisor decides."""
    file = os.open(state / "turns.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
