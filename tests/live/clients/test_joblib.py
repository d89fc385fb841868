"""joblib's backend "malleable": results as from any backend, on the cores of the broker."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings
from itertools import count
from math import sqrt
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

import malleable.live.joblib
from malleable.errors import ExecutionError
from malleable.live import Executor
from malleable.live.broker.broker import RefusedError
from malleable.live.clients import joblib_backend
from malleable.live.core.events import CoresChanged
from support import joblib_tasks as tasks
from support import pool_units as units
from support.embedded_brokers import embedded_broker, jobs_of
from support.living import fork_servers, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")


CORES = 2


@pytest.fixture(scope="module")
def broker():
    """One for all tests, and with it workers that have imported what tasks need."""
    with pytest.MonkeyPatch.context() as patch, embedded_broker(CORES) as made:
        patch.setenv("MALLEABLE_BROKER", "embedded")
        patch.setattr(joblib_backend, "available", lambda: CORES)
        yield made
        end_kept_executors()


def end_kept_executors():
    for _, executor in joblib_backend._kept:
        executor.shutdown()
    joblib_backend._kept.clear()


@pytest.fixture
def malleably(broker):
    """The backend in use, and its broker without any job."""
    wait_until(lambda: not jobs_of(broker), "the end of the last test's jobs")
    with parallel_config(backend="malleable"):
        yield broker


def test_results_are_in_order(malleably):
    """Small tasks, in batches, and long ones: the results are those of a loop, in its order."""
    assert Parallel(n_jobs=-1)(delayed(sqrt)(i) for i in range(2000)) == [sqrt(i) for i in range(2000)]
    naps = [0.02 * (i % 3) for i in range(20)]
    assert Parallel(n_jobs=-1)(delayed(units.nap)(nap) for nap in naps) == naps
    assert Parallel(n_jobs=-1)(delayed(lambda x: -x)(i) for i in range(5)) == [0, -1, -2, -3, -4]
    assert Parallel(n_jobs=-1)([]) == []


def test_calls_are_jobs(malleably):
    """A call is a job of the broker while it runs, by the class and weight that are asked for."""
    seen = []

    def inputs():
        for i in range(40):
            seen.append(malleably.state())
            yield delayed(units.nap)(0.01 * (i > 0))

    with parallel_config(backend="malleable", job_class="search", weight=3.0):
        Parallel()(inputs())
    jobs = {name for state in seen for name in state["jobs"]}
    assert {name.split("-")[0] for name in jobs} == {"search"}
    assert max(account["granted"] for state in seen for account in state["jobs"].values()) == CORES
    wait_until(lambda: not jobs_of(malleably), "the end of the job")


def test_without_n_jobs_all_cores_are_asked_for(malleably):
    """`n_jobs` is -1 if nothing is said, and what a caller slices its work by is the number of CPUs."""
    assert joblib.effective_n_jobs(-1) == CORES
    assert joblib.effective_n_jobs(-2) == CORES - 1
    assert joblib.effective_n_jobs(3) == 3
    assert joblib.effective_n_jobs(1) == 1
    assert os.getpid() not in Parallel()(delayed(tasks.pid_after)(0.01) for _ in range(8))
    with pytest.raises(ValueError, match="no meaning"):
        Parallel(n_jobs=0)(delayed(sqrt)(i) for i in range(2))


def test_n_jobs_bounds_the_tasks_under_way(malleably):
    """`n_jobs=2` has two tasks at a time, however many cores are granted; `n_jobs=1` none in a worker."""
    malleably.tell(CoresChanged(4))
    intervals = Parallel(n_jobs=2)(delayed(units.interval)(0.02) for _ in range(12))
    edges = sorted([(start, 1) for start, _ in intervals] + [(end, -1) for _, end in intervals])
    assert max(np.cumsum([step for _, step in edges])) == 2
    malleably.tell(CoresChanged(CORES))
    assert set(Parallel(n_jobs=1)(delayed(tasks.pid_after)(0.0) for _ in range(3))) == {os.getpid()}


def test_workers_are_used_again(malleably):
    """The next call has the same worker processes; an idle backend is no job."""
    first = set(Parallel()(delayed(tasks.pid_after)(0.05) for _ in range(8)))
    wait_until(lambda: not jobs_of(malleably), "the end of the job")
    again = set(Parallel()(delayed(tasks.pid_after)(0.05) for _ in range(8)))
    assert first & again


def test_few_sets_of_options_are_kept(malleably):
    """Calls with ever new options leave no more Executors behind than a few: threads and fork servers end.

    The options that were used last still have their workers.
    """

    def managers():
        return [thread for thread in threading.enumerate() if thread.name == "malleable-pool"]

    end_kept_executors()
    wait_until(lambda: not managers(), "the end of what other tests have left")
    for number in range(joblib_backend.MOST_KEPT + 3):
        with parallel_config(backend="malleable", job_class=f"class-{number}"):
            last = set(Parallel()(delayed(tasks.pid_after)(0.01) for _ in range(4)))
    assert len(joblib_backend._kept) == joblib_backend.MOST_KEPT
    wait_until(lambda: len(managers()) == joblib_backend.MOST_KEPT, "the end of the others' threads")
    wait_until(lambda: len(fork_servers()) <= joblib_backend.MOST_KEPT, "the end of their fork servers")
    with parallel_config(backend="malleable", job_class=f"class-{number}"):
        assert last & set(Parallel()(delayed(tasks.pid_after)(0.05) for _ in range(8)))


def test_errors_are_raised_and_the_rest_is_aborted(malleably):
    """The first error is raised, with its traceback; tasks in hand are ended, and the next call works."""
    start = time.monotonic()
    with pytest.raises(ValueError, match="three") as raised:
        Parallel()(delayed(tasks.fail_or_sleep)(i, 600.0) for i in (0, 3, 1, 2))
    assert "in fail_or_sleep" in str(raised.value.__cause__)
    assert time.monotonic() - start < 300.0
    assert Parallel()(delayed(tasks.reciprocal)(i) for i in (1, 2, 4)) == [1.0, 0.5, 0.25]
    with Parallel() as parallel:  # a context that goes on after an error
        with pytest.raises(ZeroDivisionError):
            parallel(delayed(tasks.reciprocal)(i) for i in range(4))
        assert parallel(delayed(tasks.reciprocal)(i) for i in (1, 2)) == [1.0, 0.5]


def test_what_cannot_be_sent_is_said_clearly(malleably):
    """A task that cannot be pickled is an error that says so."""
    with pytest.raises(ExecutionError, match=r"a task cannot be sent to a worker: .*lock"):
        Parallel()(delayed(id)(threading.Lock()) for _ in range(2))


def test_a_broker_that_refuses(malleably, monkeypatch):
    """A job that the broker does not take, also in the middle of a call, is an error of the call."""
    real, calls = Executor.submit, count()

    def submit(executor, *what):
        if next(calls) > 5:
            raise RefusedError("no more jobs")
        return real(executor, *what)

    monkeypatch.setattr(Executor, "submit", submit)
    with pytest.raises(RefusedError, match="no more jobs"):
        Parallel()(delayed(units.nap)(0.01) for _ in range(50))


def test_an_input_that_raises(malleably):
    """An error of the input is raised as it is."""

    def inputs():
        yield delayed(sqrt)(1)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        Parallel()(inputs())


def test_a_task_that_takes_too_long(malleably):
    """A `timeout` is raised, and the task is ended."""
    with pytest.raises(multiprocessing.TimeoutError):
        Parallel(timeout=0.1)(delayed(units.nap)(600.0) for _ in range(2))


@pytest.mark.parametrize("return_as", ["generator", "generator_unordered"])
def test_generators(malleably, return_as):
    """Results as they come: in order, or in that of their completion; one dropped early is ended."""
    found = Parallel(return_as=return_as)(delayed(units.nap_square)(i) for i in range(100))
    found = list(found) if return_as == "generator" else sorted(found)
    assert found == [i * i for i in range(100)]
    outcomes = Parallel(return_as=return_as)(delayed(units.nap)(0.01) for i in range(1000))
    assert next(outcomes) == 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib's, of results that are not used
        del outcomes
        gc.collect()
    wait_until(lambda: not jobs_of(malleably), "the end of the job")
    assert Parallel()(delayed(sqrt)(i) for i in (4, 9)) == [2.0, 3.0]


@pytest.mark.parametrize(
    "options",
    [{}, {"backend": "malleable"}, {"prefer": "threads"}, {"require": "sharedmem"}],
    ids=["as it is", "by name", "threads", "shared memory"],
)
def test_nested_calls_run_in_sequence(malleably, options):
    """A parallel call inside a task uses the task's core, and no other process."""
    for pid, places in Parallel()(delayed(tasks.nested)(4, **options) for _ in range(4)):
        assert pid != os.getpid()
        assert places == {pid}


