"""The broker: the scheduler with a clock, CPUs, and the clients that carry its actions out.

    broker.join(Registered("a", "etl"), on_order)       # on_order is called with every `Order` to the job
    broker.tell(Confirmed("a", cores=2, number=1))

It runs in the user's own process (`live.broker.embedded`) or behind a socket (`live.broker.server`), and is
the same in both: methods may be called from any thread, take a lock for as long as one decision takes, and
wait for nothing. Orders are delivered after the lock is released, by the thread that caused them, so two
orders to one job may pass each other: a client ignores one whose number is below that of an order that it
has seen.

A job that is granted k cores uses the first k of its CPUs. Growing appends to them, giving back drops the
last, so both sides know which CPUs are meant by a number alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from malleable.live.broker.cost_so_far import CostSoFar
from malleable.live.broker.equal_sharing import EqualSharing
from malleable.live.core.events import CoresChanged, Ended, Expected, Tick
from malleable.live.core.orders import Order, RefusedError
from malleable.live.system.listeners import tell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.live.core.actions import Action
    from malleable.live.core.events import Event, Registered
    from malleable.live.core.scheduler import Scheduler
    from malleable.live.system.cpus import CpuSets

Seen = TypeVar("Seen")


__all__ = ["Broker", "Order", "RefusedError"]


@dataclass
class _Member:
    """A job that has joined: how to reach it, and the CPUs that count as its own."""

    on_order: Callable[[Order], None]
    on_cancel: Callable[[], None] | None
    cpus: list[int] = field(default_factory=list)


class Broker:
    """Divides cores among clients that join and leave; `close` ends its thread.

    Without `cpus` cores are numbers only, and there may be more of them than the machine has. `handle` is
    called in place of `scheduler.handle`, by a journal say; `before_orders` after each event, with the jobs
    that it concerns, before what follows from it is said to any of them; `on_change` after that. The `clock`
    passes `speed` of its units per second.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cpus: CpuSets | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        speed: float = 1.0,
        handle: Callable[[Event, float], list[Action]] | None = None,
        before_orders: Callable[[set[str]], None] | None = None,
        on_change: Callable[[Event], None] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self._cpus, self._clock, self._speed = cpus, clock, speed
        self._before_orders, self._on_change = before_orders, on_change
        self.cost = CostSoFar(scheduler)
        self.sharing = EqualSharing(scheduler)
        self._handle = self.cost.watching(self.sharing.watching(handle or scheduler.handle))
        self._start = clock()
        self._members: dict[str, _Member] = {}
        self._kept_cpus: dict[str, list[int]] = {}
        """CPUs of jobs that are expected back."""
        self._lock = threading.Condition(threading.RLock())
        self._closed = False
        self._check_cpus(scheduler.ledger.cores)
        self._thread = threading.Thread(target=self._tick, name="malleable-broker", daemon=True)
        self._thread.start()

    @property
    def now(self) -> float:
        """Seconds since the broker was made: the scheduler's clock."""
        return self._clock() - self._start

    def join(
        self,
        event: Registered,
        on_order: Callable[[Order], None],
        on_cancel: Callable[[], None] | None = None,
        cpus: Iterable[int] = (),
    ) -> None:
        """Count a job; one that runs already names the CPUs that it uses, and keeps those still free."""
        with self._lock:
            if event.job not in self._members:
                self._members[event.job] = member = _Member(on_order, on_cancel)
                if self._cpus is not None:
                    self._cpus.give_back(self._kept_cpus.pop(event.job, ()))
                    member.cpus = self._cpus.claim(list(cpus)[: event.cores])
            try:
                orders = self._apply(event)
            except RefusedError:
                if event.job not in self.scheduler.ledger.accounts:
                    self._release(event.job)
                raise
            if event.cores and all(order.job != event.job for order in orders):
                # It keeps its cores, but perhaps not on the CPUs that it has been using.
                account = self.scheduler.ledger.accounts[event.job]
                orders.append(Order(event.job, account.told, account.number, self.cpus_of(event.job)))
        self._deliver(orders, event)

    def expect(self, job: str, cores: int, cpus: Iterable[int] = ()) -> None:
        """Keep cores, and CPUs, for a job of an earlier broker that may come back; with 0 cores no longer."""
        event = Expected(job, cores)
        with self._lock:
            if self._cpus is not None:  # before the cores are free, as a CPU is granted with each
                self._cpus.give_back(self._kept_cpus.pop(job, ()))
            orders = self._apply(event)
            if self._cpus is not None and cores:
                self._kept_cpus[job] = self._cpus.claim(list(cpus)[: self.scheduler.ledger.expected.get(job)])
        self._deliver(orders, event)

    def tell(self, event: Event) -> None:
        """Something happened; what the scheduler does not accept is a `RefusedError`."""
        with self._lock:
            if isinstance(event, CoresChanged):
                self._check_cpus(event.cores)
            orders = self._apply(event)
        self._deliver(orders, event)

    def cancel(self, job: str) -> None:
        """Ask a job's client to end it; the client tells when it has."""
        with self._lock:
            if job not in self._members:
                raise RefusedError(f"there is no job {job!r}")
            on_cancel = self._members[job].on_cancel
        if on_cancel is not None:
            on_cancel()

    def cpus_of(self, job: str) -> tuple[int, ...]:
        """The CPUs that count as a job's own."""
        with self._lock:
            return tuple(self._members[job].cpus) if job in self._members else ()

    def look(self, see: Callable[[Scheduler], Seen]) -> Seen:
        """What `see` finds in the scheduler, which no event changes meanwhile."""
        with self._lock:
            return see(self.scheduler)

    def state(self) -> dict[str, Any]:
        """`Scheduler.state` of this moment."""
        with self._lock:
            return self.scheduler.state()

    def close(self) -> None:
        """End the broker; its clients keep what they have."""
        with self._lock:
            self._closed = True
            self._lock.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _apply(self, event: Event) -> list[Order]:
        """Let the scheduler decide, and move CPUs as it moved cores; the lock is held."""
        actions = self._handle(event, self.now)
        if self.scheduler.refused:
            raise RefusedError(self.scheduler.refused)
        if isinstance(event, Ended):
            self._release(event.job)
        elif hasattr(event, "job"):
            self._fit_cpus(event.job)
        for action in actions:
            self._fit_cpus(action.job)
        self._lock.notify()
        return [Order(a.job, a.cores, a.number, self.cpus_of(a.job)) for a in actions]

    def _fit_cpus(self, job: str) -> None:
        """Have as many CPUs for a job as the ledger has granted it cores."""
        if self._cpus is None or job not in self._members:
            return
        held, granted = self._members[job].cpus, self.scheduler.ledger.accounts[job].granted
        if granted < len(held):
            self._cpus.give_back(held[granted:])
            del held[granted:]
        elif granted > len(held):
            held += sorted(self._cpus.grant(granted - len(held), near=held))

    def _release(self, job: str) -> None:
        member = self._members.pop(job, None)
        if member is not None and self._cpus is not None:
            self._cpus.give_back(member.cpus)

    def _deliver(self, orders: list[Order], event: Event) -> None:
        concerned = {order.job for order in orders}
        if hasattr(event, "job"):
            concerned.add(event.job)
        tell(self._before_orders, concerned)
        for order in orders:
            member = self._members.get(order.job)
            if member is not None:
                tell(member.on_order, order)
        tell(self._on_change, event)

    def _check_cpus(self, cores: int) -> None:
        if self._cpus is not None and cores > self._cpus.total:
            raise RefusedError(
                f"there are {self._cpus.total} CPUs to grant, not {cores}",
                "give at most so many, or start with `malleable serve --no-bind`",
            )

    def _tick(self) -> None:
        """Tell the scheduler when the time that it waits for has come."""
        while True:
            with self._lock:
                wake = self.scheduler.wake_at
                if not self._closed and (wake is None or wake > self.now):
                    self._lock.wait(None if wake is None else (wake - self.now) / self._speed)
                    continue
                if self._closed:
                    return
            self.tell(Tick())
