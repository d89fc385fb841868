"""What every engine keeps to (`live.workers.contract`): a file of `live/engines` is tested by being there.

Units are held by files, so an engine's workers have to see the file system of this machine.
"""

from __future__ import annotations

import random
import sys
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress

import pytest

from malleable.errors import ExecutionError
from malleable.live.workers import BrokenUnitError
from malleable.live.workers.contract import Listeners, WorkerOptions, engines, start_workers
from support import pool_units as units
from support.living import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers run on Linux")


@pytest.fixture(params=engines())
def start(request):
    """Starts workers of each engine; one that cannot be had here is skipped, with what it says."""
    started = []

    def make(width=0, **listeners):
        try:
            workers = start_workers(request.param, WorkerOptions(), Listeners(**listeners))
        except ExecutionError as error:
            if request.param == "local":
                raise
            pytest.skip(str(error))
        started.append(workers)
        workers.set_width(width)
        return workers

    yield make
    for workers in started:
        workers.kill_workers()
        assert workers.join(60.0)


@contextmanager
def closing(workers):
    """Workers that are closed, and must end by themselves when their units have."""
    yield workers
    workers.close()
    assert workers.join(60.0)


def let_go(folder, number):
    (folder / f"go-{number}").touch()
    wait_until((folder / f"ended-{number}").exists, f"end of unit {number}")


def test_no_more_units_than_the_width(start, tmp_path):
    """Whatever widths are set: as units end, the number in hand falls to the last one, and is told truly."""
    rng, told = random.Random(1), []
    workers = start(on_width=lambda k: told.append((k, units.running(tmp_path))))
    futures, ended = [workers.submit(units.held, tmp_path, i) for i in range(40)], 0
    for _ in range(8):
        width = rng.randrange(4)
        before = units.running(tmp_path)
        workers.set_width(width)
        assert workers.width == width
        while ended < 30 and units.running(tmp_path) > width:
            let_go(tmp_path, min(_in_hand(tmp_path)))
            ended += 1
            assert units.running(tmp_path) <= max(width, before)
        wait_until(lambda width=width: told and told[-1][0] == width, f"width {width} in force")
        wait_until(lambda width=width: units.running(tmp_path) == width, f"{width} units")
        assert workers.width_in_use == width
    assert all(running <= width for width, running in told)
    (tmp_path / "go").touch()
    workers.set_width(3)
    assert [future.result(60.0) for future in futures] == list(range(40))


def _in_hand(folder):
    started = {int(path.name.partition("-")[2]) for path in folder.glob("started-*")}
    return started - {int(path.name.partition("-")[2]) for path in folder.glob("ended-*")}


def test_units_begin_in_their_order_and_are_done_once(start, tmp_path):
    """At width 1 units begin as they were submitted; each is carried out once, and counted."""
    (tmp_path / "go").touch()
    done = []
    with closing(start(1, on_progress=done.append)) as workers:
        futures = [workers.submit(units.held, tmp_path, i) for i in range(20)]
        assert [future.result(60.0) for future in futures] == list(range(20))
    begun = sorted(tmp_path.glob("started-*"), key=lambda path: path.stat().st_mtime_ns)
    assert [int(path.name.partition("-")[2]) for path in begun] == list(range(20))
    assert workers.done == 20
    assert done == sorted(done)
    assert done[-1] == 20


def test_errors_are_those_of_their_units(start):
    """A unit that raises has its own error, and one that cannot be sent says so; others are not touched."""
    with closing(start(2)) as workers:
        good, bad = workers.submit(units.square, 3), workers.submit(units.reciprocal, 0)
        unsent = workers.submit(units.square, units.lock())
        assert good.result(60.0) == 9
        with pytest.raises(ZeroDivisionError):
            bad.result(60.0)
        with pytest.raises(ExecutionError):
            unsent.result(60.0)


