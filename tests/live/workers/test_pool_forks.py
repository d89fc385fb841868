"""Units that fork: the other process never answers for the worker."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from malleable.live.workers import BrokenUnitError, Pool
from malleable.live.workers.worker import ANSWER, RESULT
from support.living import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
WAYS = ("returns", "raises", "exits", "returns late", "forks again", "while it is pickled", "not at all")


class ForksWhenPickled:
    """A result whose pickling forks."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, ForksWhenPickled) and self.number == other.number

    __hash__ = None

    def __reduce__(self):
        os.fork()
        return ForksWhenPickled, (self.number,)


def forking(number, way, folder):
    """A unit that forks in some way; the process that it makes notes that it was there."""
    if way == "while it is pickled":
        return ForksWhenPickled(number)
    if way != "not at all" and os.fork() == 0:
        (folder / f"{number}-{os.getpid()}").touch()
        if way == "returns late":
            time.sleep(0.1)
        if way == "forks again":
            os.fork()
        if way == "raises":
            raise ValueError("of the child")
        if way == "exits":
            sys.exit(3)
        return "child"
    return number


def expected(number, way):
    return ForksWhenPickled(number) if way == "while it is pickled" else number


def gone(folder):
    """Whether all processes that units have made are gone, or wait for their parents to notice."""
    pids = [path.name.split("-")[1] for path in folder.iterdir()]
    return not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_fork_in_a_unit_answers_nothing(tmp_path):
    """Each future has the result of its own unit, in whatever way a process that a unit forked comes back."""
    with Pool(2) as pool:
        ways = [WAYS[number // 5 % len(WAYS)] if number % 5 == 0 else "not at all" for number in range(120)]
        futures = [pool.submit(forking, number, way, tmp_path) for number, way in enumerate(ways)]
        found = [future.result() for future in futures]
        assert found == [expected(number, way) for number, way in enumerate(ways)]
        assert pool.done == 120
    wait_until(lambda: gone(tmp_path), "the end of all processes")
    assert len(list(tmp_path.iterdir())) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_forks(tmp_path, seed):
    """Units fork at random, submitted and mapped, of any length, at any width: no result is another's."""
    rng = random.Random(seed)
    with Pool(rng.randint(1, 4)) as pool:
        for _ in range(15):
            pool.set_width(rng.randint(1, 4))
            ways = [rng.choice(WAYS) if rng.random() < 0.3 else "not at all" for _ in range(60)]
            rows = [range(60), ways, [tmp_path] * 60]
            if rng.random() < 0.5:
                found = list(pool.map(forking, *rows))
            else:
                found = [
                    future.result()
                    for future in [pool.submit(forking, *row) for row in zip(*rows, strict=True)]
                ]
            assert found == [expected(number, way) for number, way in enumerate(ways)]
    wait_until(lambda: gone(tmp_path), "the end of all processes")


def speak_falsely(number, pid):
    """Answer on the worker's own line, as another unit or process would, and then as is right.

    The fork server, which is to kill this worker, sleeps meanwhile: all that is said is there before the end.
    """
    import gc

    from malleable.live.workers.channel import Channel

    (channel,) = (each for each in gc.get_objects() if isinstance(each, Channel))
    os.kill(os.getppid(), signal.SIGSTOP)
    channel.send(ANSWER.pack(RESULT, pid or os.getpid(), number, 0.0) + b"N.")
    subprocess.Popen(["sh", "-c", f"sleep 0.1; kill -CONT {os.getppid()}"])
    time.sleep(0.02)  # the pool has heard this, and then hears the rest
    return "mine"


@pytest.mark.parametrize(("number", "pid"), [(7, 0), (0, 1)], ids=["of another unit", "of another process"])
def test_an_answer_that_is_not_awaited(number, pid, caplog):
    """It is no unit's result: the worker is ended, and its unit is run elsewhere, as if it had died."""
    with Pool(1) as pool:
        with pytest.raises(BrokenUnitError, match="unit 0"):
            pool.submit(speak_falsely, number, pid).result()
        assert pool.submit(abs, -2).result() == 2
    assert f"answered unit {number} for worker" in caplog.text
