"""Output beyond a limit: what is kept of it, what is said of the rest, and how it is read."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from malleable.live.broker.server.streams import file_stream
from malleable.live.programs import Program
from malleable.live.programs.output_limit import STEP, OutputLimit, read_block

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on Linux")
MOST = 16 * STEP
LINE = 64


def lines(first: int, last: int) -> bytes:
    """Lines of a fixed length, with their numbers."""
    return b"".join(b"%*d\n" % (LINE - 1, number) for number in range(first, last))


def on_disk(path) -> int:
    """Bytes that a file takes on the disk."""
    return path.stat().st_blocks * 512


def read(path, offset=0) -> bytes:
    """All that is sent of a file from a place on."""

    async def collect():
        return [block async for block in file_stream(lambda: path, offset, None)]

    return b"".join(asyncio.run(collect()))


def test_a_long_output(tmp_path):
    """Of ten times the limit the first half of it and the end are kept, and a line for what is between.

    While it grows it never takes much more of the disk than the limit, places in it stay what they are, and
    its reader gets no zeros.
    """
    path = tmp_path / "output"
    limit = OutputLimit(path, MOST)
    step = MOST // LINE // 4
    with path.open("ab", buffering=0) as file:
        for number in range(40):
            file.write(lines(number * step, (number + 1) * step))
            limit.look()
            assert on_disk(path) <= 1.5 * MOST
    whole = lines(0, 40 * step)
    assert path.stat().st_size == len(whole)
    limit.finish()
    found = read(path)
    gap = b"\n[malleable: %d bytes are left out here]\n" % limit.left_out
    said = b"\n[malleable: %d bytes were left out above: about %d are kept]\n" % (limit.left_out, MOST)
    head, kept = found.removesuffix(said).split(gap)
    assert head == whole[: MOST // 2]
    assert len(kept) >= MOST // 4
    assert whole.endswith(kept)
    assert found == head + gap + kept + said
    assert b"\0" not in found
    assert read(path, len(whole) - 10) == whole[-10:] + said


def test_a_short_output(tmp_path):
    """Up to the limit all is kept, and nothing is added."""
    path = tmp_path / "output"
    limit = OutputLimit(path, MOST)
    path.write_bytes(b"x" * MOST)
    limit.look()
    limit.finish()
    assert read(path) == b"x" * MOST
    assert limit.left_out == 0


def test_what_is_not_there(tmp_path):
    """A file that is gone, and a place behind the end, are the end of the output."""
    OutputLimit(tmp_path / "none", MOST).finish()
    assert not (tmp_path / "none").exists()
    assert read_block(tmp_path / "none", 3, 10) == (b"", 3)
    (tmp_path / "some").write_bytes(b"abc")
    assert read_block(tmp_path / "some", 1, 1) == (b"b", 2)
    assert read_block(tmp_path / "some", 3, 10) == (b"", 3)
    assert read_block(tmp_path / "some", 9, 10) == (b"", 9)


def test_where_no_holes_can_be_made(tmp_path, monkeypatch):
    """All is kept, and nothing said, rather than the wrong thing."""
    path = tmp_path / "output"
    path.write_bytes(b"x" * 4 * MOST)
    limit = OutputLimit(path, MOST)
    monkeypatch.setattr(limit, "_punch", lambda _end: False)
    limit.finish()
    assert read(path) == b"x" * 4 * MOST


def test_a_program_that_prints_without_end(tmp_path):
    """Both streams are kept within the limit, and its exit code is its own."""
    printing = "head -c {} /dev/zero | tr '\\0' {}"
    text = f"{printing.format(64 * MOST, 'a')}; {printing.format(8 * MOST, 'b >&2')}; exit 3"
    program = Program(["sh", "-c", text], tmp_path, cpus=os.sched_getaffinity(0), errors_apart=True,
                      most_output=MOST)  # fmt: skip
    assert program.wait(60.0) == 3
    for name, letter, times in (("output", b"a", 64), ("errors", b"b", 8)):
        path = tmp_path / name
        assert path.stat().st_size >= times * MOST
        assert on_disk(path) <= 1.5 * MOST
        found = read(path)
        assert found.count(b"malleable") == 2
        assert len(found) - 300 <= MOST
        assert found.startswith(letter * (MOST // 2))
