"""The Executor as its users see it, and as the broker sees it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from itertools import count

import pytest

from malleable.errors import ExecutionError, ParameterError
from malleable.live import Executor
from malleable.live.broker import embedded
from malleable.live.broker.broker import RefusedError
from malleable.live.broker.status import status
from malleable.live.core.events import CoresChanged
from support import pool_units as units
from support.embedded_brokers import embedded_broker, jobs_of
from support.living import fork_servers, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")


@pytest.fixture
def broker():
    with embedded_broker(4) as made:
        yield made


@contextmanager
def released(*folders):
    """In the end let all held units go, also when a test fails: an Executor waits for its units."""
    try:
        yield
    finally:
        for folder in folders:
            (folder / "go").touch()


def let_go(folder, *numbers):
    for number in numbers:
        (folder / f"go-{number}").touch()
        wait_until((folder / f"ended-{number}").exists, f"end of unit {number}")


# As users know it.


def test_results_come_as_from_any_executor(broker):
    """`submit`, `map` in order with several inputs, `as_completed`, lambdas and closures, `with`."""
    factor = 3
    with Executor("sweep", weight=2.0) as executor:
        assert executor.submit(pow, 2, 10).result() == 1024
        assert executor.submit(int, "ff", base=16).result() == 255
        assert list(executor.map(pow, range(20), [2] * 20)) == [x**2 for x in range(20)]
        assert list(executor.map(lambda x: factor * x, range(50))) == [3 * x for x in range(50)]
        futures = [executor.submit(units.square, x) for x in range(10)]
        assert sorted(future.result() for future in as_completed(futures)) == [x * x for x in range(10)]
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(units.square, 1)


def test_map_reads_its_input_as_outcomes_are_taken(broker):
    """An endless input is fine: only a window of it is read ahead."""
    read = count()
    with Executor() as executor:
        outcomes = executor.map(units.square, (next(read) for _ in iter(int, 1)))
        assert [next(outcomes) for _ in range(5)] == [0, 1, 4, 9, 16]
        outcomes.close()
        assert next(read) < 1000


def test_errors_are_those_of_the_units(broker):
    """An error keeps its type, its message and the worker's traceback; the others go on."""
    with Executor() as executor:
        futures = [executor.submit(units.reciprocal, x) for x in (2, 0, 4)]
        with pytest.raises(ZeroDivisionError, match="division by zero") as raised:
            futures[1].result()
        assert "in reciprocal" in str(raised.value.__cause__)
        assert [futures[0].result(), futures[2].result()] == [0.5, 0.25]


def test_what_cannot_be_sent_is_said_clearly(broker):
    """An argument, a function or a result that cannot be pickled: the future says which, and what to do."""
    with Executor() as executor:
        argument = executor.submit(units.square, threading.Lock()).exception()
        result = executor.submit(units.lock).exception()
    assert isinstance(argument, ExecutionError)
    assert "an argument of square cannot be sent to a worker" in str(argument)
    assert "open them in the unit" in str(argument)
    assert "the result, a lock, cannot be sent back" in str(result)


def test_units_can_be_cancelled(broker, tmp_path):
    """Those that wait are cancelled, those in hand are not; `shutdown` can cancel the rest."""
    executor = Executor()
    futures = [executor.submit(units.held, tmp_path, i) for i in range(8)]
    wait_until(lambda: units.running(tmp_path) == 4, "four units")
    assert futures[7].cancel()
    assert not futures[0].cancel()
    with pytest.raises(FutureTimeoutError):
        futures[0].result(timeout=0.01)
    executor.shutdown(wait=False, cancel_futures=True)
    (tmp_path / "go").touch()
    assert [future.result() for future in futures[:4]] == [0, 1, 2, 3]
    for future in futures[4:]:
        with pytest.raises(CancelledError):
            future.result()
    wait_until(lambda: not jobs_of(broker), "the end of the job")


def test_many_threads_may_submit(broker):
    """Threads that submit and pause: no unit is ever forgotten by a pool that leaves and joins."""

    def client(seed):
        total = 0
        for i in range(30):
            total += executor.submit(units.square, i).result()
            if i % 10 == seed:
                time.sleep(0.11)  # about as long as a pool waits before it leaves
        return total

    with Executor() as executor, ThreadPoolExecutor(4) as threads:
        assert list(threads.map(client, range(4))) == [sum(x * x for x in range(30))] * 4


def test_an_executor_that_is_dropped_ends(broker, tmp_path):
    """Without `shutdown`, its units are done, then its processes end and its job leaves."""
    future = Executor().submit(units.held, tmp_path, 0)
    wait_until(lambda: units.running(tmp_path) == 1, "the unit")
    gc.collect()
    (tmp_path / "go").touch()
    assert future.result() == 0
    wait_until(lambda: not jobs_of(broker), "the end of the job")
    wait_until(lambda: not fork_servers(), "the end of its processes")


