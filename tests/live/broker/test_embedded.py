"""Joining: the broker of the machine, the one of this process, and what a seat there promises."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import types
from contextlib import ExitStack

import pytest

from malleable.errors import ExecutionError, ParameterError
from malleable.live.broker import embedded
from malleable.live.broker.broker import RefusedError
from malleable.live.broker.membership import JobRequest, join
from malleable.live.system.cpus import CpuSets
from support.broker_server import broker_thread
from support.embedded_brokers import embedded_broker, jobs_of
from support.living import wait_until

pytestmark = pytest.mark.usefixtures("alone")


class Orders(list):
    """The orders that a job got."""

    def __init__(self, **request):
        super().__init__()
        self.cancelled = threading.Event()
        self.seat = join(JobRequest(**request), self.append, self.cancelled.set)


def test_the_broker_of_this_process_grants_its_cpus():
    """Without any set-up, the first job has all CPUs of this process; when it ends, nothing is granted."""
    embedded.close()
    try:
        orders = Orders()
        cpus = CpuSets()
        assert orders[0].cores == cpus.total
        assert set(orders[0].cpus) == cpus.free
        broker = embedded.current().broker
        orders.seat.end("finished")
        wait_until(lambda: not jobs_of(broker), "end of the job")
    finally:
        embedded.close()


def test_jobs_share():
    """A second job gets cores when the first has given them back; each has a name of its own."""
    with embedded_broker(4) as broker:
        one, two = Orders(), Orders()
        assert one.seat.job != two.seat.job
        assert [order.cores for order in one] == [4, 2]
        one.seat.confirm(2, one[-1].number)
        wait_until(lambda: two and two[-1].cores == 2, "the second job's cores")
        two.seat.confirm(2, two[-1].number)
        two.seat.progress(3.0, 12.0)
        wait_until(lambda: jobs_of(broker)[two.seat.job]["units"] == (3.0, 12.0), "progress")
        two.seat.end("failed")
        two.seat.end("finished")
        wait_until(lambda: one[-1].cores == 4, "all cores again")
        assert broker.state()["ended"] == {"finished": 0, "failed": 1, "cancelled": 0, "lost": 0}


CONTAINER = """\
import os, time
from malleable.live.broker.membership import JobRequest, join
seat = join(JobRequest("x"), lambda order: None)
print(os.getpid(), seat.job, flush=True)
time.sleep(600)
"""


def test_processes_of_one_number_have_jobs_of_two_names():
    """Scripts in two containers that share a broker may both be process 1: none is refused for its name."""
    container = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*container, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets no process number its children anew")
    with broker_thread() as broker, ExitStack() as stack:
        there = {**os.environ, "MALLEABLE_BROKER": str(broker.path)}
        said = []
        for _ in range(2):
            script = [*container, sys.executable, "-c", CONTAINER]
            process = stack.enter_context(
                subprocess.Popen(script, env=there, stdout=subprocess.PIPE, encoding="utf-8")
            )
            stack.callback(process.kill)
            said.append(process.stdout.readline().split())
        assert [number for number, _ in said] == ["1", "1"]
        assert {job for _, job in said} == {*broker.jobs()}
        assert len(broker.jobs()) == 2


def test_what_makes_no_sense_is_an_error_of_who_joins():
    """A weight that is none, a memory that is not there, a name that is taken: errors, and nobody joins."""
    with embedded_broker(4, memory=1e9) as broker:
        with pytest.raises(ParameterError, match="weight"):
            Orders(weight=-1.0)
        with pytest.raises(RefusedError, match="memory"):
            Orders(memory=2e9)
        Orders(job="mine")
        with pytest.raises(RefusedError, match="there already"):
            Orders(job="mine")
        assert list(jobs_of(broker)) == ["mine"]


def test_answers_that_come_too_late_are_dropped():
    """A seat never raises: neither for an answer that an order has overtaken, nor when the broker is gone."""
    with embedded_broker(4) as broker:
        orders = Orders()
        orders.seat.confirm(4, 99)
        orders.seat.confirm(4, orders[-1].number)
        wait_until(lambda: jobs_of(broker)[orders.seat.job]["in_use"] == 4, "the answer")
    orders.seat.confirm(4, 1)
    orders.seat.progress(1.0)
    orders.seat.end("finished")


def test_cancelling_reaches_the_job():
    """`Broker.cancel` asks the client, who decides when the job has ended."""
    with embedded_broker(4) as broker:
        orders = Orders()
        broker.cancel(orders.seat.job)
        assert orders.cancelled.is_set()
        assert orders.seat.job in jobs_of(broker)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_broker_of_its_own():
    """A child neither uses its parent's broker nor waits for a lock of it, and its end changes nothing."""
    with embedded_broker(4) as broker:
        orders = Orders()
        with embedded._lock:  # as another thread of the parent may, at any moment
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    own = Orders()
                    status = 0 if own and embedded.current().broker is not broker else 2
                    own.seat.end("finished")
                    embedded.close()
                finally:
                    os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert list(jobs_of(broker)) == [orders.seat.job]


@pytest.fixture
def remote(monkeypatch):
    """A stand-in for the module that speaks to the broker of the machine; it answers as told."""
    made = types.ModuleType("malleable.live.broker.remote")
    made.asked, made.answer = [], None

    def connect(path, request, _on_order, _on_cancel, meanwhile):
        assert callable(meanwhile)
        made.asked.append((path, request.job_class))
        return made.answer

    made.connect = connect
    monkeypatch.setitem(sys.modules, "malleable.live.broker.remote", made)
    return made


def test_the_broker_of_the_machine_comes_first(remote, monkeypatch):
    """If it answers, the job is its; if it does not, the broker of this process is asked."""
    monkeypatch.delenv("MALLEABLE_BROKER")
    remote.answer = object()
    assert Orders().seat is remote.answer
    assert remote.asked == [(None, "python")]
    remote.answer = None
    with embedded_broker(2) as broker:
        seat = Orders(job_class="sweep").seat
        assert [*jobs_of(broker)] == [seat.job]
        assert seat.job.startswith(f"sweep-{os.getpid()}-")
    assert remote.asked[1:] == [(None, "sweep")]


def test_a_broker_can_be_insisted_on(remote, monkeypatch):
    """A path, given or in the environment, is the only one asked; if none answers there, that is an error."""
    monkeypatch.setenv("MALLEABLE_BROKER", "there.sock")
    with pytest.raises(ExecutionError, match=r"no broker answers on there\.sock \(start one with"):
        Orders()
    with pytest.raises(ExecutionError, match=r"here\.sock"):
        join(JobRequest(), print, broker="here.sock")
    assert [path for path, _ in remote.asked] == ["there.sock", "here.sock"]
    with embedded_broker(2) as broker:
        assert join(JobRequest(), lambda _: None, broker="embedded").job in jobs_of(broker)


def test_a_script_ends_with_a_job_that_has_not():
    """A process whose job never ended ends all the same."""
    module = "malleable.live.broker.membership"
    script = f"from {module} import *; join(JobRequest(), lambda order: print(order.cores > 0))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_importing_live_is_light():
    """`import malleable.live` loads neither NumPy nor the scheduler; the protocol loads no scheduler."""
    script = (
        "import sys, malleable.live, malleable.live.broker.membership;"
        "print([m for m in sys.modules if m.split('.')[0] in {'numpy', 'scipy', 'numba', 'pydantic', 'httpx'}"
        " or m in {'malleable.live.core.scheduler', 'malleable.live.workers'}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
