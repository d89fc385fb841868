"""Who may ask what. Three checks stand before every request, as one layer around the application.

The Unix socket is trusted: its folder lets in one user, and the server asks the system who is at the other
end. On loopback anyone on the machine can connect, so reading who has how many cores is all that is allowed
without the token. To change anything, to see what programs are (`ps` shows no command that waits or has
ended, and no folder), or to read what they have printed, takes the token. Sessions of jobs are for
the Unix socket only. A web page from elsewhere must not reach the broker through the user's browser: requests
on loopback have to name this machine as their host (DNS rebinding), and no other origin is let in.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from malleable.errors import OutputError
from malleable.live.broker.page import HEADERS
from malleable.live.broker.server.paths import explained

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FILE = "token"
"""The file of the token, beside the socket."""
TRUSTED = "malleable.trusted"
"""In the state of a connection or a request: whether it is this user who asks, by socket or by token."""
PEER = "malleable.peer"
"""In a connection's state: the process at the other end of the Unix socket, where the system says so."""
FULL = "malleable.full"
"""In a connection's state: how many there may be, where it is one too many."""
MOST_BODY = 1 << 23
"""Bytes of a request: a command has a megabyte at most, and JSON may write each of its bytes as `\\udcff`."""
HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
PRINTED = re.compile(r"/v1/jobs/[^/]*/log/?")
"""Paths that are only read, and yet need the token: what programs print is for their user alone."""
PRIVATE = frozenset(("command", "folder", "on_resize", "reason"))
"""Keys of a job's document that are for its user alone."""
SAFETY_HEADERS = [
    (name.lower().encode(), value.encode()) for name, value in {**HEADERS, "X-Frame-Options": "DENY"}.items()
]
"""Of all answers: the page loads nothing from elsewhere, and no other page shows it in a frame."""


class Access:
    """The layer of checks."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            if refusal is None:
                await self._app(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        if refusal is None:
            if self._is_token(Headers(scope=scope).get("authorization", "")):
                scope["state"] = {**scope.get("state", {}), TRUSTED: True}
            limited = _LimitedBody(receive, _with_headers(send))
            with suppress(_TooLargeError):
                await self._app(scope, limited.receive, limited.send)
            if limited.exceeded:
                refusal = _TOO_LARGE
        if refusal is not None:
            status, error, hint = refusal
            response = JSONResponse({"error": error, "hint": hint}, status)
            await response(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """What is wrong with a request: a status, a sentence and a hint."""
        most = scope.get("state", {}).get(FULL)
        if most is not None:
            hint = "start it where `ulimit -Hn` is higher, or close some"
            return 503, f"the broker has {most} connections, which is all it can have", hint
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > MOST_BODY:
            return _TOO_LARGE
        return None if scope.get("state", {}).get(TRUSTED) else self._refusal_on_loopback(scope, headers)

    def _refusal_on_loopback(self, scope: Scope, headers: Headers) -> tuple[int, str, str] | None:
        if scope["type"] == "websocket":
            return 403, "sessions of jobs are for the Unix socket", ""
        if HOST.fullmatch(headers.get("host", "")) is None:
            return 403, "the request names another host", "use 127.0.0.1 or localhost"
        origin = headers.get("origin")
        if origin is not None and HOST.fullmatch(origin.removeprefix("http://")) is None:
            return 403, "the request comes from another site", ""
        if scope["method"] in SAFE_METHODS and PRINTED.fullmatch(scope["path"]) is None:
            return None
        return None if self._is_token(headers.get("authorization", "")) else _NEEDS_TOKEN

    def _is_token(self, given: str) -> bool:
        """Compare in a time that says nothing of the token."""
        scheme, _, word = given.partition(" ")
        found = secrets.compare_digest(word.strip().encode(), self._token.encode())
        return found and scheme.lower() == "bearer" and bool(self._token)


def for_strangers(job: Mapping[str, Any]) -> dict[str, Any]:
    """A job's document as anyone on the machine may see it: not what it is, nor where."""
    return {**{key: value for key, value in job.items() if key not in PRIVATE}, "command": None}


_NEEDS_TOKEN = (
    401,
    "this needs the token",
    "send `Authorization: Bearer TOKEN`; `malleable serve` says where it is",
)


_TOO_LARGE = (413, f"the request is longer than {MOST_BODY} bytes", "use a file")


class _TooLargeError(Exception):
    """A body without a stated length goes on and on."""


class _LimitedBody:
    """Counts what is received; too much is an error, and what the application makes of it is not sent."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._left = MOST_BODY

    @property
    def exceeded(self) -> bool:
        return self._left < 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self.exceeded:
            raise _TooLargeError
        return message

    async def send(self, message: Message) -> None:
        if not self.exceeded:
            await self._send(message)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *SAFETY_HEADERS]}
        await send(message)

    return sending


def read_or_make_token(folder: Path, token: str = "") -> str:
    """The token, in a file that only its owner can read; where there is none, `token` or a new one is put."""
    file = folder / FILE
    with explained(file):
        with suppress(FileExistsError):
            made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(made, "w", encoding="ascii") as out:  # noqa: PTH123 - a number, not a path
                out.write(token or secrets.token_urlsafe(32))
        found = file.lstat()
        token = file.read_text(encoding="ascii", errors="replace").strip()
    if found.st_mode & 0o077 or found.st_uid != os.getuid() or len(token) < 32:
        raise OutputError(f"others can read {file}, or it holds no token", "remove it: a new one is made")
    return token