def test_wrong_arguments_are_said_clearly(broker):
    """A weight, a number of threads or a promise of memory that cannot be: an error at once."""
    for wrong in ({"weight": 0.0}, {"threads": 0}, {"units": -1.0}, {"memory": -5.0}, {"job_class": ""}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            Executor(**wrong)
    assert not jobs_of(broker)


def test_a_job_that_is_refused():
    """What the broker does not accept is an error of the Executor, when it is made."""
    with embedded_broker(2, unknown=None), pytest.raises(RefusedError, match="there is no class 'sweep'"):
        Executor("sweep")


# As the broker sees it.


def test_idle_executors_leave(broker):
    """An Executor is a job while it has units; without any it holds no core, and comes back with the next."""
    with Executor("sweep") as executor:
        (job,) = jobs_of(broker)
        assert job.startswith("sweep-")
        assert executor.width == 4
        wait_until(lambda: not jobs_of(broker), "the first leave")
        assert executor.width == 0
        assert list(executor.map(units.square, range(3))) == [0, 1, 4]
        (again,) = jobs_of(broker)
        assert again != job
        wait_until(lambda: not jobs_of(broker), "the second leave")
    assert broker.state()["ended"]["finished"] == 1


def test_a_grant_is_in_force_when_units_end(broker, tmp_path):
    """Of two Executors the first gives two of its four cores, one with each unit that ends, to the second."""
    one_folder, two_folder = tmp_path / "one", tmp_path / "two"
    one_folder.mkdir()
    two_folder.mkdir()
    with Executor() as one, Executor() as two, released(one_folder, two_folder):
        first = [one.submit(units.held, one_folder, i) for i in range(6)]
        wait_until(lambda: units.running(one_folder) == 4, "four units")
        second = [two.submit(units.held, two_folder, i) for i in range(6)]
        wait_until(lambda: one.width == 2, "a narrower width")
        assert units.running(two_folder) == 0
        let_go(one_folder, 0)
        wait_until(lambda: units.running(two_folder) == 1, "the first core")
        let_go(one_folder, 1)
        wait_until(lambda: units.running(two_folder) == 2, "the second core")
        assert units.running(one_folder) == 2
        accounts = jobs_of(broker).values()
        wait_until(lambda: [a["in_use"] for a in jobs_of(broker).values()] == [2, 2], "both answers")
        assert [account["granted"] for account in accounts] == [2, 2]
        (one_folder / "go").touch()
        # The first one has no unit left: it leaves, and the second one gets all cores.
        wait_until(lambda: units.running(two_folder) == 4, "four units of the second")
        (two_folder / "go").touch()
        assert [future.result() for future in first + second] == [*range(6), *range(6)]


def test_no_more_units_than_cores(broker):
    """Two Executors with units of all lengths, on changing cores: never more at once than there are cores."""
    naps = [0.001 * (i * 7 % 30) for i in range(150)]
    found = []
    with Executor("a") as one, Executor("b", weight=3.0) as two:
        futures = [executor.submit(units.interval, nap) for nap in naps for executor in (one, two)]
        for cores in (2, 4, 1, 3, 4):
            time.sleep(0.1)
            broker.tell(CoresChanged(cores))
            state = broker.state()
            assert state["granted"] == sum(account["granted"] for account in state["jobs"].values())
        found = [future.result() for future in futures]
    edges = sorted([(start, 1) for start, _ in found] + [(end, -1) for _, end in found])
    under_way = most = 0
    for _, step in edges:
        under_way += step
        most = max(most, under_way)
    assert len(found) == 300
    assert 2 <= most <= 4


@pytest.fixture
def machine():
    """The embedded broker as users have it."""
    embedded.close()
    yield embedded.current().broker
    embedded.close()


def test_cores_of_this_machine_are_shared(machine):
    """Two Executors on real cores, sampled each 10 ms: units under way ≤ n, and in the end all were done."""
    with Executor("a") as one, Executor("b") as two:
        futures = [executor.submit(units.interval, 0.02) for _ in range(40) for executor in (one, two)]
        found = [future.result() for future in futures]
    first, last = min(start for start, _ in found), max(end for _, end in found)
    samples = [first + 0.01 * i for i in range(int((last - first) / 0.01))]
    under_way = [sum(start <= now < end for start, end in found) for now in samples]
    assert max(under_way) <= machine.scheduler.ledger.cores


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU cannot be divided")
def test_executors_have_cpus_of_their_own(machine, tmp_path):
    """While two Executors run, their workers are bound to disjoint sets of CPUs."""

    def cpus(number):
        return os.sched_getaffinity(int((tmp_path / f"pid-of-{number}").read_text()))

    cores = machine.scheduler.ledger.cores
    with Executor("a") as one, Executor("b") as two, released(tmp_path):
        futures = [one.submit(units.held, tmp_path, i) for i in range(cores)]
        wait_until(lambda: units.running(tmp_path) == cores, "units of the first")
        assert len(cpus(0)) == cores
        futures.append(two.submit(units.held, tmp_path, cores))
        wait_until(lambda: one.width < cores, "a narrower width")
        let_go(tmp_path, *range(1, cores))
        wait_until((tmp_path / f"started-{cores}").exists, "a unit of the second")
        assert not cpus(0) & cpus(cores)
        (tmp_path / "go").touch()
        assert [future.result() for future in futures] == list(range(cores + 1))


@pytest.mark.parametrize(
    ("options", "most"),
    [({"max_cores": 3}, 3), ({"max_workers": 2}, 2), ({"max_workers": 1, "threads": 2, "max_cores": 3}, 2)],
)
def test_it_takes_no_more_cores_than_it_says(broker, tmp_path, options, most):
    """Cores beyond `max_cores`, or beyond what its workers can use, are left to others."""
    with Executor("a", **options) as one, Executor("b") as two, released(tmp_path):
        one.submit(units.held, tmp_path, 0)
        wait_until(lambda: one.width == most, "all the cores that it takes")
        two.submit(units.held, tmp_path, 1)
        wait_until(lambda: two.width >= 4 - most, "those that it leaves")
        assert one.width <= most
    with pytest.raises(ParameterError, match="max_cores"):
        Executor("a", max_cores=0)


def test_at_width_0_no_unit_starts(broker, tmp_path):
    """Without cores an Executor is paused: the units in hand end, none starts until there are cores again."""
    with Executor() as executor, released(tmp_path):
        futures = [executor.submit(units.held, tmp_path, i) for i in range(6)]
        wait_until(lambda: units.running(tmp_path) == 4, "four units")
        broker.tell(CoresChanged(0))
        let_go(tmp_path, 0, 1, 2, 3)
        wait_until(lambda: next(iter(jobs_of(broker).values()))["in_use"] == 0, "a pause")
        assert executor.width == 0
        assert len(list(tmp_path.glob("started-*"))) == 4
        broker.tell(CoresChanged(2))
        (tmp_path / "go").touch()
        assert [future.result() for future in futures] == list(range(6))


def test_a_job_that_is_cancelled(broker, tmp_path):
    """`Broker.cancel`: units that wait are cancelled, those in hand end, the job leaves as cancelled."""
    with Executor() as executor, released(tmp_path):
        futures = [executor.submit(units.held, tmp_path, i) for i in range(6)]
        wait_until(lambda: units.running(tmp_path) == 4, "four units")
        broker.cancel(next(iter(jobs_of(broker))))
        wait_until(futures[5].cancelled, "a cancelled unit")
        (tmp_path / "go").touch()
        assert [future.result() for future in futures[:4]] == [0, 1, 2, 3]
        wait_until(lambda: not jobs_of(broker), "the end of the job")
        assert broker.state()["ended"]["cancelled"] == 1
        assert executor.submit(units.square, 5).result() == 25


@pytest.mark.parametrize(
    ("declared", "known"), [(None, 40.0), (100.0, 100.0)], ids=["a list", "a number that is declared"]
)
def test_progress_is_reported(broker, declared, known):
    """The broker knows how many units are done, and of how many: those of a list, or as declared."""
    reports = []
    with Executor(units=declared) as executor:
        for _ in executor.map(units.nap, [0.02] * 40):
            reports += [job["units"] for job in jobs_of(broker).values() if job["units"]]
    done = [units_done for units_done, _ in reports]
    assert done == sorted(done)
    assert 0 < done[-1] <= 40
    assert {units_known for units_done, units_known in reports if units_done} == {known}


def test_threads_take_cores(broker, tmp_path):
    """With two threads for each worker, four cores are two workers, and one core is still one worker."""
    with Executor(threads=2) as executor, released(tmp_path):
        futures = [executor.submit(units.held, tmp_path, i) for i in range(4)]
        wait_until(lambda: units.running(tmp_path) == 2, "two units")
        broker.tell(CoresChanged(1))
        let_go(tmp_path, 0)
        account = lambda: next(iter(jobs_of(broker).values()))  # noqa: E731 - read again and again
        wait_until(lambda: account()["in_use"] == 1, "one core in use")
        assert units.running(tmp_path) == 1
        assert executor.width == 1
        (tmp_path / "go").touch()
        assert [future.result() for future in futures] == list(range(4))
        assert set(executor.submit(units.blas_threads).result()) <= {2}


def test_the_same_order_again_is_answered(broker, tmp_path):
    """Wider and narrower faster than the pool looks: the last order is answered, so no core is lost."""
    with Executor() as one, Executor() as two, released(tmp_path):
        futures = [executor.submit(units.held, tmp_path, i) for i, executor in enumerate((one, two))]
        for cores in (3, 4) * 50:
            broker.tell(CoresChanged(cores))

        def settled():
            accounts = jobs_of(broker).values()
            return all(a["in_use"] == a["granted"] == a["told"] == 2 for a in accounts)

        wait_until(settled, "answers")
        (tmp_path / "go").touch()
        assert [future.result() for future in futures] == [0, 1]


def test_an_executor_that_waits_for_its_first_unit_is_one_job(broker):
    """An Executor that left because it had no unit yet, and came back with one, counts as one job."""
    for _ in range(3):
        with Executor() as executor:
            wait_until(lambda: not jobs_of(broker), "leaving of the idle Executor")
            assert executor.submit(units.square, 3).result() == 9
    wait_until(lambda: not jobs_of(broker), "end of the last Executor")
    assert status(broker)["ended"]["finished"] == status(broker)["cost"]["jobs"] == 3
