"""Whole messages over a stream socket: each one behind its length.

The pool's thread serves all workers, so it never waits for one of them: what a socket does not take at once
is kept until it does. A worker has one channel only, and waits. Large contents are not copied on the way:
they are sent from where they are, and received where they stay.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

LENGTH = struct.Struct("!Q")
CHUNK = 1 << 18
"""Bytes asked for at a time; what is longer is not copied."""


class Channel:
    """One end of a connection; `closed` once the other end is gone."""

    def __init__(self, socket: socket.socket, *, blocking: bool) -> None:
        socket.setblocking(blocking)
        self.socket = socket
        self.closed = False
        self._in = bytearray()
        self._large: memoryview | None = None
        """A long message of which the first `_filled` bytes have come."""
        self._filled = 0
        self._out: deque[memoryview] = deque()

    def send(self, *parts: bytes) -> None:
        """Send a message of some parts as soon as the other end takes it."""
        length = sum(map(len, parts))
        whole = (LENGTH.pack(length), *parts)
        self._out.extend(map(memoryview, whole if length > CHUNK else (b"".join(whole),)))
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes of the messages that wait; a blocking one takes all."""
        try:
            while self._out:
                sent = self.socket.send(self._out[0])
                if sent < len(self._out[0]):
                    self._out[0] = self._out[0][sent:]
                else:
                    self._out.popleft()
        except BlockingIOError:
            return
        except OSError:  # its end is gone, which reading reports
            self._out.clear()

    @property
    def sends(self) -> bool:
        """Whether messages wait to be sent."""
        return bool(self._out)

    def receive(self) -> memoryview | None:
        """Wait for the next message; None at the end."""
        while (message := self._next()) is None and not self.closed:
            self._read()
        return message

    def received(self) -> list[memoryview]:
        """The messages that are there after one look at the socket."""
        self._read()
        return self._all()

    def rest(self) -> list[memoryview]:
        """All messages of an end that is gone."""
        messages = []
        while not self.closed and self._read():
            messages += self._all()
        return messages

    def _read(self) -> bool:
        """Take in what has come; whether anything has."""
        try:
            if self._large is None:
                chunk = self.socket.recv(CHUNK)
                self._in += chunk
                count = len(chunk)
            else:
                count = self.socket.recv_into(self._large[self._filled :])
                self._filled += count
        except BlockingIOError:
            return False
        except OSError:
            count = 0
        self.closed = not count
        return True

    def _all(self) -> list[memoryview]:
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> memoryview | None:
        if self._large is not None:
            return self._finished()
        if len(self._in) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._in)
        end = LENGTH.size + length
        if len(self._in) < end:
            if length > CHUNK:
                self._begin(length)
            return None
        message = memoryview(bytes(memoryview(self._in)[LENGTH.size : end]))
        del self._in[:end]
        return message

    def _begin(self, length: int) -> None:
        """From now on, receive a long message where it stays."""
        self._filled = len(self._in) - LENGTH.size
        self._large = memoryview(bytearray(length))
        self._large[: self._filled] = memoryview(self._in)[LENGTH.size :]
        self._in = bytearray()

    def _finished(self) -> memoryview | None:
        message = self._large
        if message is None or self._filled < len(message):
            return None
        self._large = None
        return message

    def close(self) -> None:
        self.socket.close()
