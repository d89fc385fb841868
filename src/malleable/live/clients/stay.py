"""One stay of a pool at a broker, from joining to leaving: orders come in, answers go out.

A pool that grows is given its CPUs first and then its width. One that shrinks is given its width first; as
units end and the width in force falls, it leaves the last of its CPUs and then says so. So a CPU that is
given back is free when the broker hears of it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from malleable.live.broker.broker import Order
    from malleable.live.broker.membership import Membership, Outcome
    from malleable.live.workers.manager import Manager


class Stay:
    """What the pool was told by the broker, and what it has answered; `threads` cores make a worker.

    A pool of at most `most` workers leaves cores beyond that unused; its broker was told to grant no more.
    """

    def __init__(self, pool: Manager, threads: int, most: int | None) -> None:
        self._pool, self._threads, self._most = pool, threads, most
        self._lock = threading.Lock()
        self._order: Order | None = None
        self._may_use = 0
        """Cores that may be in use: those told of, until it is certain that there are fewer."""
        self._answer: tuple[int, int] | None = None
        self._membership: Membership | None = None
        self._left = False
        self.done_before = pool.done

    @property
    def cores(self) -> int:
        """Cores that the pool may use."""
        order = self._order
        return 0 if order is None or self._left else order.cores

    def begin(self, membership: Membership) -> None:
        """The broker counts the pool now; an order may have come, and been carried out, before this."""
        with self._lock:
            self._membership = membership
            self._say()

    def obey(self, order: Order) -> None:
        """Do what the broker says, from any thread."""
        with self._lock:
            if self._left or (self._order is not None and order.number < self._order.number):
                return
            self._order = order
            self._may_use = max(self._may_use, order.cores)
            self._bind(order)
            self._pool.set_width(self._workers(order.cores))

    def in_force(self, workers: int) -> None:
        """So many workers may carry out units, or do; told by the thread of the pool."""
        with self._lock:
            order = self._order
            if order is None or self._left:
                return
            carried_out = workers <= self._workers(order.cores)
            self._may_use = order.cores if carried_out else min(self._may_use, workers * self._threads)
            self._bind(order)
            self._answer = self._may_use, order.number
            self._say()

    def progress(self, done: int, units: float | None) -> None:
        """So many units of this stay have ended."""
        membership = self._membership
        if membership is not None:
            membership.progress(done, units)

    def leave(self) -> None:
        """Obey no longer, and use no core; the pool has no unit."""
        with self._lock:
            self._left = True
            self._pool.set_width(0)

    def end(self, outcome: Outcome) -> None:
        """Have the broker count the pool no longer."""
        if self._membership is not None:
            self._membership.end(outcome)

    def _workers(self, cores: int) -> int:
        workers = max(1, cores // self._threads) if cores else 0
        return workers if self._most is None else min(workers, self._most)

    def _bind(self, order: Order) -> None:
        if order.cpus and self._may_use:
            self._pool.set_cpus(frozenset(order.cpus[: self._may_use]))

    def _say(self) -> None:
        """Answer the last order, as far as it is carried out; the lock keeps answers in order."""
        if self._membership is not None and self._answer is not None:
            self._membership.confirm(*self._answer)
            self._answer = None
