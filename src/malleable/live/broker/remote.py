"""A job's seat at a broker in another process.

    membership = connect(path, JobRequest("etl"), on_order, on_cancel)

One thread holds the connection, and both callbacks come from it. All that is known of the job (what it was
told, what it uses) belongs to that thread: methods, which may be called from any thread, hand it work.

When the broker dies the job keeps the cores that it has. The thread tries to reach a broker again, less and
less often, and joins it with what the job holds. One that waits for its first core, or is paused, takes one
after a while: nobody else could give it one. Numbers of orders start anew with each connection; the job
sees numbers that go on rising, so it need not know.
"""

from __future__ import annotations

import json
import logging
import math
import os
import select
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from malleable.live.broker.server.paths import broker_socket
from malleable.live.broker.web_socket import WebSocket
from malleable.live.core.orders import Held, LastOrder, Order, RefusedError
from malleable.live.system.listeners import tell
from malleable.live.system.unix_socket import open_socket, peer_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from malleable.live.broker.membership import JobRequest, Membership, Outcome

LOGGER = logging.getLogger(__name__)
SESSION = "/v1/session"
GREETING_SECONDS = 1.5
"""Seconds that a broker has to say that it is there: one that is stopped, or hangs, is none.

One that is at work, on a busy machine, has `ANSWER_SECONDS`.
"""
PROMPT_SECONDS = 0.2
"""Seconds in which most brokers answer."""
SILENT_SECONDS = 10.0
"""Seconds for which a broker that did not answer is not asked again."""
ANSWER_SECONDS = 10.0
"""Seconds that a broker has to answer when a job joins."""
ALONE_SECONDS = 10.0
"""Seconds without a broker after which a job that has no core takes one: nobody else could give it one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two attempts to reach a broker again; it divides cores anew when all had time for that."""
PROGRESS_SECONDS = 0.1
"""Seconds between two reports of progress; what is reported in between is one report."""
LAST_WORDS_SECONDS = 2.0
"""Seconds that the end of a job waits for a broker that does not listen."""
CHUNK = 4096


def connect(
    path: str | Path | None,
    request: JobRequest,
    on_order: Callable[[Order], None],
    on_cancel: Callable[[], None] | None = None,
    *,
    held: Held | None = None,
    ticket: str = "",
    insist: bool = False,
    meanwhile: Callable[[], object] = lambda: None,
) -> Membership | None:
    """Join the broker at a socket, by default the user's own; None if there is none.

    `RefusedError` says why a broker does not take the job. One that does not answer is waited for once, and
    then left alone for a while; `meanwhile` is called if it does not answer at once.
    `held` is what the job uses already, `ticket` the secret of a program that the broker has started. With
    `insist` the job is one that goes on in any case: it joins as soon as there is a broker.
    """
    place = str(broker_socket() if path is None else path)
    begun = time.monotonic()
    if path is None and not insist and begun < _silent_until.get(place, 0.0):
        return None
    try:
        opened = open_socket(place)
    except OSError:
        if not insist:
            return None
        opened = None
    made = RemoteMembership(place, request, on_order, on_cancel, held or Held(), ticket)
    taken = made.start(opened, insist=insist)
    if insist:
        return made
    if not wait([taken], PROMPT_SECONDS).done:
        meanwhile()
    if taken.result():
        return made
    if time.monotonic() - begun >= GREETING_SECONDS:
        _silent_until[place] = time.monotonic() + SILENT_SECONDS
    return None


_silent_until: dict[str, float] = {}
"""Sockets behind which a broker did not answer, and until when it is not asked again."""


