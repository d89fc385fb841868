"""Whole messages over a stream socket: each one behind its length.

The pool's thread serves all workers, so it never waits for one of them: what a socket does not take at once
is kept until it does. A worker has one channel only, and waits.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

LENGTH = struct.Struct("!Q")
CHUNK = 1 << 18
"""Bytes asked for at a time."""


class Channel:
    """One end of a connection; `closed` once the other end is gone."""

    def __init__(self, socket: socket.socket, *, blocking: bool) -> None:
        socket.setblocking(blocking)
        self.socket = socket
        self.closed = False
        self._in = bytearray()
        self._out = bytearray()

    def send(self, message: bytes) -> None:
        """Send a message as soon as the other end takes it."""
        self._out += LENGTH.pack(len(message))
        self._out += message
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes of the messages that wait; a blocking one takes all."""
        try:
            while self._out:
                del self._out[: self.socket.send(self._out)]
        except BlockingIOError:
            return
        except OSError:  # its end is gone, which reading reports
            self._out.clear()

    @property
    def sends(self) -> bool:
        """Whether messages wait to be sent."""
        return bool(self._out)

    def receive(self) -> bytes | None:
        """Wait for the next message; None at the end."""
        while (message := self._next()) is None and not self.closed:
            self._read()
        return message

    def received(self) -> list[bytes]:
        """The messages that are there after one look at the socket."""
        self._read()
        return self._all()

    def rest(self) -> list[bytes]:
        """All messages of an end that is gone."""
        while not self.closed and self._read():
            pass
        return self._all()

    def _read(self) -> bool:
        """Take in what has come; whether anything has."""
        try:
            chunk = self.socket.recv(CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        self.closed = not chunk
        self._in += chunk
        return True

    def _all(self) -> list[bytes]:
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> bytes | None:
        if len(self._in) < LENGTH.size:
            return None
        end = LENGTH.size + LENGTH.unpack_from(self._in)[0]
        if len(self._in) < end:
            return None
        message = bytes(memoryview(self._in)[LENGTH.size : end])
        del self._in[:end]
        return message

    def close(self) -> None:
        self.socket.close()
