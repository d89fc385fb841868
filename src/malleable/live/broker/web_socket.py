"""The client's end of a WebSocket (RFC 6455) over a connection that is there: texts, and no extensions.

An Executor is slower than Python's by what it loads before its first unit. A library of WebSockets takes
longer to load than the whole Executor, and of it a client of a broker on the same machine needs this much.
Nothing here waits but the handshake: what the other end does not take at once is kept until it does.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import select
import struct
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to the key of a handshake, to show that it speaks this protocol (section 1.3)."""
CONTINUATION, TEXT, CLOSE, PING, PONG = 0x0, 0x1, 0x8, 0x9, 0xA
FINAL, MASKED, OPCODE = 0x80, 0x80, 0x0F
LENGTH_16, LENGTH_64 = 126, 127
SHORT, LONG = struct.Struct("!H"), struct.Struct("!Q")
LONGEST = 1 << 24
"""Bytes of a message, at most."""
CHUNK = 1 << 16
NORMAL = SHORT.pack(1000)
LOOK_SECONDS = 0.1
"""Seconds between two looks at whether the other end, which should have answered, is at work."""


class BrokenWebSocketError(ConnectionError):
    """The other end has gone, or speaks something else."""


class WebSocket:
    """A session of texts. `closed` once the other end has said goodbye, or is gone.

    The other end has so many seconds to answer at first, and more as long as `is_at_work` says so.
    """

    def __init__(
        self,
        connection: socket.socket,
        path: str,
        seconds: float,
        is_at_work: Callable[[], bool] = lambda: False,
    ) -> None:
        self._socket = connection
        self._in, self._out = bytearray(), bytearray()
        self._message = bytearray()
        """The fragments so far of a message that comes in several."""
        self.closed = False
        connection.setblocking(False)
        try:
            self._shake_hands(path, time.monotonic() + seconds, is_at_work)
        except BaseException:
            connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """What to wait for."""
        return self._socket.fileno()

    @property
    def sends(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._out)

    def send(self, text: str) -> None:
        """Send a text as soon as the other end takes it."""
        self._send_frame(TEXT, text.encode())

    def flush(self) -> None:
        """Send what the other end takes."""
        try:
            while self._out:
                del self._out[: self._socket.send(self._out)]
        except BlockingIOError:
            return
        except OSError:  # it is gone, which reading reports
            self._out.clear()

    def received(self) -> list[str]:
        """The texts that have come; none if the end has."""
        self._read()
        texts = []
        while (frame := self._next()) is not None:
            text = self._text_of(*frame)
            if text is not None:
                texts.append(text)
        return texts

    def close(self) -> None:
        """Say goodbye, if the other end listens, and hear no more."""
        if not self.closed:
            self._send_frame(CLOSE, NORMAL)
        self.closed = True
        self._socket.close()

    def _shake_hands(self, path: str, until: float, is_at_work: Callable[[], bool]) -> None:
        """Ask for a WebSocket, and see that the other end agrees (section 4)."""
        key = binascii.b2a_base64(os.urandom(16), newline=False)
        self._out += b"GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n" % path.encode()
        self._out += b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        self._out += b"Sec-WebSocket-Key: %s\r\n\r\n" % key
        self.flush()
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while (end := self._in.find(b"\r\n\r\n")) < 0:
            if not poll.poll(max(0.0, until - time.monotonic()) * 1e3):
                if not is_at_work():
                    raise TimeoutError("no answer to the request for a WebSocket")
                until = time.monotonic() + LOOK_SECONDS
                continue
            self._read()
            if self.closed or len(self._in) > CHUNK:
                raise BrokenWebSocketError("no answer to the request for a WebSocket")
        status, *lines = bytes(self._in[:end]).split(b"\r\n")
        del self._in[: end + 4]
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (s.partition(b":") for s in lines)
        }
        accepted = binascii.b2a_base64(hashlib.sha1(key + GUID).digest(), newline=False)  # noqa: S324
        if status.split()[1:2] != [b"101"] or headers.get(b"sec-websocket-accept") != accepted:
            raise BrokenWebSocketError(f"the answer is no WebSocket: {status[:80]!r}")

    def _read(self) -> None:
        try:
            chunk = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        self.closed = self.closed or not chunk
        self._in += chunk

    def _next(self) -> tuple[int, bool, bytes] | None:
        """Take a frame that has come whole: its opcode, whether a message ends with it, its content."""
        if len(self._in) < 2:
            return None
        first, length, begin = self._in[0], self._in[1], 2
        if length & MASKED:
            raise BrokenWebSocketError("the broker masks what it sends, which no server does")
        for mark, number in ((LENGTH_16, SHORT), (LENGTH_64, LONG)):
            if length == mark:
                begin += number.size
                if len(self._in) < begin:
                    return None
                (length,) = number.unpack_from(self._in, 2)
                break
        if length > LONGEST:
            raise BrokenWebSocketError(f"the broker sends {length} bytes at a time")
        if len(self._in) < begin + length:
            return None
        content = bytes(memoryview(self._in)[begin : begin + length])
        del self._in[: begin + length]
        return first & OPCODE, bool(first & FINAL), content

    def _text_of(self, opcode: int, final: bool, content: bytes) -> str | None:
        """The text that a frame completes; what is no text is answered."""
        if opcode == PING:
            self._send_frame(PONG, content)
        elif opcode == CLOSE:
            if not self.closed:
                self._send_frame(CLOSE, content[: SHORT.size])
            self.closed = True
        elif opcode in {TEXT, CONTINUATION}:
            self._message += content
            if len(self._message) > LONGEST:
                raise BrokenWebSocketError("the broker sends a message without end")
            if final:
                text, self._message = self._message.decode(), bytearray()
                return text
        return None

    def _send_frame(self, opcode: int, content: bytes) -> None:
        """A client masks what it sends (section 5.3)."""
        size = len(content)
        if size < LENGTH_16:
            head = bytes([FINAL | opcode, MASKED | size])
        elif size < 1 << 16:
            head = bytes([FINAL | opcode, MASKED | LENGTH_16]) + SHORT.pack(size)
        else:
            head = bytes([FINAL | opcode, MASKED | LENGTH_64]) + LONG.pack(size)
        mask = os.urandom(4)
        pad = (mask * (size // 4 + 1))[:size]
        masked = int.from_bytes(content, "big") ^ int.from_bytes(pad, "big")
        self._out += head + mask + masked.to_bytes(size, "big")
        self.flush()
