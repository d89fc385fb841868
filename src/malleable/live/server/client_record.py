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
from malleable.live.events import Progressed
from malleable.live.job_folder import ProcessName
from malleable.live.whole_files import read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from malleable.live.broker import Broker
    from malleable.live.events import Event
    from malleable.live.scheduler import Scheduler

LOGGER = logging.getLogger(__name__)
FILE = "clients.json"


class ClientRecord:
    """The record of one broker, which calls `note` before it says anything to a job."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._seats: dict[object, tuple[str, ProcessName | None]] = {}
        """Sessions that have joined or are about to, with their processes."""
        found = read_document(self._path)
        self._written: dict[str, Any] = found if isinstance(found, dict) else {}
        self._before = self._written
        self._broker: Broker | None = None

    def expect(self, broker: Broker) -> None:
        """Have a broker keep the cores of clients that an earlier one has left, and record its own.

        A client whose process has ended uses no core, and is not expected.
        """
        with suppress(TypeError, ValueError, MalleableError):  # not written by us
            for job, (cores, cpus, process) in self._before.items():
                if process is None or ProcessName(*process).process() is not None:
                    broker.expect(job, cores, cpus)
        self._broker = broker

    def stop(self) -> None:
        """Leave the record as it is: the broker is about to end, and its clients are not."""
        with self._lock:
            self._broker = None

    @contextmanager
    def seat(self, job: str, pid: int | None) -> Iterator[None]:
        """Count a client from before it joins until it has left, or was refused."""
        name = object()
        self._seats[name] = job, None if pid is None else ProcessName.of(pid)
        try:
            yield
        finally:
            del self._seats[name]

    def note(self, event: Event) -> None:
        """Write down who holds what, if that is something else than before."""
        if isinstance(event, Progressed):
            return
        with self._lock:  # one state of the ledger after the other
            if self._broker is None:
                return
            found = self._broker.look(self._held)
            if found != self._written:
                try:
                    write_document(self._path, found)
                except OSError as error:
                    LOGGER.warning("cannot note the cores of clients: %s", error)
                    return
                self._written = found

    def _held(self, scheduler: Scheduler) -> dict[str, Any]:
        """Cores, CPUs and process of each session, and of clients that are still expected."""
        broker, ledger = self._broker, scheduler.ledger
        found = {job: self._before[job] for job in ledger.expected if job in self._before}
        for job, process in list(self._seats.values()):
            account = ledger.accounts.get(job)
            if broker is not None and account is not None and account.granted:
                found.setdefault(job, [account.granted, list(broker.cpus_of(job)), process])
        return found
