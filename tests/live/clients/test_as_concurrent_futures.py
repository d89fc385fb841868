"""What Python's own tests claim of a `ProcessPoolExecutor`, claimed of ours: of the Executor and of its pool.

The claims are those of `test.test_concurrent_futures` of CPython; the tests are written anew.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Future,
    as_completed,
    wait,
)
from concurrent.futures.process import BrokenProcessPool

import pytest

from malleable.errors import ExecutionError, MalleableError, ParameterError, UnsupportedError
from malleable.live import Executor
from malleable.live.workers import Pool
from support import pool_units as units
from support.embedded_brokers import embedded_broker
from support.living import wait_until
from support.shell import environment, shown_on_terminal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")


@pytest.fixture
def broker():
    with embedded_broker(2) as made:
        yield made


def pool_of(**options):
    return Pool(options.pop("max_workers", 2), **options)


@pytest.fixture(params=[Executor, pool_of], ids=["Executor", "Pool"])
def make(request, broker):
    """What makes an executor on two cores."""
    return request.param


@pytest.fixture
def executor(make):
    with make() as made:
        yield made


# Submit and map.


def capture(*args, **kwargs):
    return args, kwargs


def test_keywords_of_any_name_are_those_of_the_function(executor):
    """`fn`, `self` and `function` may be keywords of the function; the function itself is no keyword."""
    found = executor.submit(capture, 1, self=2, fn=3, function=4).result()
    assert found == ((1,), {"self": 2, "fn": 3, "function": 4})
    with pytest.raises(TypeError):
        executor.submit(fn=capture, arg=1)
    with pytest.raises(TypeError):
        executor.submit()


def test_map_stops_at_an_error(executor):
    """Outcomes before an error are given, then the error, then nothing."""
    outcomes = executor.map(divmod, [1, 1, 1, 1], [2, 3, 0, 5])
    assert [next(outcomes), next(outcomes)] == [(0, 1), (0, 1)]
    with pytest.raises(ZeroDivisionError):
        next(outcomes)
    with pytest.raises(StopIteration):
        next(outcomes)


def test_map_with_any_chunksize(executor):
    """The outcomes are the same whatever the chunks; a chunk of less than one is refused."""
    expected = [pow(x, x) for x in range(40)]
    for chunksize in (1, 6, 50):
        assert list(executor.map(pow, range(40), range(40), chunksize=chunksize)) == expected
    for wrong in ({"chunksize": 0}, {"chunksize": -1}, {"buffersize": 0}, {"buffersize": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            executor.map(pow, [1], [1], **wrong)


def test_map_without_input(executor):
    """Nothing in, nothing out; the shortest input counts."""
    assert list(executor.map(pow, [], [])) == []
    assert list(executor.map(pow, [2, 3], [2])) == [4]


class Plain:
    """Something that can be referred to weakly."""

    def __init__(self, number=0):
        self.number = number

    def method(self):
        return None


def test_map_keeps_no_result_alive(executor):
    """A result that its taker drops is gone, also the last one of a map."""
    for outcome in executor.map(Plain, range(10)):
        found = weakref.ref(outcome)
        del outcome
        wait_until(lambda found=found: found() is None, "the end of a result")


def test_callables_and_arguments_are_not_kept(executor):
    """Once a unit is done, neither its function nor its arguments are referred to."""
    thing = Plain()
    gone = weakref.ref(thing)
    executor.submit(thing.method).result()
    executor.submit(capture, thing).result()
    del thing
    gc.collect()
    assert gone() is None


def test_the_traceback_names_the_line(executor):
    """The cause of an error shows the worker's traceback, and reading it in `except` shows both."""
    with pytest.raises(ZeroDivisionError) as raised:
        executor.submit(units.reciprocal, 0).result()
    assert "return 1 / x" in str(raised.value.__cause__)


# Waiting.


def test_wait_for_the_first(executor, tmp_path):
    """`wait` returns when one is done, with the others under way."""
    held, quick = executor.submit(units.held, tmp_path, 0), executor.submit(units.square, 6)
    try:
        done, not_done = wait([held, quick], timeout=60, return_when=FIRST_COMPLETED)
        assert (done, not_done) == ({quick}, {held})
        assert wait([held], timeout=0).not_done == {held}
    finally:
        (tmp_path / "go").touch()
    assert wait([held, quick], return_when=ALL_COMPLETED).done == {held, quick}


