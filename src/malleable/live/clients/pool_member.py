"""Workers as a member of a broker: they join when given a unit, and leave when they have none left.

A job without work must not be counted: it would be granted cores that others could use. So workers that
have been idle for `IDLE_SECONDS` leave the broker, as a job that has finished, and join as another one at the
next unit. The time is there because a caller that takes a result and submits the next unit is not idle. Those
that had no unit yet withdraw: they have brought no job.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from malleable.live.clients.stay import Stay

if TYPE_CHECKING:
    from malleable.live.broker.membership import JobRequest, Outcome
    from malleable.live.workers.contract import Workers

IDLE_SECONDS = 0.1
"""Seconds without a unit after which a pool leaves."""
REPORT_SECONDS = 0.1
"""Seconds between two reports of progress, at least."""
members: weakref.WeakSet[PoolMember] = weakref.WeakSet()
"""Members whose pools may have units to finish when Python ends."""


@dataclass(eq=False)
class UnitsToCome:
    """Units that are certain to be submitted, such as those of a `map` over a list."""

    left: int
    open: bool = False
    """Whether there may be more, as in a `map` over a generator."""


class PoolMember:
    """The seat of a pool, taken and left; `attach` says which pool."""

    pool: Workers

    def __init__(self, request: JobRequest, threads: int, most: int | None, broker: str | None) -> None:
        self._request, self._threads, self._most, self._broker = request, threads, most, broker
        self._lock = threading.Lock()
        """Of joining and leaving; orders and answers have that of the stay."""
        self._stay: Stay | None = None
        self._submitted = 0
        """Units of this stay."""
        self._before = 0
        """Those submitted when progress was reported last."""
        self._maps: weakref.WeakSet[UnitsToCome] = weakref.WeakSet()
        self._outcome: Outcome = "finished"
        self._reported = 0.0

    def attach(self, pool: Workers) -> None:
        self.pool = pool
        members.add(self)

    @property
    def cores(self) -> int:
        """Cores that the pool may use; none while it is idle."""
        stay = self._stay
        return 0 if stay is None else stay.cores

    @property
    def job_class(self) -> str:
        """The class that the job names."""
        return self._request.job_class

    @property
    def known(self) -> int | None:
        """Units so far and those known to come; None where a generator may give any number."""
        stay = self._stay
        with self._lock:
            if any(each.open for each in self._maps):
                return None
            before = 0 if stay is None else stay.done_before
            return before + self._submitted + sum(each.left for each in self._maps)

    def has_units(self, submitted: int) -> None:
        """Be a member, as so many units more wait now; raise the error of one who cannot be.

        A pool with units does not leave, so it has to have them before this is called.
        """
        with self._lock:
            self._submitted += submitted
            if self._stay is None:
                self._join()

    def expect(self, units: UnitsToCome) -> None:
        """Count these units as known, for as long as they are referred to."""
        with self._lock:
            self._maps.add(units)

    def cancel(self) -> None:
        """The broker was asked to have this job ended: cancel what waits, leave when the rest is done."""
        self._outcome = "cancelled"
        self.pool.cancel_waiting()

    def kill(self) -> None:
        """End the pool now, whatever it does."""
        self._outcome = "cancelled"
        self.pool.kill_workers()

    def _join(self) -> None:
        done = self.pool.done
        left = (self._declared(done) or None) if done else self._request.units
        # Orders come before `join` returns, so the stay is there before it begins.
        self._stay = stay = Stay(self.pool, self._threads, self._most, self.cancel)
        try:
            stay.follow(replace(self._request, units=left).named(), broker=self._broker)
        except BaseException:
            self._stay, self._submitted = None, 0
            self.pool.cancel_waiting()
            raise

    # Listeners of the pool, called by its thread.

    def on_width(self, workers: int) -> None:
        stay = self._stay
        if stay is not None:
            stay.in_force(workers)

    def on_progress(self, done: int) -> None:
        stay, now = self._stay, time.monotonic()
        if stay is None or now - self._reported < REPORT_SECONDS:
            return
        self._reported = now
        with self._lock:
            known = self._submitted + sum(each.left for each in self._maps)
            mapped = bool(self._maps)
            unknown = any(each.open for each in self._maps) or (not mapped and self._before < self._submitted)
            self._before = self._submitted
        here, declared = done - stay.done_before, self._declared(stay.done_before)
        # What is read or submitted as results come in says nothing about how much is still to come.
        stay.progress(here, 0 if unknown and declared <= here else max(known, declared, here))

    def on_idle(self) -> None:
        stay = self._stay
        if stay is None:
            return
        with self._lock:  # which a thread has that joins, or submits
            if not self.pool.idle:
                return
            stay.leave()
            self._stay, outcome = None, self._outcome
            if outcome == "finished" and not self._submitted:
                outcome = "withdrawn"
            self._submitted, self._before, self._outcome = 0, 0, "finished"
        stay.end(outcome)

    def _declared(self, done: int) -> float:
        """Units that are left of those declared, when so many are done."""
        declared = self._request.units
        return 0.0 if declared is None else max(0.0, declared - done)
