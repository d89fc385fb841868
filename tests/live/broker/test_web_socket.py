"""The client's end of a WebSocket, held against a server of the library that knows the protocol."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import unix_serve

from malleable.live.broker.web_socket import BrokenWebSocketError, WebSocket
from malleable.live.system.unix_socket import open_socket
from support.broker_server import short_folder
from support.living import wait_until

SECONDS = 20.0
SIZES = (0, 1, 125, 126, 127, 65_535, 65_536, 300_000)


@contextmanager
def served(handler):
    """A server that hands each connection to a function; yields a client's end of one."""
    with short_folder() as folder, unix_serve(handler, str(folder / "s"), compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with WebSocket(open_socket(folder / "s"), "/there", SECONDS) as made:
                yield made
        finally:
            server.shutdown()
            thread.join()


def texts(client, number):
    """So many texts, as they come."""
    found = []

    def there():
        client.flush()
        found.extend(client.received())
        return len(found) >= number

    wait_until(there, f"{number} texts")
    return found


def test_texts_of_all_lengths_go_both_ways():
    """The three forms of a length, and more than a socket takes at once; the path is the one asked for."""
    paths = []

    def echo(connection):
        paths.append(connection.request.path)
        for text in connection:
            connection.send(text)

    with served(echo) as client:
        said = [chr(ord("ä") + i) * size for i, size in enumerate(SIZES)]
        for text in said:
            client.send(text)
        assert texts(client, len(said)) == said
    assert paths == ["/there"]


def test_fragments_and_pings():
    """A text in fragments is one text, and a ping between them is answered."""
    answered = threading.Event()

    def talk(connection):
        pong = connection.ping(b"there?")
        connection.send(iter(["a", "bc", "", "d"]))
        if pong.wait(SECONDS):
            answered.set()
        connection.recv()

    with served(talk) as client:
        assert texts(client, 1) == ["abcd"]
        assert answered.wait(SECONDS)


@pytest.mark.parametrize("code", [1000, 1008])
def test_the_other_end_says_goodbye(code):
    """What was said before is heard; then it is closed, and the goodbye was returned."""
    returned = []

    def talk(connection):
        connection.send("last")
        connection.close(code)
        returned.append(connection.protocol.close_rcvd.code)

    with served(talk) as client:
        assert texts(client, 1) == ["last"]
        wait_until(lambda: client.received() == [] and client.closed, "the goodbye")
        client.close()
        wait_until(lambda: returned == [code], "the answer to it")


def test_a_client_says_goodbye():
    """Leaving is a close of the protocol, not a connection that breaks."""
    seen = []

    def talk(connection):
        with suppress(ConnectionClosed):  # nobody hears the answer to the goodbye
            seen.extend(connection)
        seen.append(connection.protocol.close_rcvd.code)

    with served(talk) as client:
        client.send("hello")
        wait_until(lambda: seen == ["hello"], "the text")
        client.close()
        wait_until(lambda: seen == ["hello", 1000], "the goodbye")


@contextmanager
def answering(answer):
    """A connection whose other end has answered like this, and closed if the answer ends with None."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(answer)
        yield ours, theirs


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: wrong\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\r\n\r\n",
        b"x" * 100_000,
    ],
)
def test_what_is_no_websocket_is_refused(answer):
    """An HTTP server, one with the wrong key, another protocol, and one that never ends a line."""
    with answering(answer) as (ours, _), pytest.raises(BrokenWebSocketError):
        WebSocket(ours, "/", SECONDS)


def test_one_that_says_nothing_is_given_up():
    """No answer within the time, or an end of the connection, is an error of its kind."""
    with answering(b"") as (ours, _), pytest.raises(TimeoutError):
        WebSocket(ours, "/", 0.01)
    with answering(b"") as (ours, theirs):
        theirs.close()
        with pytest.raises(BrokenWebSocketError):
            WebSocket(ours, "/", SECONDS)


@pytest.mark.parametrize("frame", [b"\x81\x81aaaax", b"\x81\x7f" + b"\x7f" * 8, b"\x81\x02\xff\xfe"])
def test_frames_that_no_server_sends(frame):
    """A masked one, one that is far too long, and one that is no text."""
    accepted = threading.Event()

    def talk(connection):
        connection.socket.sendall(frame)
        accepted.set()
        connection.recv()

    with served(talk) as client:
        assert accepted.wait(SECONDS)
        with pytest.raises((BrokenWebSocketError, UnicodeDecodeError)):
            wait_until(client.received, "an error")
