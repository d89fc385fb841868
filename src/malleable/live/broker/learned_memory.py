"""What a scheduler has learned of sizes, in a file that outlives the broker.

It is written at most every `EVERY` seconds, as jobs end, and when the broker stops. A file that cannot be
read, or is not as it was written, is discarded with one line in the log.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from malleable.live.core.events import Ended
from malleable.live.system.whole_files import read_document, write_document

if TYPE_CHECKING:
    from pathlib import Path

    from malleable.live.broker.broker import Broker
    from malleable.live.core.events import Event
    from malleable.live.core.scheduler import Scheduler

LOGGER = logging.getLogger(__name__)
FILE = "learned.json"
EVERY = 10.0


class LearnedMemory:
    """The memory of one broker, which calls `note` after each event."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._written = time.monotonic()
        self._broker: Broker | None = None

    def recall(self, scheduler: Scheduler) -> None:
        """Teach a scheduler what an earlier one has learned."""
        if not self._path.exists():
            return
        try:
            scheduler.recall(read_document(self._path))
        except ValueError as error:
            LOGGER.warning("discarded what was learned of sizes in %s: %s", self._path, error)

    def keep(self, broker: Broker) -> None:
        """Write down from now on what this broker's scheduler learns."""
        self._broker = broker

    def note(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Ended) and time.monotonic() >= self._written + EVERY:
            self.write()

    def write(self) -> None:
        """Write what was learned until now; a disk that is full or gone loses it, and nothing else."""
        if self._broker is None:
            return
        document = self._broker.look(lambda scheduler: scheduler.learned())
        with self._lock:
            self._written = time.monotonic()
            try:
                write_document(self._path, document)
            except OSError as error:
                LOGGER.warning("could not keep what was learned of sizes: %s", error)
