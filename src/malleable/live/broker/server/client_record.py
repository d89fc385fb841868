"""Who is connected, and on how many cores, in a file that outlives the broker.

A broker that is gone does not stop its clients: they keep their cores and come to the next one, which must
not have given them away. So the cores that each session may be using are written down before it is told of
more, and after it has given some back. What programs hold stands in their own folders.

The file is not synced to the disk: after a power cut no client is left to come back.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from malleable.errors import MalleableError
from malleable.live.programs.job_folder import ProcessName
from malleable.live.programs.turns import CLIENTS, living_clients
from malleable.live.system.whole_files import read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from malleable.live.broker.broker import Broker
    from malleable.live.core.scheduler import Scheduler

LOGGER = logging.getLogger(__name__)


class ClientRecord:
    """The record of one broker, which calls `note` before it says anything to a job."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CLIENTS
        self._lock = threading.Lock()
        self._seats: dict[str, list[ProcessName | None]] = {}
        """Sessions that have joined or are about to, by their jobs, with their processes."""
        found = read_document(self._path)
        self._before: dict[str, Any] = found if isinstance(found, dict) else {}
        self._held: dict[str, Any] = {}
        """Cores, CPUs and process of each session that has cores, and of clients that are still expected."""
        self._written = not self._before
        self._broker: Broker | None = None

    def expect(self, broker: Broker) -> None:
        """Have a broker keep the cores of clients that an earlier one has left, and record its own.

        A client whose process has ended uses no core, and is not expected.
        """
        with suppress(TypeError, ValueError, MalleableError):  # not written by us
            for job, cores, cpus in living_clients(self._before):
                broker.expect(job, cores, cpus)
        with self._lock:
            self._broker = broker
            expected = broker.look(lambda scheduler: set(scheduler.ledger.expected))
        self.note(expected)

    def stop(self) -> None:
        """Leave the record as it is: the broker is about to end, and its clients are not."""
        with self._lock:
            self._broker = None

    @contextmanager
    def seat(self, job: str, pid: int | None) -> Iterator[None]:
        """Count a client from before it joins until it has left, or was refused."""
        process = None if pid is None else ProcessName.of(pid)
        self._seats.setdefault(job, []).append(process)
        try:
            yield
        finally:
            self._seats[job].remove(process)
            if not self._seats[job]:
                del self._seats[job]

    def note(self, jobs: set[str]) -> None:
        """Write down what these jobs hold, if that is something else than before."""
        with self._lock:  # one state of the ledger after the other
            if self._broker is None:
                return
            found = self._broker.look(lambda scheduler: {job: self._entry(scheduler, job) for job in jobs})
            for job, entry in found.items():
                if entry != self._held.get(job):
                    self._written = False
                    if entry is None:
                        del self._held[job]
                    else:
                        self._held[job] = entry
            if not self._written:
                self._write()

    def write_again(self) -> None:
        """Write what was written last: the folder was removed."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        try:
            write_document(self._path, self._held)
            self._written = True
        except OSError as error:
            LOGGER.warning("cannot note the cores of clients: %s", error)

    def _entry(self, scheduler: Scheduler, job: str) -> list[Any] | None:
        """What is to be known of a job, if it is that of a session, or of a client that is expected."""
        broker, ledger = self._broker, scheduler.ledger
        if job in ledger.expected and job in self._before:
            return list(self._before[job])
        account = ledger.accounts.get(job)
        if broker is None or account is None or not account.granted or job not in self._seats:
            return None
        return [account.granted, list(broker.cpus_of(job)), self._seats[job][0]]
