"""The pool as an Executor: outcomes, errors, order, cancellation, and the end of it."""

from __future__ import annotations

import runpy
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, Executor, wait
from itertools import count, islice

import pytest

from malleable.errors import ExecutionError, ParameterError
from malleable.live.workers import Pool
from support import pool_units as units
from support.living import assert_gone, fork_servers, wait_until
from support.shell import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
SCRIPT = """
from dataclasses import dataclass
from malleable.live.workers import Pool

@dataclass
class Point:
    x: int

class OwnError(Exception):
    pass

def moved(point, by=1):
    return Point(point.x + by)

def fails():
    raise OwnError("mine")

pool = Pool(2)
assert pool.submit(moved, Point(3), by=4).result() == Point(7)
assert pool.submit(lambda: 5).result() == 5
try:
    pool.submit(fails).result()
except OwnError as error:
    assert error.args == ("mine",)
last = pool.submit(print, "printed by a worker")
"""


def test_is_an_executor():
    """Submit, map and shutdown do what those of `concurrent.futures` do."""
    with Pool(2) as pool:
        assert isinstance(pool, Executor)
        assert pool.submit(units.square, 7).result() == 49
        assert list(pool.map(pow, [2, 3, 4], [5, 2, 1])) == [32, 9, 4]
        assert pool.submit(int, "ff", base=16).result() == 255
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(units.square, 1)


def test_order_of_many_small_units():
    """Units that share messages come out in the order of the input, none lost and none twice."""
    with Pool(3) as pool:
        assert list(pool.map(units.square, range(3000))) == [x * x for x in range(3000)]
        assert pool.done == 3000


def test_small_units_share_messages_and_long_ones_do_not():
    """As many units make a message as take 10 ms, by the times seen; a long one at once makes it one."""
    with Pool(1) as pool:
        packed = pool_function(pool, units.square)
        assert pool._manager.waiting.times.batch(packed) > 1
        packed = pool_function(pool, units.nap, 0.006)
        assert pool._manager.waiting.times.batch(packed) == 1


def pool_function(pool, function, argument=1):
    """Run some units of a function; returns its packed form."""
    list(pool.map(function, [argument] * 40))
    return pool.pack(function)


def test_errors_arrive_as_they_were_raised():
    """An error keeps its type and message, and tells in its cause where in the worker it was raised."""
    with Pool(1) as pool:
        with pytest.raises(ValueError, match="invalid literal") as caught:
            pool.submit(int, "x").result()
        assert "Traceback" in str(caught.value.__cause__)
        with pytest.raises(SystemExit):
            pool.submit(sys.exit, 3).result()
        with pytest.raises(ZeroDivisionError):
            list(pool.map(divmod, [1, 1], [1, 0]))
        assert pool.submit(units.square, 2).result() == 4


def test_what_cannot_be_sent_fails_alone():
    """A function, argument, result or error that cannot be pickled is an error of its own future."""
    with Pool(1) as pool:
        for function, arguments, message in [
            (threading.Lock().acquire, (), "the function lock.acquire cannot be sent"),
            (units.square, (threading.Lock(),), "an argument of square cannot be sent"),
            (units.lock, (), "the result, a lock, cannot be sent back"),
            (units.raise_unreadable, (), "a task raised Unreadable: 1 and 2"),
        ]:
            future = pool.submit(function, *arguments)
            with pytest.raises(ExecutionError, match=message):
                future.result()
        assert pool.submit(units.square, 3).result() == 9


def test_map_reads_its_input_as_outcomes_are_taken():
    """An endless input is read a window ahead, no further; the window is what was asked for."""
    read = []
    with Pool(2) as pool:
        numbers = (read.append(i) or i for i in count())
        outcomes = pool.map(units.square, numbers, buffersize=5)
        assert len(read) == 5
        assert list(islice(outcomes, 10)) == [x * x for x in range(10)]
        assert len(read) == 15
        outcomes.close()
        with pytest.raises(ParameterError, match="buffersize"):
            pool.map(units.square, [1], buffersize=0)


def test_map_times_out(tmp_path):
    """A map that is given too little time says so, and its units that wait are cancelled."""
    with Pool(1) as pool:
        outcomes = pool.map(units.held, [tmp_path] * 3, range(3), timeout=0.2)
        with pytest.raises(TimeoutError):
            next(outcomes)
        (tmp_path / "go").touch()
    assert len(list(tmp_path.glob("ended-*"))) == 1


def test_cancelling_what_is_queued(tmp_path):
    """A queued unit can be cancelled and never starts; one that runs cannot."""
    with Pool(1) as pool:
        first, second = (pool.submit(units.held, tmp_path, i) for i in range(2))
        wait_until((tmp_path / "started-0").exists, "start of the first")
        assert second.cancel()
        assert not first.cancel()
        (tmp_path / "go").touch()
        assert first.result() == 0
    assert not (tmp_path / "started-1").exists()


def test_shutdown_that_cancels(tmp_path):
    """Shutdown with `cancel_futures` lets the unit in hand end, and cancels the others."""
    pool = Pool(1)
    futures = [pool.submit(units.held, tmp_path, i) for i in range(5)]
    wait_until((tmp_path / "started-0").exists, "start of the first")
    pool.shutdown(wait=False, cancel_futures=True)
    wait(futures[1:], timeout=10.0)
    (tmp_path / "go").touch()
    assert futures[0].result() == 0
    for future in futures[1:]:
        with pytest.raises(CancelledError):
            future.result(0)
    pool.shutdown()
    assert fork_servers() == []


def test_many_threads_submit_at_once():
    """Units of several threads are all carried out."""
    with Pool(2) as pool:
        futures = []
        threads = [
            threading.Thread(target=lambda: futures.extend(pool.submit(units.square, i) for i in range(200)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(future.result() for future in futures) == 4 * sum(i * i for i in range(200))


def test_large_arguments_and_results():
    """Megabytes travel both ways, though sockets take a part at a time."""
    with Pool(2) as pool:
        for found in pool.map(bytes, [b"x" * 5_000_000] * 4):
            assert len(found) == 5_000_000


def test_a_script_without_a_main_guard(tmp_path):
    """Functions, classes and errors of a script travel by value; its last unit runs although it ends."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "printed by a worker\n", "")


def test_without_cloudpickle(monkeypatch):
    """What is missing is named, with the way to install it."""
    from malleable.live.workers import by_value

    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ExecutionError, match=r"need cloudpickle, .*malleable\[live\]"):
        runpy.run_path(by_value.__file__)


def test_a_forgotten_pool_ends():
    """A pool that is neither used nor shut down ends its processes when it is collected."""
    pool = Pool(1)
    worker = pool.submit(units.pid_of).result()
    del pool
    assert_gone([worker])


@pytest.mark.parametrize("width", [-1, 1.5, True, "2"])
def test_wrong_widths(width):
    """A width is a whole number of at least 0."""
    with pytest.raises(ParameterError, match="a width must be a whole number"):
        Pool(width)
