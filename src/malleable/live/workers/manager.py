"""The thread of a pool: it gives units to workers as far as the width allows, and sleeps in between.

One thread and one `select` serve all workers. A worker is sent its next message when it has answered the last
one, so it always reads what it is sent. Workers that the width no longer allows stay warm for a while.
"""

from __future__ import annotations

import logging
import pickle
import selectors
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from malleable.errors import ExecutionError
from malleable.live.workers.units import RETRIES, answer
from malleable.live.workers.waiting import WaitingUnits
from malleable.live.workers.worker import ANSWER, HANDED_BACK, RESULT, UNREADY
from malleable.live.workers.workers import Server, Worker

if TYPE_CHECKING:
    from malleable.live.workers.functions import PackedFunction
    from malleable.live.workers.reports import Reports
    from malleable.live.workers.units import Unit

NO_STATUS = "the process that starts the workers was ended", "was it killed from outside? run it again"
LOGGER = logging.getLogger(__name__)


class Manager:
    """State of a pool. Other threads use the methods without an underscore, and read the attributes."""

    def __init__(
        self,
        width: int,
        threads: int,
        warm_seconds: float,
        reports: Reports,
        initializer: PackedFunction | None = None,
        max_units: int | None = None,
    ) -> None:
        self.waiting = WaitingUnits()
        self.width = self.width_in_use = width
        self.cpus: frozenset[int] | None = None
        self.done = 0
        self.cancelling = self.killing = False
        self._asked = self._cancel_waiting = self._prepared = False
        self._warm_seconds, self._narrowed = warm_seconds, 0.0
        self._reports = reports
        self._initializer, self._max_units = initializer, max_units
        self._server = Server(threads)
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._selector = selectors.DefaultSelector()
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._rung = False
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self._run, name="malleable-pool", daemon=True)

    def wake(self) -> None:
        """Have the thread look at what has changed."""
        if not self._rung:
            self._rung = True
            with suppress(OSError):  # the thread has ended
                self._ring.send(b"\0")

    def set_width(self, width: int) -> None:
        self._narrowed = time.monotonic()
        self.width = width
        self._asked = True
        self.wake()

    def set_cpus(self, cpus: frozenset[int]) -> None:
        """Have the workers run on these CPUs: soon, or at once if a listener asks for it."""
        self.cpus = cpus
        if threading.current_thread() is self.thread:
            self._bind()
        else:
            self.wake()

    @property
    def idle(self) -> bool:
        """Whether no unit waits or is in hand; certain in the thread of the pool only."""
        return not self.waiting and not self._busy

    def cancel_waiting(self) -> None:
        """Cancel the units that wait now, and go on."""
        self._cancel_waiting = True
        self.wake()

    def kill(self) -> None:
        """End now: the units that wait or are in hand are cancelled."""
        self.killing = True
        self.close()

    def close(self) -> None:
        """Take no more units, and end when there are none left."""
        self.waiting.close()
        self.wake()

    def _run(self) -> None:
        with suppress(ExecutionError):  # which the first unit is told
            self._server.begin()
        try:
            while not (self.killing or (self.waiting.closed and self.idle)):
                for key, _ in self._selector.select(self._patience()):
                    self._attend(key.data)
                self._follow()
                self._prepare()
                self._dispatch()
                self._retire()
                self._report()
            self._take_back_all()
            self.waiting.cancel()
        except BaseException as error:  # a callback may raise SystemExit, and no unit may wait for ever
            LOGGER.exception("the thread of a pool failed")
            self.close()
            self._take_back_all()
            self.waiting.fail(
                ExecutionError(f"the pool failed: {error!s:.200}", "this is a bug of malleable")
            )
        finally:
            self._end()

    def _patience(self) -> float | None:
        """Seconds until a warm worker is to end, or idleness is to be told; None for ever."""
        times = [self._reports.patience() if self.idle else None]
        times += [max(0.0, self._expiry(worker) - time.monotonic()) for worker in self._surplus()[:1]]
        return min((seconds for seconds in times if seconds is not None), default=None)

    def _surplus(self) -> list[Worker]:
        """The idle workers that the width does not allow, those that have been idle for longest first."""
        return self._idle[: max(0, len(self._idle) + len(self._busy) - self.width)]

    def _expiry(self, worker: Worker) -> float:
        return max(worker.idle_since, self._narrowed) + self._warm_seconds

    def _attend(self, source: Worker | Server | None) -> None:
        """Do what the owner of a socket that is ready asks for."""
        if source is None:
            self._bell.recv(4096)
            self._rung = False
            self._reports.awake()
        elif isinstance(source, Server):
            self._bury_ended()
        elif source.events:  # it may have been buried a moment ago
            self._hear(source, source.channel.received())
            source.channel.flush()
            if source.channel.closed:
                self._give_up(source)
            elif source.events:
                self._listen(source)

    def _listen(self, worker: Worker) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.channel.sends else 0)
        if worker.events != events:
            worker.events = events
            self._selector.modify(worker.channel.socket, events, worker)

    def _ignore(self, worker: Worker) -> None:
        if worker.events:
            worker.events = 0
            self._selector.unregister(worker.channel.socket)

    def _give_up(self, worker: Worker) -> None:
        """Send a worker nothing more; what it was busy with is settled when the server reports its end."""
        self._ignore(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        self._server.kill(worker)

    def _hear(self, worker: Worker, messages: list[memoryview]) -> None:
        """Take the answers of a worker."""
        for message in messages:
            kind, pid, number, seconds = ANSWER.unpack_from(message)
            if kind == UNREADY:
                self._break(message[ANSWER.size :])
                return
            if not worker.awaits(pid, number):
                LOGGER.error(
                    "process %s answered unit %s for worker %s, which is ended", pid, number, worker.pid
                )
                self._give_up(worker)
                worker.channel.close()  # what else it says until it is ended is not believed either
                return
            if kind == HANDED_BACK:
                self._take_back(worker)
            else:
                unit = worker.batch.popleft()
                worker.answered += 1
                self.waiting.times.note(unit, seconds)
                self.done += 1
                answer(unit, message[ANSWER.size :], good=kind == RESULT)
        if not worker.batch and worker in self._busy:
            self._busy.remove(worker)
            if self._max_units is not None and worker.answered >= self._max_units:
                self._close(worker)  # which ends it
                return
            worker.idle_since = time.monotonic()
            self._idle.append(worker)

    def _break(self, packed: memoryview) -> None:
        """End, as no worker can carry out a unit: the initializer has raised an error."""
        from malleable.live.workers.broken import BrokenPoolError  # noqa: PLC0415 - see there

        raised, cause = pickle.loads(packed)  # noqa: S301 - from our worker, which has read it, too
        problem = f"the initializer raised {type(raised).__name__}: {raised!s:.200}"
        error = BrokenPoolError(problem, "mend the initializer; the traceback is the cause of this error")
        error.__cause__ = cause
        self.waiting.error = error
        self.close()
        self._take_back_all()
        self.done += self.waiting.fail(error)

    def _take_back(self, worker: Worker) -> None:
        self.waiting.put_back(worker.batch)
        worker.batch.clear()

    def _take_back_all(self) -> None:
        for worker in self._busy:
            self._take_back(worker)
        self._busy.clear()

    def _bury_ended(self) -> None:
        control = self._server.control
        for worker, status in self._server.ended():
            self._bury(worker, status)
        if self._server.control is None and control is not None:
            self._selector.unregister(control)

    def _bury(self, worker: Worker, status: int | None) -> None:
        """Have the units of a worker that is gone run elsewhere; the one in hand only so often."""
        self._hear(worker, worker.channel.rest())
        if worker.batch:
            unit = worker.batch[0]
            unit.deaths += 1
            if unit.deaths > RETRIES:
                worker.batch.popleft()
                self.done += 1
                unit.future.set_exception(unit.broken(*_cause_of_death(status)))
        self._take_back(worker)
        self._busy.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        self._close(worker)

    def _close(self, worker: Worker) -> None:
        self._ignore(worker)
        worker.channel.close()

    def _follow(self) -> None:
        """Do what other threads have asked for."""
        self._bind()
        if self.cancelling or self._cancel_waiting:
            self._cancel_waiting = False
            self.waiting.cancel()

    def _bind(self) -> None:
        if self._server.cpus != self.cpus:
            self._server.cpus = self.cpus
            self._server.bind()

    def _dispatch(self) -> None:
        """Give units to as many workers as the width allows."""
        while len(self._busy) < self.width and (batch := self._batch()):
            try:
                worker = self._idle.pop() if self._idle else self._start()
            except ExecutionError as error:
                self.waiting.put_back(batch)
                self.done += self.waiting.fail(error)
                return
            worker.batch.extend(batch)
            self._busy.add(worker)
            worker.send(batch[0].function, batch)
            self._listen(worker)

    def _batch(self) -> list[Unit]:
        """Units for the next worker: no more than it may still carry out."""
        if self._max_units is None:
            return self.waiting.batch(self.width)
        return self.waiting.batch(
            self.width, self._max_units - (self._idle[-1].answered if self._idle else 0)
        )

    def _prepare(self) -> None:
        """When there is a unit, have what forks workers ready, whether or not the width allows one yet."""
        if self.waiting and not self._prepared:
            self._prepared = True
            with suppress(ExecutionError):  # which the unit is told when it is to run
                self._launch()

    def _launch(self) -> None:
        if self._server.control is None:
            self._selector.register(self._server.launch(), selectors.EVENT_READ, self._server)

    def _start(self) -> Worker:
        self._launch()
        worker = self._server.start_worker()
        self._selector.register(worker.channel.socket, selectors.EVENT_READ, worker)
        worker.events = selectors.EVENT_READ
        if self._initializer is not None:
            worker.send(self._initializer, ())
        return worker

    def _retire(self) -> None:
        """End the workers that the width has not allowed for a while: closing its channel ends a worker."""
        now = time.monotonic()
        for worker in self._surplus():
            if now >= self._expiry(worker):
                self._idle.remove(worker)
                self._close(worker)

    def _report(self) -> None:
        """Tell the listeners what has changed."""
        self.width_in_use = max(self.width, len(self._busy))
        carried_out = self._asked and self.width_in_use == self.width
        if carried_out:
            self._asked = False
        self._reports.tell_width(self.width_in_use, asked=carried_out)
        self._reports.tell_progress(self.done)
        self._reports.tell_idle(idle=self.idle)

    def _end(self) -> None:
        self._server.close()
        self._reports.end()
        for worker in self._server.workers.values():
            worker.channel.close()
        self._selector.close()
        self._bell.close()
        self._ring.close()


def _cause_of_death(status: int | None) -> tuple[str, str]:
    """Problem and hint for a worker that ended with this status; None if nobody knows it."""
    from malleable.execution.worker_processes import DeathHints, cause_of_death  # noqa: PLC0415 - rarely

    hints = DeathHints(
        exited="does the unit call `os._exit`?",
        killed="did the system run out of memory? run fewer units at a time with `max_workers=`",
        crashed="compiled code crashed; call the function without an Executor to see where",
    )
    return NO_STATUS if status is None else cause_of_death(status, hints)
