"""A follower: a job whose width follows the orders of a broker.

    class Array(Follower):
        def set_width(self, width):                # an order has come: have it so wide, now or soon
            self.controller.set_throttle(width)

        def seen(self, running):                   # whenever the number of cores in use has changed
            self.in_force(running)

    array = Array()
    array.follow(JobRequest("array"))
    …
    array.end("finished")

The rules that a broker relies on are kept here, once: an order that was overtaken is dropped; what was
granted counts as used until it is certain that it is not; an answer names the order that it answers. A
thing that grows is given its CPUs first and then its width. One that shrinks is given its width first; as the
width in force falls, it leaves the last of its CPUs and then says so. So a CPU that is given back is free
when the broker hears of it. `tests/live/clients/test_followers.py` says what every follower has to keep to.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from malleable.live.broker.membership import join
from malleable.live.core.orders import LastOrder

if TYPE_CHECKING:
    from malleable.live.broker.membership import JobRequest, Membership, Outcome
    from malleable.live.core.orders import Order


class Follower(ABC):
    """A thing with a width: so many units in hand, tasks, pods. Each takes `each` cores.

    One of at most `most` units leaves cores beyond that unused; its broker was told to grant no more. Methods
    may be called from any thread.
    """

    def __init__(self, each: int = 1, most: int | None = None) -> None:
        self._each, self._most = each, most
        self._lock = threading.RLock()  # a width may be in force as soon as it is set
        self._last = LastOrder()
        self._may_use = 0
        """Cores that may be in use: those told of, until it is certain that there are fewer."""
        self._answer: tuple[int, int] | None = None
        self._membership: Membership | None = None
        self._left = False

    @abstractmethod
    def set_width(self, width: int) -> None:
        """Become so wide, and call `in_force` when that is so. It must not wait: it may note what to do."""

    def set_cpus(self, cpus: frozenset[int]) -> None:  # noqa: B027 - most are bound to none
        """Be on these CPUs of this machine, from now on; it is called where the broker binds jobs to CPUs."""

    def cancel(self) -> None:  # noqa: B027 - not everything can be ended
        """The broker was asked to have this job ended: end it, and then call `end`."""

    def follow(self, request: JobRequest, *, broker: str | None = None) -> None:
        """Join the broker of the machine, or of this process; orders may come before this returns."""
        self.sit(join(request, self.obey, self.cancel, broker=broker))

    def sit(self, membership: Membership) -> None:
        """The broker counts this job now; an order may have come, and been carried out, before this."""
        with self._lock:
            self._membership = membership
            self._say()

    @property
    def cores(self) -> int:
        """Cores that it may use, as it was last told."""
        order = self._last.order
        return 0 if order is None or self._left else order.cores

    def obey(self, order: Order) -> None:
        """Do what the broker says."""
        with self._lock:
            if self._left or not self._last.take(order):
                return
            self._may_use = max(self._may_use, order.cores)
            self._bind(order)
            self.set_width(self._width(order.cores))

    def in_force(self, width: int) -> None:
        """It is so wide now, and will be no wider until it is told to."""
        with self._lock:
            order = self._last.order
            if order is None or self._left:
                return
            carried_out = width <= self._width(order.cores)
            self._may_use = order.cores if carried_out else min(self._may_use, width * self._each)
            self._bind(order)
            self._answer = self._may_use, order.number
            self._say()

    def progress(self, done: float, units: float | None = None) -> None:
        """So many units are done in all, of so many; 0 says that it is not known how many there are."""
        membership = self._membership
        if membership is not None:
            membership.progress(done, units)

    def leave(self) -> None:
        """Obey no longer, and use no core."""
        with self._lock:
            self._left = True
            self.set_width(0)

    def end(self, outcome: Outcome) -> None:
        """The job is over, and uses no core: the broker counts it no longer."""
        with self._lock:
            self._left = True
        if self._membership is not None:
            self._membership.end(outcome)

    def _width(self, cores: int) -> int:
        width = max(1, cores // self._each) if cores else 0
        return width if self._most is None else min(width, self._most)

    def _bind(self, order: Order) -> None:
        if order.cpus and self._may_use:
            self.set_cpus(frozenset(order.cpus[: self._may_use]))

    def _say(self) -> None:
        """Answer the last order, as far as it is carried out; the lock keeps answers in order."""
        if self._membership is not None and self._answer is not None:
            self._membership.confirm(*self._answer)
            self._answer = None
