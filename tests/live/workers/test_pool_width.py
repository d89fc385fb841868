"""The width of a pool: how many units run at a time, after each change, and what is said of it."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import CancelledError

import pytest

from malleable.live.workers import Pool
from support import pool_units as units
from support.living import assert_gone, children, fork_servers, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")


def let_go(folder, *numbers):
    """Let units end, and wait until they have."""
    for number in numbers:
        (folder / f"go-{number}").touch()
        wait_until((folder / f"ended-{number}").exists, f"end of unit {number}")


def test_units_follow_the_width(tmp_path):
    """From 1 to 3 at once; from 3 to 2 as units end, and the freed cores are told of; 0 starts none."""
    told = []
    with Pool(1, on_width=told.append) as pool:
        futures = [pool.submit(units.held, tmp_path, i) for i in range(8)]
        wait_until(lambda: units.running(tmp_path) == 1, "the first unit")
        pool.set_width(3)
        wait_until(lambda: units.running(tmp_path) == 3, "three units")
        pool.set_width(1)
        assert pool.width == 1
        let_go(tmp_path, 0)
        wait_until(lambda: told == [3, 2], "two cores in use")
        let_go(tmp_path, 1)
        wait_until(lambda: told == [3, 2, 1], "one core in use")
        assert units.running(tmp_path) == 1
        pool.set_width(0)
        let_go(tmp_path, 2)
        wait_until(lambda: pool.width_in_use == 0, "a pause")
        assert len(list(tmp_path.glob("started-*"))) == 3
        pool.set_width(2)
        (tmp_path / "go").touch()
        assert [future.result() for future in futures] == list(range(8))
    assert told == [3, 2, 1, 0, 2]


def test_a_batch_that_takes_longer_than_expected_is_handed_back():
    """Small units whose times grow give their core back within a unit and 20 ms, not after the batch."""
    with Pool(1) as pool:
        list(pool.map(units.nap, [0.0] * 100))
        pool.set_width(0)
        futures = [pool.submit(units.nap, 0.3) for _ in range(30)]
        pool.set_width(1)
        wait_until(futures[1].running, "a batch of several units")
        pool.set_width(0)
        wait_until(lambda: pool.width_in_use == 0, "a pause")
        assert sum(future.done() for future in futures) <= 2
        # They cannot be cancelled one by one, as they count as running, but the end of the pool cancels them.
        assert not futures[1].cancel()
        pool.shutdown(wait=True, cancel_futures=True)
        with pytest.raises(CancelledError):
            futures[-1].result(0)
        with pytest.raises(CancelledError):
            futures[1].result(0)


def test_warm_workers_are_used_again():
    """A pool that narrows and widens soon has the same workers; one that stays narrow ends those too many."""
    with Pool(2, warm_seconds=60.0) as pool:
        before = {future.result() for future in [pool.submit(units.nap_pid, 0.2) for _ in range(2)]}
        pool.set_width(0)
        pool.set_width(2)
        after = {future.result() for future in [pool.submit(units.nap_pid, 0.2) for _ in range(2)]}
        assert len(before) == 2
        assert before == after
    with Pool(2, warm_seconds=0.0) as pool:
        pids = {future.result() for future in [pool.submit(units.nap_pid, 0.2) for _ in range(2)]}
        pool.set_width(1)
        wait_until(lambda: len(children(fork_servers()[0])) == 1, "end of one worker")
        pool.set_width(0)
        assert_gone(list(pids))
        pool.set_width(1)
        assert pool.submit(units.square, 4).result() == 16


def test_progress_is_told():
    """The number of units that have ended is told, never less than before, and in the end all of them."""
    told = []
    with Pool(2, on_progress=told.append) as pool:
        list(pool.map(units.square, range(100)))
    assert told == sorted(told)
    assert told[-1] == 100


def test_workers_run_on_the_given_cpus():
    """Workers that are there and those that come run on the CPUs that are set."""
    cpu = max(os.sched_getaffinity(0))
    with Pool(1) as pool:
        pool.submit(units.pid_of).result()
        pool.set_cpus({cpu})
        wait_until(lambda: pool.submit(units.affinity).result() == {cpu}, "CPU of the present worker")
        pool.set_width(3)
        for future in [pool.submit(units.affinity) for _ in range(6)]:
            assert future.result() == {cpu}


def test_libraries_use_one_thread():
    """BLAS uses as many threads in a worker as the pool says, one by default."""
    pytest.importorskip("threadpoolctl")
    for threads in (1, 2):
        with Pool(1, threads=threads) as pool:
            found = pool.submit(units.blas_threads).result()
            assert found
            assert set(found) <= {threads, 1}


def test_an_idle_pool_sleeps():
    """The thread of an idle pool is not woken, not even while a worker too many stays warm."""
    with Pool(2, warm_seconds=60.0) as pool:
        list(pool.map(units.square, range(10)))
        pool.set_width(1)
        wait_until(lambda: pool.width_in_use == 1, "the new width")
        woken = []
        pool._manager._follow = lambda: woken.append(1)
        time.sleep(0.3)
        assert woken == []