def test_wait_for_the_first_error(executor, tmp_path):
    """`wait` returns when one has failed, though others are under way; errors of before count, too."""
    held, failed = executor.submit(units.held, tmp_path, 0), executor.submit(units.reciprocal, 0)
    try:
        assert failed in wait([held, failed], timeout=60, return_when=FIRST_EXCEPTION).done
        assert wait([held, failed], timeout=60, return_when=FIRST_EXCEPTION).not_done == {held}
    finally:
        (tmp_path / "go").touch()


def test_as_completed(executor, tmp_path):
    """Each future once, also one that was done or is given twice; a time limit is kept."""
    ready: Future[int] = Future()
    ready.set_result(42)
    future = executor.submit(units.square, 2)
    assert set(as_completed([ready, future, future], timeout=60)) == {ready, future}
    held = executor.submit(units.held, tmp_path, 0)
    try:
        with pytest.raises(TimeoutError):
            list(as_completed([ready, held], timeout=0.01))
    finally:
        (tmp_path / "go").touch()


def test_callbacks_are_called_once_each(executor):
    """In their order, at once for a future that is done; what one raises does not stop the others."""
    seen = []

    def leaves(_):
        raise SystemExit

    future = executor.submit(units.nap, 0.05)
    future.add_done_callback(lambda done: seen.append(("first", done.result())))
    future.add_done_callback(leaves)
    wait_until(future.done, "the unit")
    assert executor.submit(units.square, 3).result(20) == 9
    future.add_done_callback(lambda done: seen.append(("last", done.result())))
    assert seen == [("first", 0.05), ("last", 0.05)]


# Shutdown.


def test_shutdown_may_come_twice(make):
    """And from several threads; after it no unit is taken, and there is no `map` either."""
    made = make()
    future = made.submit(units.square, 5)
    threads = [threading.Thread(target=made.shutdown) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    made.shutdown()
    assert future.result(0) == 25
    for call in (lambda: made.submit(units.square, 1), lambda: made.map(units.square, [1])):
        with pytest.raises(RuntimeError, match="after shutdown"):
            call()


def test_shutdown_that_does_not_wait(make, tmp_path):
    """Units that were submitted before are done, though `shutdown` returns at once."""
    made = make()
    future = made.submit(units.held, tmp_path, 7)
    made.shutdown(wait=False)
    assert not future.done()
    (tmp_path / "go").touch()
    assert future.result(20) == 7


def test_shutdown_that_cancels(make, tmp_path):
    """`cancel_futures` cancels all that have not begun, and each future is done when `shutdown` returns."""
    made = make()
    futures = [made.submit(units.held, tmp_path, i) for i in range(50)]
    wait_until(lambda: units.running(tmp_path) >= 1, "a unit")
    (tmp_path / "go").touch()
    made.shutdown(cancel_futures=True)
    assert all(future.done() for future in futures)
    assert any(future.cancelled() or isinstance(failure(future), CancelledError) for future in futures)


def failure(future):
    try:
        return future.exception(0)
    except CancelledError as error:
        return error


SCRIPT = """
import sys, time
from malleable.live import Executor

def say(text):
    time.sleep(0.1)
    print(text)
    sys.stdout.flush()

executor = Executor(broker="embedded")
executor.submit(say, "apple")
"""


def test_units_are_done_when_python_ends(tmp_path):
    """A script that ends, or raises, after its last submission has its units done."""
    for end, status in (("", 0), ("raise SystemExit(3)", 3)):
        (tmp_path / "script.py").write_text(SCRIPT + end)
        command = [sys.executable, "script.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (status, "apple\n", "")


# Faults: nothing hangs, and other units go on.


def misbehave(what):
    if what == "exit":
        sys.exit(1)
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "leave":
        os._exit(1)
    raise ValueError(what)


class Misbehaves:
    """What does something when it is pickled, or unpickled."""

    def __init__(self, when, what):
        self.when, self.what = when, what

    def __reduce__(self):
        if self.when == "pickled":
            misbehave(self.what)
        return misbehave, (self.what,)


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (capture, [Misbehaves("pickled", "error")], ExecutionError),
        (capture, [Misbehaves("unpickled", "error")], ValueError),
        (capture, [Misbehaves("unpickled", "exit")], SystemExit),
        (capture, [Misbehaves("unpickled", "leave")], BrokenProcessPool),
        (misbehave, ["crash"], BrokenProcessPool),
        (misbehave, ["leave"], BrokenProcessPool),
        (misbehave, ["exit"], SystemExit),
        (Misbehaves, ["pickled", "error"], ExecutionError),
        (Misbehaves, ["pickled", "exit"], ExecutionError),
        (Misbehaves, ["pickled", "crash"], BrokenProcessPool),
        (Misbehaves, ["unpickled", "error"], ExecutionError),
        (Misbehaves, ["unpickled", "exit"], ExecutionError),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:40],
)
def test_nothing_hangs(executor, function, arguments, expected):
    """Whatever a function, an argument or a result does when it travels is an error of its future."""
    future = executor.submit(function, *arguments)
    with pytest.raises(expected):
        future.result(60)
    assert executor.submit(units.square, 4).result(60) == 16


