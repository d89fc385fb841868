"""The broker of this process, for when none runs on the machine: WHAM on the CPUs that this process may use.

It is made when the first job joins, and closed when Python ends. What members say is told to it by one
thread, in order, so that no thread that only reports waits for a decision of the scheduler. A forked process
has none of its parent's threads, and so gets a broker of its own when it needs one.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError
from malleable.live.broker.broker import Broker, Order, RefusedError
from malleable.live.broker.membership import CORES_VARIABLE
from malleable.live.core.events import KINDS, Confirmed, Event, Progressed, Registered
from malleable.live.core.fair_share import Guarantee
from malleable.live.core.scheduler import Scheduler
from malleable.live.system.cpus import CpuSets
from malleable.live.system.listeners import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.broker.membership import JobRequest, Outcome

POLICY = "clearing"
LOOK_SECONDS = 1.0
"""Seconds between two looks whether the broker has ended while a job joins."""


class EmbeddedBroker:
    """A broker, and the thread that tells it what its members say."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._said: queue.SimpleQueue[tuple[Callable[[Any], None], Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._deliver, name="malleable-members", daemon=True)
        self._thread.start()

    def join(
        self,
        request: JobRequest,
        on_order: Callable[[Order], None],
        on_cancel: Callable[[], None] | None = None,
    ) -> EmbeddedMembership:
        """Count a job; what the scheduler does not accept is an error here."""
        event = Registered(
            request.job,
            request.job_class,
            weight=request.weight,
            units=request.units,
            size=request.size,
            memory=request.memory,
            never_pause=request.never_pause,
            max_cores=request.max_cores,
        )
        joined: Future[None] = Future()

        def register(event: Registered) -> None:
            try:
                self.broker.join(event, on_order, on_cancel)
            except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
                joined.set_exception(error)
            else:
                joined.set_result(None)

        self._said.put((register, event))
        while not joined.done():
            wait([joined], LOOK_SECONDS)
            if not self._thread.is_alive() and not joined.done():
                raise ExecutionError("the broker of this process has ended", "Python is about to end")
        joined.result()
        return EmbeddedMembership(self, request.job)

    def say(self, event: Event) -> None:
        """Have the broker told, after all that was said before."""
        self._said.put((self._tell, event))

    def close(self) -> None:
        """End the broker, after all that was said."""
        self._said.put(None)
        self._thread.join()
        self.broker.close()

    def _tell(self, event: Event) -> None:
        with suppress(RefusedError):  # say, an answer to an order that a newer one has overtaken
            self.broker.tell(event)

    def _deliver(self) -> None:
        while (said := self._said.get()) is not None:
            tell(*said)


class EmbeddedMembership:
    """A seat at a broker of this process."""

    def __init__(self, broker: EmbeddedBroker, job: str) -> None:
        self.job = job
        self._broker: EmbeddedBroker | None = broker

    def confirm(self, cores: int, number: int) -> None:
        self._say(Confirmed(self.job, cores, number))

    def progress(self, units_done: float, units: float | None = None) -> None:
        self._say(Progressed(self.job, units_done, units))

    def end(self, outcome: Outcome) -> None:
        self._say(KINDS[outcome].from_parameters({"job": self.job}))
        self._broker = None

    def _say(self, event: Event) -> None:
        broker = self._broker
        if broker is not None:
            broker.say(event)


_lock = threading.Lock()
_current: EmbeddedBroker | None = None


def current() -> EmbeddedBroker:
    """The broker of this process, made now if there is none."""
    global _current  # noqa: PLW0603 - one per process is what it is for
    with _lock:
        if _current is None:
            cpus = CpuSets()
            _current = EmbeddedBroker(Broker(_scheduler(cpus.total), cpus))
        return _current


def _scheduler(there: int) -> Scheduler:
    return Scheduler(None, _cores(there), POLICY, guarantee=Guarantee())


def _cores(there: int) -> int:
    """All cores, or as many as the environment allows."""
    said = os.environ.get(CORES_VARIABLE, "")
    return max(1, min(there, int(said))) if said.isdecimal() else there


def join(
    request: JobRequest, on_order: Callable[[Order], None], on_cancel: Callable[[], None] | None = None
) -> EmbeddedMembership:
    """Have a job counted by the broker of this process."""
    return current().join(request.named(), on_order, on_cancel)


@atexit.register
def close() -> None:
    """End the broker of this process, if there is one; the next job to join makes another."""
    global _current
    with _lock:
        ending, _current = _current, None
    if ending is not None:
        ending.close()


def _forget() -> None:
    """In a forked process: its threads are not here, and the lock may be held by one of them."""
    global _lock, _current
    _lock, _current = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)
