"""Sessions of jobs at the broker: a WebSocket each, whose end is the end of the job.

A client says `{"kind": "join", "request": {…}, "held": {…}}` first and hears `joined` or `refused`; then it
says events (`confirmed`, `progressed`, and an ending) and hears `order` and `cancel`. A connection that ends
without an ending is a job that is lost: its cores are free at once.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from annotated_types import Ge, MaxLen
from starlette.websockets import WebSocketDisconnect

from malleable.catalog.spec import Spec
from malleable.errors import MalleableError, ParameterError
from malleable.live.broker.server.access import PEER
from malleable.live.broker.server.outbox import Outbox
from malleable.live.core import events as E  # noqa: N812 - E.Registered reads like what it is
from malleable.live.core.orders import Held, Order, RefusedError

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from malleable.live.broker.broker import Broker
    from malleable.live.broker.server.client_record import ClientRecord

LOGGER = logging.getLogger(__name__)
SAID = {
    made.kind: made for made in (E.Confirmed, E.Progressed, E.Finished, E.Failed, E.Cancelled, E.Withdrawn)
}
"""The events that a client may tell, each of its own job."""
SETTLE_SECONDS = 2.0
"""Seconds after a running job was counted again until cores are divided anew: others may be on their way."""
POLICY_VIOLATION, RESTARTING = 1008, 1012
"""Codes with which a WebSocket is closed."""


class Programs(Protocol):
    """What sessions need of `live.programs.program_jobs`: programs of the broker join with a ticket."""

    def attach(
        self,
        job: str,
        ticket: str,
        on_order: Callable[[Order], None],
        on_cancel: Callable[[], None],
    ) -> Order:
        """Let a program's supervisor take its job over; returns the order in force."""

    def tell(self, event: E.Event) -> None:
        """Something happened to a program, as its supervisor says."""

    def detach(self, job: str, on_order: Callable[[Order], None]) -> None:
        """A supervisor's connection has ended without an ending."""


@dataclass(frozen=True)
class _HeldDocument(Spec):
    """`Held`, from anywhere: the ranges of its numbers are checked."""

    kind: ClassVar[str] = "held"

    cores: E.Cores = 0
    cpus: Annotated[tuple[Annotated[int, Ge(0)], ...], MaxLen(E.MOST_CORES)] = ()
    age: E.NonNegative = 0.0
    units_done: E.NonNegative = 0.0