class RaisesWhenRead(Exception):  # noqa: N818 - a name like any other
    """An error whose unpickling leaves Python."""

    def __reduce__(self):
        return sys.exit, (1,)


def raise_it():
    raise RaisesWhenRead("mine")


def test_an_error_that_cannot_be_read(executor):
    """It is described, not sent: the future has an error of ours that names it."""
    with pytest.raises(ExecutionError, match="RaisesWhenRead: mine"):
        executor.submit(raise_it).result(20)


def test_errors_of_died_workers_are_those_of_python(executor):
    """`except BrokenProcessPool` and `BrokenExecutor` catch them; hints are not those of simulations."""
    future = executor.submit(misbehave, "leave")
    with pytest.raises(
        BrokenProcessPool, match=r"exited with status 1 each time \(does the unit call"
    ) as raised:
        future.result(60)
    assert isinstance(raised.value, BrokenExecutor)
    assert isinstance(raised.value, MalleableError)
    killed = executor.submit(units.die_if, True).exception(60)
    assert "max_workers=" in str(killed)
    assert "--workers" not in str(killed)


# Objects of a Manager.


def set_and_wait(one, two, box):
    one.set()
    box.append(os.getpid())
    return two.wait(60)


def lengthened(box):
    box.append(1)
    return len(box)


def test_objects_of_a_manager(executor):
    """Units use events and lists of a `multiprocessing.Manager` of the caller, also those that it let go."""
    with multiprocessing.get_context("spawn").Manager() as manager:
        one, two, box = manager.Event(), manager.Event(), manager.list()
        future = executor.submit(set_and_wait, one, two, box)
        assert one.wait(60)
        two.set()
        assert future.result(60) is True
        assert len(box) == 1
        assert box[0] != os.getpid()
        futures = [executor.submit(lengthened, manager.list([0] * i)) for i in range(4)]
        assert [future.result(60) for future in futures] == [1, 2, 3, 4]


# Options.


def set_state(*values):
    global STATE  # noqa: PLW0603 - as initializers do
    STATE = values


STATE: tuple[int, ...] = ()


def state():
    return STATE, os.getpid()


def test_each_worker_is_initialized_once(make):
    """`initializer(*initargs)` is called in each worker, before its first unit."""
    with make(initializer=set_state, initargs=(3, 4)) as made:
        found = [future.result() for future in [made.submit(state) for _ in range(20)]]
    assert {values for values, _ in found} == {(3, 4)}
    assert STATE == ()


INITIALIZED = """
from functools import partial
from malleable.live import Executor

table = None

def load(size):
    global table
    table = list(range(size))

def element(i):
    return helper(i)

def helper(i):
    return table[i]

with Executor(broker="embedded", initializer=load, initargs=(9,)) as executor:
    assert list(executor.map(element, range(9))) == list(range(9))
    assert executor.submit(partial(element, 3)).result() == 3
    assert executor.submit(lambda: table[-1]).result() == 8
assert table is None
"""