def test_calls_from_several_threads(malleably):
    """Calls that overlap have Executors of their own; an error of one ends nothing of another."""
    found = {}

    def call(name, count):
        with parallel_config(backend="malleable"):
            try:
                found[name] = Parallel()(delayed(tasks.fail_or_sleep)(i, 0.02) for i in range(4, count))
                Parallel()(delayed(tasks.fail_or_sleep)(i, 0.02) for i in range(count - 25))
            except ValueError as error:
                found[name] = str(error)

    threads = [threading.Thread(target=call, args=(name, n)) for name, n in (("good", 27), ("bad", 30))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == {"good": list(range(4, 27)), "bad": "three"}


def test_large_arrays_are_shared(malleably, tmp_path):
    """An array that many tasks use is mapped from one file, read-only; the file goes with the call."""
    large, small = np.arange(300_000.0), np.arange(10.0)
    options = {"temp_folder": str(tmp_path), "max_nbytes": "1M"}
    found = Parallel(**options)(delayed(tasks.place_of)(large) for _ in range(10))
    assert {total for total, _, _ in found} == {large.sum()}
    (file,) = {file for _, file, _ in found if file}
    assert Path(file).is_relative_to(tmp_path)
    assert [writeable for _, file, writeable in found if file] == [False] * sum(bool(f) for _, f, _ in found)
    assert not list(tmp_path.iterdir())
    found = Parallel(**options)(delayed(tasks.place_of)(small) for _ in range(4))
    assert found == [(45.0, None, True)] * 4
    found = Parallel(max_nbytes=None)(delayed(tasks.place_of)(large) for _ in range(4))
    assert found == [(large.sum(), None, True)] * 4


def test_arrays_that_are_sent_once_are_not_kept(malleably, tmp_path):
    """A stream of large arrays leaves no files: only what is sent again is shared."""
    found = Parallel(temp_folder=str(tmp_path))(
        delayed(tasks.place_of)(np.full(200_000, float(i))) for i in range(12)
    )
    assert found == [(200_000.0 * i, None, True) for i in range(12)]


def test_killed_workers_lose_no_result(malleably, tmp_path):
    """A task whose worker is killed is run again."""
    assert Parallel()(delayed(units.die)(tmp_path, 2) for _ in range(1)) == [3]


@pytest.mark.slow  # a search runs in the quick tests, on the page about scikit-learn
def test_grid_search_of_scikit_learn(malleably):
    """`GridSearchCV(n_jobs=-1)` finds exactly what the sequential search finds, forests inside included."""
    pytest.importorskip("sklearn")
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import GridSearchCV

    X, y = make_classification(n_samples=300, n_features=500, random_state=0)
    grid = {"n_estimators": [3, 6]}
    searches = [
        GridSearchCV(RandomForestClassifier(random_state=0, n_jobs=inside), grid, cv=2, n_jobs=n_jobs)
        for n_jobs, inside in ((1, 1), (-1, 2))
    ]
    with parallel_config(backend="sequential"):
        searches[0].fit(X, y)
    searches[1].fit(X, y)
    one, other = (search.cv_results_ for search in searches)
    timed = {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"}
    assert one.keys() == other.keys()
    for key in one.keys() - timed:
        assert list(one[key]) == list(other[key]), key
    assert searches[0].best_params_ == searches[1].best_params_
    assert (searches[0].predict(X) == searches[1].predict(X)).all()


def test_one_import_registers_it():
    """In a fresh process `import malleable.live.joblib` is all there is to do, and the process ends."""
    script = (
        "import joblib, malleable.live.joblib\n"
        "with joblib.parallel_config(backend='malleable'):\n"
        "    print(joblib.Parallel(n_jobs=2)(joblib.delayed(pow)(i, 2) for i in range(5)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1, 4, 9, 16]\n", "")
    assert malleable.live.joblib.MalleableBackend.__module__.startswith("malleable.live.")