class Sessions:
    """All sessions of a broker. After `close` connections that end say nothing of their jobs.

    Jobs of an earlier broker have `grace` seconds to come, counted from `open`.
    """

    def __init__(
        self,
        broker: Broker,
        programs: Programs | None = None,
        record: ClientRecord | None = None,
        grace: float = 0.0,
    ) -> None:
        self._broker, self._programs, self._record, self._grace = broker, programs, record, grace
        self._closing = False
        self._settling: asyncio.TimerHandle | None = None
        self._giving_up: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """The broker listens from now on: what it keeps for jobs that do not come goes to others."""
        jobs = self._broker.look(lambda scheduler: list(scheduler.ledger.expected))

        def give_up() -> None:
            for job in jobs:
                with suppress(RefusedError):  # it has come
                    self._broker.expect(job, 0)

        if jobs:
            loop = asyncio.get_running_loop()
            self._giving_up = loop.call_later(self._grace, lambda: loop.run_in_executor(None, give_up))

    def close(self) -> None:
        """The broker is about to end; its clients go on."""
        self._closing = True
        if self._record is not None:
            self._record.stop()
        for timer in (self._settling, self._giving_up):
            if timer is not None:
                timer.cancel()

    async def serve(self, websocket: WebSocket) -> None:
        """One session, from its first word to its last."""
        await websocket.accept()
        # Whichever way it notices that the client is gone: not before that is it left out of the record.
        with suppress(WebSocketDisconnect, RuntimeError), ExitStack() as recorded:
            outbox = Outbox(asyncio.get_running_loop())
            try:
                seat = await self._join(websocket, outbox, recorded)
            except MalleableError as error:
                await websocket.send_json({"kind": "refused", "reason": error.sentence, "hint": error.hint})
                await websocket.close(POLICY_VIOLATION)
                return
            await self._attend(websocket, seat, outbox)

    async def _attend(self, websocket: WebSocket, seat: _Seat, outbox: Outbox) -> None:
        """A job that has joined: pass on what it says and what it is told, until one of the two ends."""
        sending: asyncio.Task[None] | None = None
        ended = False
        try:
            await websocket.send_json({"kind": "joined", "job": seat.job})
            sending = asyncio.create_task(outbox.send_all(websocket))
            while not ended:
                ended = await self._hear(websocket, seat)
            await websocket.close()
        finally:
            if sending is not None:
                sending.cancel()
            if not ended and not self._closing:
                await asyncio.shield(asyncio.to_thread(seat.lose))

    async def _join(self, websocket: WebSocket, outbox: Outbox, recorded: ExitStack) -> _Seat:
        document = await _document(websocket)
        if document.get("kind") != "join" or not isinstance(document.get("request"), dict):
            raise ParameterError("a session begins with a join", "see docs/reference/http.md")
        request = dict(document["request"])
        found = _HeldDocument.from_parameters(document.get("held") or {})
        held = Held(found.cores, found.cpus, found.age, found.units_done)
        ticket = request.pop("ticket", "")
        if ticket:
            return await asyncio.to_thread(self._attach, str(request.get("job")), str(ticket), outbox)
        event = _registered(request, held)
        if event.job.isdecimal():
            raise RefusedError(f"{event.job!r} is the name of a program that was submitted", "choose another")
        if self._record is not None:
            process = websocket.scope.get("state", {}).get(PEER)
            recorded.enter_context(self._record.seat(event.job, process))
        await asyncio.to_thread(self._broker.join, event, outbox.put_order, outbox.put_cancel, cpus=held.cpus)
        if held.units_done > 0.0:
            with suppress(RefusedError):
                await asyncio.to_thread(
                    self._broker.tell, E.Progressed(event.job, held.units_done, event.units)
                )
        if held.cores:
            self._settle_soon()
        return _Seat(event.job, self._broker.tell, lambda: self._broker.tell(E.Lost(event.job)))

    def _attach(self, job: str, ticket: str, outbox: Outbox) -> _Seat:
        if self._programs is None:
            raise RefusedError("this broker runs no programs")
        programs, on_order = self._programs, outbox.put_order
        on_order(programs.attach(job, ticket, on_order, outbox.put_cancel))
        return _Seat(job, programs.tell, lambda: programs.detach(job, on_order))

    async def _hear(self, websocket: WebSocket, seat: _Seat) -> bool:
        """What a client says next; whether that was the end of its job."""
        try:
            document = await _document(websocket)
            if document.get("kind") not in SAID or document.get("job") != seat.job:
                raise ParameterError(
                    f"a client cannot say that: {document!r:.60}", f"known: {', '.join(SAID)}"
                )
            event = E.Event.of(document)
            await asyncio.to_thread(seat.tell, event)
        except MalleableError as error:
            # What came too late is no reason to lose a job.
            await websocket.send_json({"kind": "refused", "reason": error.sentence, "hint": error.hint})
            return False
        return isinstance(event, E.Ended)

    def _settle_soon(self) -> None:
        """Have cores divided anew when no job that was running has come for a while."""
        if self._settling is not None:
            self._settling.cancel()
        loop = asyncio.get_running_loop()
        settle = lambda: loop.run_in_executor(None, self._broker.tell, E.Tick())  # noqa: E731
        self._settling = loop.call_later(SETTLE_SECONDS, settle)


@dataclass(frozen=True)
class _Seat:
    """A job in a session: where its events go, and what to do when its connection breaks."""

    job: str
    tell: Callable[[E.Event], None]
    on_lost: Callable[[], None]

    def lose(self) -> None:
        with suppress(RefusedError):  # it has ended otherwise meanwhile
            self.on_lost()


async def _document(websocket: WebSocket) -> dict[str, Any]:
    """The next message: one that is no JSON object is an error of the client's."""
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    try:
        document = json.loads(message.get("text") or "")
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ParameterError("not a JSON object")
    return document


def _registered(request: dict[str, Any], held: Held) -> E.Registered:
    """The event of a job that joins, with what it has and has done so far."""
    done = 0.0
    with suppress(TypeError, ValueError, ZeroDivisionError):  # numbers are checked below
        if request.get("size") and request.get("units"):
            done = request["size"] * min(held.units_done / request["units"], 1.0)
    return E.Registered.from_parameters({**request, "work_done": done, "cores": held.cores, "age": held.age})
