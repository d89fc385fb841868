"""The Executor beside Python's: time per empty unit, time until a change of grant is in force, joblib.

Machines are busy: all are timed in the same run, and the load stands in the last row. Cores come from the
broker of the process itself.
"""

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor

import joblib

import malleable.live.joblib  # noqa: F401 - makes joblib know the backend
from benchmarks.bench_pool import best, nothing, per_unit, seconds, started
from malleable.live import Executor
from malleable.live.broker import embedded
from malleable.live.core.events import PolicyChanged

NAP = 0.02
CHANGES = 20
TASKS = 5_000


def nap_until():
    """A unit that says when it started, by a clock that all processes share."""
    start = time.monotonic()
    time.sleep(NAP)
    return start


def handed_over():
    """Milliseconds until the first unit of a second job runs, on a core that the first one has to leave.

    The median and the longest; the first job has units of 20 ms on all cores. Cores are divided equally: how
    long a job waits for one should say how fast they change hands, not what a policy thinks of it.
    """
    times = []
    embedded.current().broker.tell(PolicyChanged("equi"))
    with Executor("first") as first, Executor("second") as second:
        second.submit(nap_until).result()  # a worker that has imported this
        for _ in range(CHANGES):
            futures = [first.submit(nap_until) for _ in range(40)]
            futures[4].result()
            asked = time.monotonic()
            times.append(second.submit(nap_until).result() - asked)
            for future in futures:
                future.cancel()
            futures[0].result()
            time.sleep(0.2)  # both leave
    return statistics.median(times) * 1e3, max(times) * 1e3


def taken_back():
    """Milliseconds from the last outcome of one job until another one has its cores."""
    times = []
    with Executor("first") as first, Executor("second") as second:
        for _ in range(5):
            futures = [first.submit(time.sleep, NAP) for _ in range(200)]
            second.submit(nothing).result()
            ended = time.monotonic()
            while first.width < embedded.current().broker.scheduler.ledger.cores:
                time.sleep(0.0005)
            times.append(time.monotonic() - ended)
            for future in futures:
                future.cancel()
            time.sleep(0.2)
    return statistics.median(times) * 1e3


def joined():
    """Milliseconds for an idle Executor to join the broker, carry out a unit, and answer."""
    with Executor() as executor:
        executor.submit(nothing).result()
        times = []
        for _ in range(10):
            time.sleep(0.15)
            times.append(seconds(lambda: executor.submit(nothing).result()))
    return statistics.median(times) * 1e3


def joblib_tasks(backend):
    """Milliseconds per empty task of joblib, with workers that are there."""
    with joblib.parallel_config(backend=backend):
        work = lambda: joblib.Parallel(n_jobs=2)(joblib.delayed(nothing)(i) for i in range(TASKS))  # noqa: E731
        work()
        return best(work, 3) / TASKS * 1e3


def run():
    os.environ["MALLEABLE_BROKER"] = "embedded"
    rows = []
    with ProcessPoolExecutor(2) as theirs:
        rows += [{"what": f"ms per unit, Python's, {how}", "value": t} for how, t in per_unit(theirs).items()]
    with Executor() as ours:
        rows += [{"what": f"ms per unit, {how}", "value": t} for how, t in per_unit(ours).items()]
    rows.append({"what": "ms for a unit of an idle Executor, which joins first", "value": joined()})
    middle, longest = handed_over()
    what = f"ms until a core of a job with units of {NAP * 1e3:g} is another's"
    rows.append({"what": f"{what}, median", "value": middle})
    rows.append({"what": f"{what}, longest of {CHANGES}", "value": longest})
    rows.append({"what": "ms until an idle job's core is another's", "value": taken_back()})
    rows += [
        {"what": f"ms per task of joblib, {backend}", "value": joblib_tasks(backend)}
        for backend in ("loky", "malleable")
    ]
    rows.append({"what": "ms until the first outcome", "value": started(Executor)})
    rows.append({"what": "load of the machine, last minute", "value": os.getloadavg()[0]})
    return rows
