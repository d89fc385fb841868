"""Where a broker listens: its locks, its sockets, and the server between them and the application."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from malleable.errors import ExecutionError, OutputError
from malleable.live.server.access import PEER, TRUSTED
from malleable.live.server.paths import explained
from malleable.live.unix_socket import LONGEST, is_own, peer_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"
MOST_MESSAGE = 1 << 20
"""Bytes of a message in a session; one that names a million CPUs is longer than any."""
BACKLOG = 4096
"""Connections that may wait: after a restart all clients come at once."""
GOODBYE_SECONDS = 2
"""Seconds that connections have to end when the broker does."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder: one broker at a time. The system lets go of it however this process ends."""
    with explained(folder / "broker.lock"):
        file = os.open(folder / "broker.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number = os.read(file, 20).decode("ascii", "replace").strip()
            who = f"process {number}" if number else "another process"
            raise ExecutionError(
                f"a broker runs already: {who} holds {folder}", "see `malleable status`"
            ) from None
        with explained(folder / "broker.lock"):
            os.truncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(file)


@contextmanager
def unix_listener(path: Path) -> Iterator[socket.socket]:
    """A socket that only this user can open; one that was left behind is replaced."""
    if len(os.fsencode(path)) > LONGEST:
        raise OutputError(f"the path of the socket is too long: {path}", "set MALLEABLE_HOME to a short one")
    with explained(path), suppress(FileNotFoundError):
        path.unlink()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            with explained(path):
                made.bind(str(path))
        finally:
            os.umask(before)
        made.listen(BACKLOG)
        yield made
    finally:
        made.close()
        with suppress(OSError):
            path.unlink()


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
        connection = transport.get_extra_info("socket")
        if connection.family == socket.AF_UNIX:
            if is_own(connection):
                self.app_state = {**self.app_state, TRUSTED: True, PEER: peer_process(connection)}
            else:
                transport.abort()


class Server(uvicorn.Server):
    """A server that is stopped by `stop`, wakes up for requests only, and leaves signals alone."""

    def __init__(self, app: ASGIApp, on_ready: Callable[[], None] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Connection,
                ws="websockets-sansio",
                ws_max_size=MOST_MESSAGE,
                ws_ping_interval=None,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=GOODBYE_SECONDS,
            )
        )
        self._on_ready = on_ready
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Answer no request from now on."""
        self._stopping.set()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Leave signals to whoever runs this server."""
        return nullcontext()

    async def main_loop(self) -> None:
        """Wait for the end."""
        if self._on_ready is not None:
            self._on_ready()
        await self._stopping.wait()
