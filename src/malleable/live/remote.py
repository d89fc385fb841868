"""A job's seat at a broker in another process.

    membership = connect(path, JobRequest("etl"), on_order, on_cancel)

One thread holds the connection, and both callbacks come from it. All that is known of the job (what it was
told, what it uses) belongs to that thread: methods, which may be called from any thread, hand it work.

When the broker dies the job keeps the cores that it has. The thread tries to reach a broker again, less and
less often, and joins it with what the job holds. Numbers of orders start anew with each connection; the job
sees numbers that go on rising, so it need not know.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import unix_connect
from websockets.exceptions import WebSocketException

from malleable.live.listeners import tell
from malleable.live.orders import Held, Order, RefusedError
from malleable.live.server.paths import broker_socket
from malleable.live.unix_socket import open_socket

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from websockets.asyncio.client import ClientConnection

    from malleable.live.membership import JobRequest, Membership, Outcome

LOGGER = logging.getLogger(__name__)
ADDRESS = "ws://localhost/v1/session"
ANSWER_SECONDS = 10.0
"""Seconds that a broker has to answer when a job joins."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two attempts to reach a broker again; it divides cores anew when all had time for that."""
PROGRESS_SECONDS = 0.1
"""Seconds between two reports of progress; what is reported in between is one report."""
LAST_WORDS_SECONDS = 2.0
"""Seconds that the end of a job waits for a broker that does not listen."""


def connect(
    path: str | Path | None,
    request: JobRequest,
    on_order: Callable[[Order], None],
    on_cancel: Callable[[], None] | None = None,
    *,
    held: Held | None = None,
    ticket: str = "",
    insist: bool = False,
) -> Membership | None:
    """Join the broker at a socket, by default the user's own; None if there is none.

    `RefusedError` says why a broker does not take the job.
    `held` is what the job uses already, `ticket` the secret of a program that the broker has started. With
    `insist` the job is one that goes on in any case: it joins as soon as there is a broker.
    """
    path = broker_socket() if path is None else path
    try:
        opened = open_socket(path)
    except OSError:
        if not insist:
            return None
        opened = None
    made = RemoteMembership(str(path), request, on_order, on_cancel, held or Held(), ticket)
    taken = made.start(opened, insist=insist)
    return made if insist or taken.result() else None


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
        self._first_number, self._last_number = 0, -1
        """Of the orders of this connection, and of the orders so far, as the job sees them."""
        self._unsent: deque[dict[str, Any]] = deque()
        self._news, self._over = asyncio.Event(), asyncio.Event()
        self._joined = False
        self._outcome = ""
        self._answer: Future[bool] = Future()
        self._loop = asyncio.new_event_loop()

    def start(self, opened: socket.socket | None, *, insist: bool) -> Future[bool]:
        """Begin; the future says whether the first broker has taken the job."""

        def live() -> None:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._keep_connected(opened, insist=insist))

        self._thread = threading.Thread(target=live, name="malleable-membership", daemon=True)
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
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    # All that follows happens in the connection's thread.

    def _note_use(self, cores: int, number: int) -> None:
        self._in_use = cores
        if number >= self._first_number:  # else it answers a broker that is gone
            self._send({"kind": "confirmed", "cores": cores, "number": number - self._first_number})

    def _plan_report(self) -> None:
        self._loop.call_at(max(self._reported + PROGRESS_SECONDS, self._loop.time()), self._report)

    def _report(self) -> None:
        self._reported, self._report_due = self._loop.time(), False
        done, units = self._progress
        self._send({"kind": "progressed", "units_done": done} | ({} if units is None else {"units": units}))

    def _finish(self) -> None:
        if self._report_due:
            self._report()
        self._over.set()
        self._news.set()

    def _send(self, document: dict[str, Any]) -> None:
        if self._joined:  # else the next broker is told how things are when the job joins it
            self._unsent.append({**document, "job": self.job})
            self._news.set()

    async def _keep_connected(self, opened: socket.socket | None, *, insist: bool) -> None:
        """One connection after the other, until the job is over."""
        pause = FIRST_PAUSE
        while not self._over.is_set():
            try:
                opened = opened or open_socket(self._path)
                async with unix_connect(
                    uri=ADDRESS,
                    sock=opened,
                    compression=None,
                    ping_interval=None,
                    open_timeout=ANSWER_SECONDS,
                ) as connection:
                    await self._join(connection)
                    pause = FIRST_PAUSE
                    await self._talk(connection)
            except (OSError, TimeoutError, ValueError, WebSocketException, RefusedError) as error:
                LOGGER.debug("job %s has no broker: %s", self.job, error)
                if not self._answer.done() and not insist:
                    if isinstance(error, RefusedError):
                        self._answer.set_exception(error)
                    break
            opened = None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(2.0 * pause, LONGEST_PAUSE)
        if not self._answer.done():
            self._answer.set_result(False)

    async def _join(self, connection: ClientConnection) -> None:
        """Say what the job is and what it holds, and hear whether it is taken."""
        self._unsent.clear()
        known = asdict(self._request) | {"units": self._progress[1]}
        request = {key: value for key, value in known.items() if value is not None}
        if self._ticket:
            request["ticket"] = self._ticket
        cores = max(self._told, self._in_use)
        held = Held(cores, self._cpus[:cores], time.monotonic() - self._born, self._progress[0])
        await connection.send(json.dumps({"kind": "join", "request": request, "held": asdict(held)}))
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = json.loads(await connection.recv())
        if answer["kind"] != "joined":
            raise RefusedError(answer["reason"], answer.get("hint", ""))
        self._joined, self._first_number = True, self._last_number + 1
        if not self._answer.done():
            self._answer.set_result(True)

    async def _talk(self, connection: ClientConnection) -> None:
        """Hear orders and send answers, as long as the connection lasts."""
        sending = asyncio.create_task(self._send_all(connection))
        try:
            async for text in connection:
                self._hear(json.loads(text))
        finally:
            self._joined = False
            sending.cancel()
            with suppress(asyncio.CancelledError, WebSocketException):
                await sending

    async def _send_all(self, connection: ClientConnection) -> None:
        while True:
            while self._unsent:
                await connection.send(json.dumps(self._unsent.popleft()))
            if self._over.is_set():
                await connection.send(json.dumps({"kind": self._outcome, "job": self.job}))
                with suppress(TimeoutError):  # the broker closes when it has noted it
                    async with asyncio.timeout(LAST_WORDS_SECONDS):
                        await connection.wait_closed()
                await connection.close()
                return
            self._news.clear()
            await self._news.wait()

    def _hear(self, document: dict[str, Any]) -> None:
        if document["kind"] == "order":
            number = self._first_number + int(document["number"])
            if number < self._last_number:  # it was passed by a later one
                return
            order = Order(self.job, int(document["cores"]), number, tuple(document["cpus"]))
            self._last_number, self._told, self._cpus = number, order.cores, order.cpus
            tell(self._on_order, order)
        elif document["kind"] == "cancel" and self._on_cancel is not None:
            tell(lambda cancel: cancel(), self._on_cancel)
        else:
            LOGGER.debug("the broker says to job %s: %s", self.job, document)