class RemoteMembership:
    """A connection that is made again when it breaks; see `connect`."""

    def __init__(
        self,
        path: str,
        request: JobRequest,
        on_order: Callable[[Order], None],
        on_cancel: Callable[[], None] | None,
        held: Held,
        ticket: str,
    ) -> None:
        self.job = request.job
        self._path, self._request, self._ticket = path, request, ticket
        self._on_order, self._on_cancel = on_order, on_cancel
        self._born = time.monotonic() - held.age
        self._told = self._in_use = held.cores
        self._cpus = held.cpus
        self._progress: tuple[float, float | None] = held.units_done, request.units
        self._report_due, self._reported = False, -PROGRESS_SECONDS
        self._first_number, self._last = 0, LastOrder()
        """Number of the first order of this connection, and the last order, as the job sees them."""
        self._connection: WebSocket | None = None
        """To the broker that counts the job, if there is one now."""
        self._outcome = ""
        self._over = False
        self._report_at: float | None = None
        self._alone = ALONE_SECONDS * (1.0 + _part())
        """Seconds without a broker that it has patience for; not all jobs go on at the same moment."""
        self._answer: Future[bool] = Future()
        self._handed: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._ring.setblocking(False)

    def start(self, opened: socket.socket | None, *, insist: bool) -> Future[bool]:
        """Begin; the future says whether the first broker has taken the job."""
        self._thread = threading.Thread(
            target=self._live, args=(opened, insist), name="malleable-membership", daemon=True
        )
        self._thread.start()
        return self._answer

    def confirm(self, cores: int, number: int) -> None:
        """All orders up to `number` were carried out, and so many cores are in use."""
        self._hand(self._note_use, cores, number)

    def progress(self, units_done: float, units: float | None = None) -> None:
        """So many units are done; costs next to nothing, and may be said as often as one likes."""
        self._progress = units_done, self._progress[1] if units is None else units
        if not self._report_due:
            self._report_due = True
            self._hand(self._plan_report)

    def end(self, outcome: Outcome) -> None:
        """The job is over; once is enough."""
        if self._outcome:
            return
        self._outcome = outcome
        self._hand(self._finish)
        if threading.current_thread() is not self._thread:
            self._thread.join(LAST_WORDS_SECONDS)

    def _hand(self, function: Callable[..., None], *arguments: Any) -> None:
        """Have the connection's thread do something, unless it has ended."""
        self._handed.append((function, arguments))
        with suppress(OSError):  # it has ended, or has more than enough to wake up for
            self._ring.send(b"\0")

    # All that follows happens in the connection's thread.

    def _live(self, opened: socket.socket | None, insist: bool) -> None:
        try:
            self._keep_connected(opened, insist=insist)
        finally:
            if not self._answer.done():
                self._answer.set_result(False)
            self._bell.close()
            self._ring.close()

    def _note_use(self, cores: int, number: int) -> None:
        self._in_use = cores
        if number >= self._first_number:  # else it answers a broker that is gone
            self._send({"kind": "confirmed", "cores": cores, "number": number - self._first_number})

    def _plan_report(self) -> None:
        self._report_at = self._reported + PROGRESS_SECONDS

    def _report(self) -> None:
        self._reported, self._report_due, self._report_at = time.monotonic(), False, None
        done, units = self._progress
        self._send({"kind": "progressed", "units_done": done} | ({} if units is None else {"units": units}))

    def _finish(self) -> None:
        if self._report_due:
            self._report()
        self._over = True

    def _send(self, document: dict[str, Any]) -> None:
        if self._connection is not None:  # else the next broker is told how things are when the job joins it
            self._connection.send(json.dumps({**document, "job": self.job}))

    def _keep_connected(self, opened: socket.socket | None, *, insist: bool) -> None:
        """One connection after the other, until the job is over."""
        pause, seen = FIRST_PAUSE, time.monotonic()
        while not self._over:
            try:
                opened = opened or open_socket(self._path)
                with WebSocket(opened, SESSION, GREETING_SECONDS, _at_work(opened)) as connection:
                    self._join(connection)
                    pause = FIRST_PAUSE
                    try:
                        self._talk(connection)
                    finally:
                        seen = time.monotonic()
            except (OSError, LookupError, TypeError, ValueError, RefusedError) as error:
                LOGGER.debug("job %s has no broker: %s", self.job, error)
                if not self._answer.done() and not insist:
                    if isinstance(error, RefusedError):
                        self._answer.set_exception(error)
                    return
            finally:
                opened = self._connection = None
            if self._over:
                return
            if time.monotonic() - seen > self._alone:
                self._go_on()
            # Jobs that have lost the same broker do not all come back at the same moment.
            self._wait(None, time.monotonic() + pause * (1.0 + _part()) / 2.0)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _go_on(self) -> None:
        """Use a core, if the job has none; supervisors have turns of their own (`live.programs.turns`)."""
        if self._told == self._in_use == 0 and not self._ticket:
            self._pass_on(Order(self.job, 1, self._last.number + 1))

    def _wait(self, connection: WebSocket | None, until: float | None) -> bool:
        """Do what is handed over until something has come, the job is over or time is up; whether it has."""
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        over = self._over
        while True:
            if connection is not None:
                poll.register(connection, select.POLLIN | (select.POLLOUT if connection.sends else 0))
            ready = dict(poll.poll(self._patience(until)))
            self._obey(ready)
            if connection is not None and connection.fileno() in ready:
                connection.flush()
                if ready[connection.fileno()] & ~select.POLLOUT:
                    return True
            if self._over != over or (until is not None and time.monotonic() >= until):
                return False

    def _patience(self, until: float | None) -> int | None:
        """Milliseconds until there is something to do; None for ever."""
        times = [moment for moment in (until, self._report_at) if moment is not None]
        return math.ceil(max(0.0, min(times) - time.monotonic()) * 1e3) if times else None

    def _obey(self, ready: dict[int, int]) -> None:
        """Do what was handed to this thread, and what is due."""
        if self._bell.fileno() in ready:
            self._bell.recv(CHUNK)
        while self._handed:
            function, arguments = self._handed.popleft()
            function(*arguments)
        if self._report_at is not None and time.monotonic() >= self._report_at:
            self._report()

    def _join(self, connection: WebSocket) -> None:
        """Say what the job is and what it holds, and hear whether it is taken."""
        # 0 units: how many there are is not known, as for a map over a generator.
        known = asdict(self._request) | {"units": self._progress[1] or None}
        request = {key: value for key, value in known.items() if value is not None}
        if self._ticket:
            request["ticket"] = self._ticket
        cores = max(self._told, self._in_use)
        held = Held(cores, self._cpus[:cores], time.monotonic() - self._born, self._progress[0])
        connection.send(json.dumps({"kind": "join", "request": request, "held": asdict(held)}))
        until = time.monotonic() + ANSWER_SECONDS
        heard: list[dict[str, Any]] = []
        while not heard:
            heard = self._heard(connection, until)
        answer = heard[0]
        if answer["kind"] != "joined":
            raise RefusedError(answer["reason"], answer.get("hint", ""))
        self._connection, self._first_number = connection, self._last.number + 1
        if not self._answer.done():
            self._answer.set_result(True)
        for document in heard[1:]:
            self._hear(document)

    def _talk(self, connection: WebSocket) -> None:
        """Hear orders and send answers, as long as the connection lasts; at the end, say how it ended."""
        while not self._over:
            for document in self._heard(connection, None):
                self._hear(document)
        self._send({"kind": self._outcome})
        until = time.monotonic() + LAST_WORDS_SECONDS
        while True:  # the broker closes when it has noted it
            self._heard(connection, until)

    def _heard(self, connection: WebSocket, until: float | None) -> list[dict[str, Any]]:
        """What the broker says next; nothing, if the job is over now."""
        if connection.closed:
            raise ConnectionError("the broker has closed the connection")
        if not self._wait(connection, until):
            if until is not None and time.monotonic() >= until:
                raise TimeoutError("the broker does not answer")
            return []
        return [json.loads(text) for text in connection.received()]

    def _hear(self, document: dict[str, Any]) -> None:
        if document["kind"] == "order":
            number = self._first_number + int(document["number"])
            self._pass_on(Order(self.job, int(document["cores"]), number, tuple(document["cpus"])))
        elif document["kind"] == "cancel" and self._on_cancel is not None:
            tell(lambda cancel: cancel(), self._on_cancel)
        else:
            LOGGER.debug("the broker says to job %s: %s", self.job, document)

    def _pass_on(self, order: Order) -> None:
        if self._last.take(order):
            self._told, self._cpus = order.cores, order.cpus
            tell(self._on_order, order)


def _at_work(connection: socket.socket) -> Callable[[], bool]:
    """Whether who should answer may still: its process is at work, and there was not too much time."""
    until = time.monotonic() + ANSWER_SECONDS

    def is_at_work() -> bool:
        from malleable.live.system.process_tree import is_at_work  # noqa: PLC0415 - seldom

        process = peer_process(connection)
        return process is not None and time.monotonic() < until and is_at_work(process)

    return is_at_work


def _part() -> float:
    """A random number below 1, from a source that takes no time to load."""
    return os.urandom(1)[0] / 256
