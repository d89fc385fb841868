"""Where a broker listens: its sockets, and the server between them and the application."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from malleable.errors import OutputError
from malleable.live.broker.operator_log import LOGGER, entry
from malleable.live.broker.server.access import FULL, PEER, TRUSTED
from malleable.live.broker.server.paths import explained
from malleable.live.system.open_files import most_connections
from malleable.live.system.unix_socket import LONGEST, is_own, peer_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"
MOST_MESSAGE = 1 << 20
"""Bytes of a message in a session; one that names a million CPUs is longer than any."""
BACKLOG = 4096
"""Connections that may wait: after a restart all clients come at once."""
AT_ONCE = 4
"""Connections that are accepted before those that are too many are closed.

asyncio accepts as many as may wait, and where it runs out of files it logs that each time.
"""
PING_SECONDS, SILENT_SECONDS = 20.0, 40.0
"""Seconds between two pings of a job's client, and those that it has to answer.

A client that was stopped loses its cores after a minute at most. One that holds Python's interpreter for
long, say to pack large data, answers late.
"""
GOODBYE_SECONDS = 2
"""Seconds that connections have to end when the broker does."""


@contextmanager
def unix_listener(path: Path) -> Iterator[socket.socket]:
    """A socket that only this user can open; one that was left behind is replaced."""
    if len(os.fsencode(path)) > LONGEST:
        raise OutputError(f"the path of the socket is too long: {path}", "set MALLEABLE_HOME to a short one")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with explained(path):
            path.unlink(missing_ok=True)
            made.bind(str(path))
            path.chmod(0o600)  # before it listens, no process can connect
            own = path.stat().st_ino
        made.listen(BACKLOG)
        try:
            yield made
        finally:
            with suppress(OSError):
                if path.stat().st_ino == own:  # else it is another broker's
                    path.unlink()
    finally:
        made.close()


@contextmanager
def loopback_listener(port: int) -> Iterator[socket.socket]:
    """A socket that only this machine can reach; port 0 is any that is free."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise OutputError(f"cannot listen on port {port}: {error}", "choose another, or 0") from None
        made.listen(BACKLOG)
        yield made
    finally:
        made.close()


class _Connection(H11Protocol):
    """A connection that knows whether it can be trusted; a stranger on the Unix socket is turned away."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        there = len(self.connections)
        if there > most_connections():
            self.app_state = {**self.app_state, FULL: most_connections()}
            LOGGER.warning("there are more than %d connections", most_connections())
            if there > most_connections() * 3 // 2:  # those that wait to be told take files as well
                transport.abort()
                return
        connection = transport.get_extra_info("socket")
        if connection.family == socket.AF_UNIX:
            if is_own(connection):
                self.app_state = {**self.app_state, TRUSTED: True, PEER: peer_process(connection)}
            else:
                transport.abort()


class _Session(WebSocketsSansIOProtocol):
    """A job's connection, which ends when its client is silent, as if that had died."""

    def keepalive_timeout(self) -> None:
        process = self.app_state.get(PEER)
        LOGGER.warning(entry("silent", process=process, seconds=PING_SECONDS + SILENT_SECONDS))
        super().keepalive_timeout()
        self.transport.abort()  # what is still to be sent must not keep it


class Server(uvicorn.Server):
    """A server that is stopped by `stop`, wakes up for requests only, and leaves signals alone."""

    def __init__(self, app: ASGIApp, on_ready: Callable[[], None] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Connection,
                ws=_Session,
                ws_max_size=MOST_MESSAGE,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=SILENT_SECONDS,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                backlog=AT_ONCE,
                timeout_graceful_shutdown=GOODBYE_SECONDS,
            )
        )
        self._on_ready = on_ready
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Answer no request from now on."""
        self._stopping.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        asyncio.get_running_loop().set_exception_handler(_log)
        await super().startup(sockets)
        for made in sockets or ():
            made.listen(BACKLOG)  # asyncio has said how many it accepts at once

    async def listen(self, made: socket.socket) -> None:
        """Answer at one more socket."""

        def connection() -> _Connection:
            return _Connection(self.config, self.server_state, self.lifespan.state)

        loop = asyncio.get_running_loop()
        self.servers.append(await loop.create_server(connection, sock=made, backlog=AT_ONCE))
        made.listen(BACKLOG)

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Leave signals to whoever runs this server."""
        return nullcontext()

    async def main_loop(self) -> None:
        """Wait for the end."""
        if self._on_ready is not None:
            self._on_ready()
        await self._stopping.wait()


def _log(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong where no caller hears of it: in a line if the machine refused it."""
    error = context.get("exception")
    trace = None if error is None or isinstance(error, OSError) else error
    LOGGER.error(entry("trouble", problem=context["message"], error=error), exc_info=trace)
