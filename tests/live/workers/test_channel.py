"""Messages between a pool and a worker: whole, in order, however long and however they are cut."""

from __future__ import annotations

import random
import socket

import pytest

from malleable.live.workers.channel import CHUNK, LENGTH, Channel

SIZES = (0, 1, 1_000, CHUNK - LENGTH.size, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5)


@pytest.fixture
def ends():
    """Both ends of a connection, neither of which waits."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours, blocking=False), Channel(theirs, blocking=False)


def exchanged(sender, receiver):
    """All that was sent, as it comes."""
    found = []
    while sender.sends:
        sender.flush()
        found += receiver.received()
    return found + receiver.received()


def test_messages_of_all_lengths(ends):
    """In one part or several, short ones behind long ones: each comes as it was sent."""
    rng = random.Random(1)
    sent = [rng.randbytes(size) for size in (*SIZES, *rng.sample(SIZES, len(SIZES)))]
    for message in sent:
        cut = rng.randrange(len(message) + 1)
        ends[0].send(message[:cut], b"", message[cut:])
    assert [bytes(message) for message in exchanged(*ends)] == sent


def test_a_long_message_in_small_pieces():
    """A socket that gives a few bytes at a time, as one between processes may."""
    message = random.Random(2).randbytes(2 * CHUNK)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours, blocking=False)
        found = []
        for start in range(0, len(message), 70_001):
            theirs.sendall(
                (LENGTH.pack(len(message)) if start == 0 else b"") + message[start : start + 70_001]
            )
            found += channel.received()
        theirs.sendall(LENGTH.pack(2) + b"ok")
        assert [bytes(each) for each in found + channel.received()] == [message, b"ok"]


def test_what_was_sent_before_the_end(ends):
    """All whole messages of an end that is gone, also those behind a long one; a part of one is dropped."""
    sent = [b"a" * 100, b"b" * (CHUNK // 2), b"c", b"d" * 10]
    for message in sent:
        ends[1].send(message)
    ends[1].socket.send(LENGTH.pack(CHUNK + 1) + b"half")
    ends[1].close()
    assert [bytes(message) for message in ends[0].rest()] == sent
    assert ends[0].closed


def test_the_rest_behind_a_long_message():
    """A long message that was under way when the other end closed is whole, and so is the next."""
    ours, theirs = socket.socketpair()
    long = b"x" * (CHUNK + 50)
    with ours, theirs:
        channel = Channel(ours, blocking=False)
        theirs.sendall(LENGTH.pack(len(long)) + long[:100_000])
        assert channel.received() == []
        theirs.setblocking(False)
        rest = long[100_000:] + LENGTH.pack(2) + b"ok"
        while rest:
            rest = rest[theirs.send(rest) :]
            if rest:
                assert channel.received() == []
        theirs.close()
        assert [bytes(message) for message in channel.rest()] == [long, b"ok"]
