"""The units of a pool that wait, and the making of batches from them."""

from __future__ import annotations

import math
import threading
from collections import deque
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

from malleable.live.workers.units import UnitTimes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.errors import ExecutionError
    from malleable.live.workers.units import Unit


class WaitingUnits:
    """Units in the order of their submission; those whose worker died or handed them back come first."""

    def __init__(self) -> None:
        self.times = UnitTimes()
        self.closed = False
        self.error: ExecutionError | None = None
        """Why no unit can be carried out any more."""
        self._units: deque[Unit] = deque()
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._units)

    def put(self, unit: Unit) -> None:
        """Queue a unit, from any thread, unless no more are taken."""
        with self._lock:  # or the pool could end between the look and the append
            if self.error is not None:
                raise self.error
            if self.closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._units.append(unit)

    def put_back(self, units: Iterable[Unit]) -> None:
        """Let units be the next ones, in their order."""
        self._units.extendleft(reversed([*units]))

    def close(self) -> None:
        """Take no more units."""
        with self._lock:
            self.closed = True

    def batch(self, width: int, limit: float = math.inf) -> list[Unit]:
        """The next units that travel together: those of one function, and no more than a fair share."""
        batch: list[Unit] = []
        most = min(math.ceil(len(self._units) / width), limit)
        while self._units and len(batch) < most:
            if batch and self._units[0].function is not batch[0].function:
                break
            unit = self._units.popleft()
            if unit.start():
                batch.append(unit)
                # A unit that a worker died of travels alone.
                most = 1 if unit.deaths else min(most, self.times.batch(unit.function))
        return batch

    def cancel(self) -> None:
        """Cancel all that wait."""
        while self._units:
            unit = self._units.popleft()
            if unit.started:  # handed back by a worker: its future counts as running
                unit.future.set_exception(CancelledError())
            elif unit.future.cancel():
                unit.future.set_running_or_notify_cancel()

    def fail(self, error: ExecutionError) -> int:
        """Fail all that wait; returns how many."""
        failed = 0
        while self._units:
            unit = self._units.popleft()
            if unit.start():
                unit.future.set_exception(error)
                failed += 1
        return failed