def test_an_initializer_of_a_script(tmp_path):
    """The globals that it assigns are seen by all functions of the script, as when processes are forked."""
    (tmp_path / "script.py").write_text(INITIALIZED)
    command = [sys.executable, "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def fail_to_start():
    raise ValueError("no database")


def test_an_initializer_that_fails(make, tmp_path):
    """It breaks the executor: units that wait fail, and no more are taken."""
    with make(initializer=fail_to_start) as made:
        futures = [made.submit(units.square, i) for i in range(3)]
        for future in futures:
            with pytest.raises(BrokenProcessPool, match="the initializer raised ValueError: no database"):
                future.result(20)
        assert "in fail_to_start" in str(futures[0].exception().__cause__)
        with pytest.raises(BrokenProcessPool, match="no database"):
            wait_until(lambda: not made.submit(units.square, 1), "an error")


def test_workers_end_after_so_many_units(make):
    """With `max_tasks_per_child` a worker carries out that many units, and another takes its place."""
    with make(max_workers=1, max_tasks_per_child=3) as made:
        pids = [future.result() for future in [made.submit(units.pid_of) for _ in range(11)]]
        pids += list(made.map(units.pid_of, range(4)))
    assert sorted(pids.count(pid) for pid in set(pids)) == [3] * 5


def test_options_that_cannot_be(make, broker):
    """Each is one line that names the option, or says what to write."""
    for wrong in (
        {"max_tasks_per_child": 0},
        {"max_tasks_per_child": "many"},
        {"initializer": 123},
        {"initializer": units.square, "initargs": (threading.Lock(),)},
        {"initializer": units.square, "initargs": 3},
        {"initializer": units.square, "initargs": "path"},
    ):
        with pytest.raises((ParameterError, ExecutionError), match=r"max_tasks|initializer|initargs"):
            make(**wrong)


@pytest.mark.parametrize(
    ("arguments", "options", "line"),
    [
        ([4], {}, r"job_class must be a name, got 4 \(write Executor\(max_workers=4\)\)"),
        ([], {"mp_context": None}, r"no option 'mp_context' \(leave it out"),
        ([], {"chunksize": 10}, r"no option 'chunksize' \(leave it out"),
        ([], {"max_worker": 4}, r"no option 'max_worker' \(did you mean 'max_workers'"),
        ([], {"weight": 0.0}, r"weight: must be greater than 1e-100, got 0.0 \(leave it out"),
        ([], {"weight": float("nan")}, "weight: must be a finite number, got nan"),
        ([""], {}, "job_class: must have at least 1 character, got ''"),
        ([], {"max_workers": 0}, "max_workers must be a whole number of at least 1, got 0"),
    ],
)
def test_what_to_write_instead(broker, arguments, options, line):
    """Options of other Executors, and values that cannot be: one short line says what to write."""
    with pytest.raises((ParameterError, UnsupportedError), match=line) as raised:
        Executor(*arguments, **options)
    assert "list --json" not in str(raised.value)


# Load.


def test_threads_that_submit_large_results(executor):
    """Megabytes travel while several threads submit: none is lost, and none waits for ever."""
    found = []

    def client(number):
        found.extend(len(future.result(60)) for future in [executor.submit(bytes, 10**6 + number)] * 3)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == sorted([10**6 + number for number in range(6)] * 3)


def test_workers_are_reused(executor):
    """Units that come one after the other are carried out by a worker that is there."""
    pids = set()
    for _ in range(10):
        pids.add(executor.submit(units.pid_of).result(20))
        time.sleep(0.001)
    assert len(pids) == 1


def test_starmap(executor):
    """`starmap` is `map` for arguments that come together, and reads its input as lazily."""
    assert list(executor.starmap(pow, [(1, 2), [3, 4]])) == [1, 81]
    endless = ((n, 2) for n in itertools.count())
    assert list(itertools.islice(executor.starmap(pow, endless, buffersize=2), 3)) == [0, 1, 4]


def test_repr(broker):
    """An Executor tells its class, its cores and how many units are done."""
    with Executor("counting") as executor:
        list(executor.map(len, ["a", "b"]))
        assert re.fullmatch(r"<Executor 'counting': \d+ cores, 2 units done>", repr(executor))


def test_progress_bar():
    """`progress=True` shows how many units are done and how fast, on a terminal, and nothing elsewhere."""
    script = (
        "import time; from malleable.live import Executor\n"
        "with Executor('t', broker='embedded', progress=True) as executor:\n"
        "    print(len(list(executor.map(time.sleep, [0.02] * 60))))\n"
    )
    there = {**environment(), "TERM": "xterm"}
    shown = shown_on_terminal(
        lambda stderr: subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=stderr, env=there
        )
    )
    assert re.search(r"[\d.]+ units/s", shown)
    assert re.search(r"\d+%", shown)
    quiet = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=60, check=True
    )
    assert (quiet.stdout, quiet.stderr) == ("60\n", "")
