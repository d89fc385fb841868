"""Worker processes: how many there are, what is said of those that die, and that none is left."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import time
from functools import partial
from threading import Lock

import pytest

import malleable
from malleable.errors import ExecutionError, ParameterError
from malleable.execution import worker_loop
from malleable.execution.progress_counters import ProgressCounters
from malleable.execution.tasks import spread
from malleable.execution.worker_processes import WorkerDiedError, WorkerPool, available, checked_workers
from support.living import alive, assert_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc")


def pid_of(_: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def collected(pool: WorkerPool) -> dict[int, object]:
    found = {}
    while pool.running:
        found.update(pool.finished())
    return found


def test_as_many_as_the_affinity_mask_allows():
    """By default there is a worker for each processor that this process may use, not for each there is."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert available() == 1
        with WorkerPool(pid_of, 4) as pool:
            assert len(set(collected(pool).values())) == 1
    finally:
        os.sched_setaffinity(0, before)
    assert available() == len(before)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers(workers):
    """There are never more workers than asked for, and none is left when the work is done."""
    with WorkerPool(pid_of, 9, workers) as pool:
        found = collected(pool)
    assert sorted(found) == list(range(9))
    assert 1 <= len(set(found.values())) <= workers
    assert alive(list(set(found.values()))) == []
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_wrong_workers(workers):
    with pytest.raises(ParameterError, match="workers must be a whole number of at least 1"):
        checked_workers(workers)
    with pytest.raises(ParameterError, match="workers"):
        malleable.simulate("paper", 16, load=0.25, jobs=1000, workers=workers)


def test_results_do_not_depend_on_the_workers():
    """One worker or three: the same numbers."""
    options = {"load": 0.25, "jobs": 2000, "replications": 3}
    one, three = (malleable.simulate("paper", 16, **options, workers=k) for k in (1, 3))
    assert one.cost == three.cost
    assert one.seeds == three.seeds


def test_workers_and_an_executor():
    """An executor has workers of its own."""
    with pytest.raises(ParameterError, match="exclude each other"):
        spread(print, [1], executor=object(), workers=2)


def die(signum: int, _: int) -> None:
    faulthandler.disable()  # pytest has it tell about every crash
    os.kill(os.getpid(), signum)
    time.sleep(60.0)


@pytest.mark.parametrize(
    ("signum", "hint"),
    [
        (signal.SIGKILL, "memory"),
        (signal.SIGSEGV, "compiled code crashed"),
        (signal.SIGABRT, "--interpreted"),
        (signal.SIGTERM, "ended from outside"),
        (40, "ended from outside"),
    ],
)
def test_signal_that_ended_a_worker_is_named(signum, hint):
    """A worker that dies by a signal is an error that says which, and the hint fits."""
    with pytest.raises(WorkerDiedError) as caught, WorkerPool(partial(die, signum), 2, 2) as pool:
        collected(pool)
    name = "signal 40" if signum == 40 else signal.Signals(signum).name
    assert caught.value.problem == f"a worker process died: {name}"
    assert hint in caught.value.hint
    assert multiprocessing.active_children() == []


def test_worker_that_exits():
    with pytest.raises(WorkerDiedError, match="status 3"), WorkerPool(lambda _: os._exit(3), 1) as pool:
        collected(pool)


class Odd(Exception):  # noqa: N818 - a stranger's
    """An error that cannot be made again from its arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def raise_it(what, position):
    raise what if position == 0 else SystemExit(f"task {position}")


@pytest.mark.parametrize(
    ("what", "kind"), [(KeyError("x"), KeyError), (Odd(1, 2), ExecutionError), (SystemExit(3), SystemExit)]
)
def test_errors_travel(what, kind):
    """What a task raises is raised here, with the traceback of where it was raised; then all workers end."""
    with pytest.raises(kind) as caught, WorkerPool(partial(raise_it, what), 1) as pool:
        collected(pool)
    assert "raise_it" in str(caught.value.__cause__)
    assert multiprocessing.active_children() == []


def test_outcome_that_cannot_travel():
    with (
        pytest.raises(ExecutionError, match="cannot be handed over"),
        WorkerPool(lambda _: Lock(), 1) as pool,
    ):
        collected(pool)


def orphan(pipe, told: bool) -> None:
    """Start a pool and die without a word; `told` is whether the kernel tells of a death."""
    if not told:
        worker_loop._killed_by_the_kernel = lambda: False
    pool = WorkerPool(lambda _: time.sleep(600.0), 2, 2)
    pipe.send([worker.process.pid for worker in pool._busy])
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("told", [True, False], ids=["told by the kernel", "looking at the parent"])
def test_workers_end_with_a_parent_that_is_killed(told):
    """With a signal from the kernel or without one, no worker lives on."""
    ours, theirs = multiprocessing.Pipe()
    parent = multiprocessing.get_context("fork").Process(target=orphan, args=(theirs, told))
    parent.start()
    workers = ours.recv()
    assert len(workers) == 2
    parent.join()
    assert_gone(workers)


def test_parent_that_died_before_it_was_asked(monkeypatch):
    """A worker whose parent died before it could ask for the signal ends, too."""
    monkeypatch.setattr(worker_loop, "_killed_by_the_kernel", lambda: True)
    child = multiprocessing.get_context("fork").Process(target=worker_loop.end_with, args=(1 << 22,))
    child.start()
    child.join(30)
    assert child.exitcode == 1


def test_tasks_under_way_are_known():
    """`running` tells the tasks that workers have and no others; `run` keeps the outcome of each once."""
    kept, seen = [], []
    with WorkerPool(pid_of, 5, 2) as pool:
        assert pool.running == [0, 1]
        pool.run(lambda number, _: kept.append(number), lambda: seen.append(pool.running))
        assert pool.running == []
    assert sorted(kept) == [0, 1, 2, 3, 4]
    assert all(len(numbers) <= 2 and set(numbers) <= set(range(5)) for numbers in seen)


def test_progress_counters():
    """Totals take tasks that have not started to be like the others, and one wish stops all tasks."""
    counters = ProgressCounters(4)
    assert counters.totals() == (0, 0)
    counters.report(1, 5, 100)
    counters.report(3, 10, 200)
    assert counters.totals() == (15, 600)
    assert not counters.stopping
    counters.stop()
    assert counters.stopping
    assert counters.totals() == (15, 600)
