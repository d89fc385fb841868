"""Functions by content: sent once for each worker, however large; a global that has changed is seen."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from malleable.live.workers import Pool
from malleable.live.workers.functions import LARGE_BYTES, LARGE_KEPT, MOST_FILES, Functions, InFile, InMessage
from malleable.live.workers.workers import Worker
from support.shell import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
SCRIPT = """
import resource
import numpy as np
from malleable.live.workers import Pool

DATA = np.zeros(20_000_000)
TEXT = b"x" * 50_000_000

def element(i):
    return float(DATA[i]), len(TEXT)

def write(i):
    DATA[i] += 1.0
    return float(DATA[i])

with Pool(2) as pool:
    assert pool.submit(element, 3).result() == (0.0, 50_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    futures = [pool.submit(element, i) for i in range(10)]
    assert [future.result() for future in futures] == [(0.0, 50_000_000)] * 10
    DATA[3] = 5.0
    changed = pool.submit(element, 3)
    DATA[3] = 7.0
    assert changed.result()[0] == 5.0
    assert pool.submit(element, 3).result()[0] == 7.0
    DATA = np.ones(20_000_000)
    assert list(pool.map(element, range(40))) == [(1.0, 50_000_000)] * 40
    assert pool.submit(write, 0).result() == 2.0
    assert DATA[0] == 1.0
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def with_data(data):
    """A function that travels by value, with its data."""
    return lambda i: float(data[i])


def test_a_script_with_large_globals(tmp_path):
    """Arrays and bytes are seen as they were when a unit was submitted, and the parent's memory stays.

    (Here 160 MB are replaced by 160 others: no third copy is made.)
    """
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 220


class Sent:
    """A channel that notes what is sent."""

    def __init__(self):
        self.messages = []

    def send(self, _size, head, *_arguments):
        self.messages.append(pickle.loads(head))


def test_a_worker_is_sent_a_function_once():
    """The content travels with the first message of a worker only, and again after others took its place."""
    functions, channel = Functions(), Sent()
    worker = Worker(1, channel)
    data = [np.full(LARGE_BYTES // 8, float(i)) for i in range(LARGE_KEPT + 1)]
    large = [functions.pack(with_data(each), "it") for each in data]
    small = functions.pack(abs, "abs")
    for function in [large[0], small, large[0], small]:
        worker.send(function, [])
    assert [content is not None for _, content, _ in channel.messages] == [True, True, False, False]
    assert isinstance(channel.messages[0][1], InFile)
    assert isinstance(channel.messages[1][1], InMessage)
    for function in [*large[1:], large[0], small]:
        worker.send(function, [])
    assert [content is not None for _, content, _ in channel.messages[4:]] == [True] * (LARGE_KEPT + 1) + [
        False
    ]


def test_functions_of_one_content_are_one():
    """Packing the same content again gives what there is; one number that differs makes another function."""
    functions, data = Functions(), np.arange(1_000_000.0)
    first = functions.pack(with_data(data), "it")
    assert functions.pack(with_data(data.copy()), "it") is first
    data[-1] = 0.0
    assert functions.pack(with_data(data), "it").key != first.key
    swapped = data.copy()
    swapped[[1, 2]] = swapped[[2, 1]]
    assert functions.pack(with_data(swapped), "it").key != functions.pack(with_data(data), "it").key


def test_many_large_functions():
    """More of them than there may be files travel in messages; all give what they should."""
    with Pool(2) as pool:
        data = [np.full(LARGE_BYTES // 8, float(i)) for i in range(MOST_FILES + 8)]
        futures = [pool.submit(with_data(each), i) for i, each in enumerate(data)]
        assert open_files() < MOST_FILES + 60
        assert [future.result() for future in futures] == [float(i) for i in range(len(data))]


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def add_one(data):
    data += 1.0
    return float(data[0])


def test_what_a_unit_changes_is_not_seen_by_the_next():
    """Anything but a plain function is made afresh for each unit, from a file as from a message."""
    with Pool(1) as pool:
        large = functools.partial(add_one, np.zeros(LARGE_BYTES // 4))
        assert [pool.submit(large).result() for _ in range(3)] == [1.0, 1.0, 1.0]
        assert large.args[0][0] == 0.0


def test_files_are_closed():
    """A pool that has ended leaves no file open."""
    before = open_files()
    with Pool(1) as pool:
        assert pool.submit(with_data(np.ones(1_000_000)), 3).result() == 1.0
    del pool
    assert open_files() <= before