def test_a_lost_worker(start, tmp_path):
    """A unit whose worker dies is carried out again, a few times at most; no other unit is lost by it."""
    (tmp_path / "once").mkdir()
    (tmp_path / "always").mkdir()
    with closing(start(2)) as workers:
        others = [workers.submit(units.square, i) for i in range(20)]
        once = workers.submit(units.die, tmp_path / "once", 1)
        always = workers.submit(units.die, tmp_path / "always", 99)
        others += [workers.submit(units.square, i) for i in range(20)]
        assert once.result(60.0) == 2
        with pytest.raises(BrokenUnitError):
            always.result(60.0)
        assert [future.result(60.0) for future in others] == [i * i for i in [*range(20), *range(20)]]
    assert len(list((tmp_path / "always").iterdir())) == 4


def test_cancelled_units_do_not_begin(start, tmp_path):
    """What waits can be cancelled, one by one or all of it; what is in hand ends, and new units are taken."""
    with closing(start(1)) as workers:
        first = workers.submit(units.held, tmp_path, 0)
        wait_until(lambda: units.running(tmp_path) == 1, "the first unit")
        one, *rest = (workers.submit(units.held, tmp_path, i) for i in range(1, 10))
        assert one.cancel()
        workers.cancel_waiting()
        for future in rest:
            with pytest.raises(CancelledError):
                future.result(60.0)
        (tmp_path / "go").touch()
        assert first.result(60.0) == 0
        assert workers.submit(units.held, tmp_path, 10).result(60.0) == 10
    assert {path.name for path in tmp_path.glob("started-*")} == {"started-0", "started-10"}


def test_closing(start, tmp_path):
    """Closed, they take no unit, carry out those that there are, and end; idleness is told then."""
    idle = []
    workers = start(1, on_idle=lambda: idle.append(workers.idle))
    futures = [workers.submit(units.held, tmp_path, i) for i in range(3)]
    workers.close()
    with pytest.raises(RuntimeError):
        workers.submit(units.square, 1)
    assert not workers.join(0.0)
    (tmp_path / "go").touch()
    assert workers.join(60.0)
    assert [future.result(0.0) for future in futures] == [0, 1, 2]
    assert idle[-1]


def test_closing_may_cancel(start, tmp_path):
    """Closed and cancelled, they end when what is in hand has ended."""
    workers = start(1)
    futures = [workers.submit(units.held, tmp_path, i) for i in range(3)]
    wait_until(lambda: units.running(tmp_path) == 1, "the first unit")
    workers.close(cancel=True)
    (tmp_path / "go").touch()
    assert workers.join(60.0)
    assert futures[0].result(0.0) == 0
    assert all(future.cancelled() for future in futures[1:])


def test_killing(start, tmp_path):
    """Killed, they end at once; no future waits for ever, and nothing goes on."""
    workers = start(2)
    futures = [workers.submit(units.held, tmp_path, i) for i in range(5)]
    wait_until(lambda: units.running(tmp_path) == 2, "two units")
    workers.kill_workers()
    assert workers.join(60.0)
    for future in futures:
        with pytest.raises((CancelledError, ExecutionError)):
            future.result(60.0)
    (tmp_path / "go").touch()
    assert not list(tmp_path.glob("ended-*"))


def test_idleness_is_told_once(start):
    """It is told when no unit is left, after the time asked for, and not again until there was a unit."""
    told = []
    with closing(start(1, on_idle=lambda: told.append(workers.idle), idle_seconds=0.05)) as workers:
        for count in (1, 2):
            assert workers.submit(units.square, 2).result(60.0) == 4
            wait_until(lambda count=count: len(told) >= count, "idleness")
    assert all(told)


def test_a_window_keeps_workers_busy(start):
    """It is at least the width, and at least 1 without any, so that a map begins to read its input."""
    with closing(start()) as workers:
        function = workers.pack(units.square)
        assert workers.window(function) >= 1
        workers.set_width(3)
        wait_until(lambda: workers.width_in_use == 3, "three workers")
        assert workers.window(function) >= 3
        assert workers.submit_packed(function, (4,), {}).result(60.0) == 16


def test_listeners_that_fail_change_nothing(start):
    """An error of a listener is not an error of the workers."""

    def fail(*_):
        raise RuntimeError("a listener")

    with closing(start(1, on_width=fail, on_progress=fail, on_idle=fail)) as workers:
        with suppress(RuntimeError):
            workers.set_width(2)
        assert workers.submit(units.square, 5).result(60.0) == 25
