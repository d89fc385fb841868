"""A broker that runs is found, or named: when its files are removed, while it starts, and when it hangs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

import pytest

from malleable.errors import ExecutionError
from malleable.live.broker import broker_lock, http_client, membership, remote
from malleable.live.broker.broker_lock import alone
from malleable.live.broker.http_client import BrokenOffError, BrokerClient, NoBrokerError
from malleable.live.broker.membership import JobRequest, join
from malleable.live.broker.server.home import Home
from malleable.live.programs.job_folder import JobFolder
from malleable.live.programs.turns import CLIENTS
from malleable.live.system import unix_socket
from support.broker_server import broker_thread, serve_process, short_folder
from support.cli_checks import assert_one_line
from support.embedded_brokers import embedded_broker, jobs_of
from support.living import wait_until
from support.shell import malleable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the broker needs Linux")


@pytest.fixture(scope="module")
def broker():
    with serve_process("--no-bind", "--cores", "2") as made:
        yield made


@pytest.fixture
def stopped(broker):
    """The process of a broker that is stopped, and continued in the end."""
    broker.process.send_signal(signal.SIGSTOP)
    yield broker.process.pid
    broker.process.send_signal(signal.SIGCONT)


@pytest.fixture
def verb(broker, monkeypatch):
    """Run a verb, in this process, as a user of the broker does."""
    monkeypatch.setenv("MALLEABLE_HOME", str(broker.home))
    monkeypatch.setenv("MALLEABLE_STATE", str(broker.state))
    return malleable


@pytest.mark.parametrize("what", ["the folder", "broker.sock"])
def test_what_is_removed_is_made_anew(broker, verb, what):
    """Cleaners remove the socket, or all: `status` works, `serve` is refused, clients and token stay."""
    token, orders = (broker.home / "token").read_text(), []
    seat = remote.connect(broker.path, JobRequest("x", job="mine"), orders.append)
    wait_until(lambda: orders, "the cores of the client")
    seat.confirm(orders[0].cores, orders[0].number)
    wait_until((broker.home / CLIENTS).exists, "the record")
    shutil.rmtree(broker.home) if what == "the folder" else (broker.home / what).unlink()
    assert_one_line(verb("serve"), f"process {broker.process.pid} holds")
    done = verb("status")
    assert (done.status, done.err) == (0, "")
    assert "mine" in done.out
    assert_one_line(verb("serve"), f"process {broker.process.pid} holds")
    wait_until((broker.home / CLIENTS).exists, "the record")
    assert (broker.home / "token").read_text() == token
    seat.end("finished")
    assert broker.process.poll() is None


def test_a_broker_that_cannot_be_found_ends(capfd, tmp_path):
    """Where the folder cannot be made anew the broker ends with one line that says why; programs go on."""
    with serve_process("--no-bind", "--cores", "2", "--log-file", str(tmp_path / "log")) as broker:
        with BrokerClient(broker.path) as client:
            job = client.submit({"command": ["sleep", "600"], "folder": "/"})
            wait_until(lambda: client.job(job)["in_use"] == 2, "the start")
        shutil.rmtree(broker.home)
        broker.home.touch()
        assert broker.process.wait(60.0) == 1
        broker.kill()
        first, second = capfd.readouterr().err.splitlines()
        assert first.startswith(f"error: cannot use {broker.home}")
        assert second.startswith("hint: ")
        assert "ERROR ending reason=" in (tmp_path / "log").read_text()
        assert JobFolder(broker.state / "jobs" / job).program().process() is not None
        broker.home.unlink()


def test_a_broker_whose_folder_was_taken_leaves_the_other_alone(monkeypatch):
    """Another broker makes the folder its own: the first one ends, and removes nothing of the other's."""
    monkeypatch.setattr(broker_lock, "LOOK_SECONDS", 0.05)
    with short_folder() as folder:
        with Home(folder / "home") as first:
            first.listen()
            assert first.restore() is None
            shutil.rmtree(folder / "home")
            with Home(folder / "home") as other:
                other.listen()
                with pytest.raises(ExecutionError, match=f"process {os.getpid()} holds"):
                    first.restore()
                assert other.restore() is None
                assert other.token != first.token
        assert not first.address.exists()


def test_a_broker_that_hangs_is_named(stopped, verb):
    """`status` says within five seconds which process does not answer, and how to go on."""
    assert http_client.ALIVE_SECONDS + unix_socket.CONNECT_SECONDS <= 4.0
    assert_one_line(verb("status"), f"process {stopped}) does not answer", f"kill -CONT {stopped}")
    assert_one_line(verb("submit", "--", "true"), f"process {stopped}) does not answer")
    assert_one_line(verb("serve"), f"process {stopped} holds")


def test_an_executor_goes_on_without_a_broker_that_hangs(stopped, verb, monkeypatch):
    """Jobs join the broker of their process, within two seconds, however long a broker has for its answer.

    What the broker of the process needs is loaded meanwhile, and the next job does not wait again.
    """
    del stopped, verb
    assert remote.GREETING_SECONDS < 2.0
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 1e6)
    monkeypatch.delenv("MALLEABLE_BROKER", raising=False)
    loaded, asked, open_socket = [], [], remote.open_socket
    monkeypatch.setattr(membership, "_load_embedded", lambda: loaded.append(True))
    monkeypatch.setattr(remote, "open_socket", lambda path: asked.append(path) or open_socket(path))
    with embedded_broker(2) as embedded:
        seats = [join(JobRequest("x"), lambda _: None) for _ in range(2)]
        assert [*jobs_of(embedded)] == [seat.job for seat in seats]
    assert loaded == [True]
    assert len(asked) == 1


def test_a_broker_that_is_slow_is_waited_for(broker, monkeypatch):
    """On a busy machine a broker answers late: one that is at work is waited for, by all who ask."""
    monkeypatch.setattr(remote, "GREETING_SECONDS", 0.0)
    monkeypatch.setattr(http_client, "ALIVE_SECONDS", 1e-6)
    looks = []

    def is_at_work(process):
        looks.append(process)
        monkeypatch.setattr(http_client, "ALIVE_SECONDS", 60.0)
        return True

    monkeypatch.setattr("malleable.live.system.process_tree.is_at_work", is_at_work)
    monkeypatch.setattr(http_client, "is_at_work", is_at_work)
    seat = remote.connect(broker.path, JobRequest("x", job="slow"), lambda _: None)
    assert seat is not None
    seat.end("finished")
    with BrokerClient(broker.path) as client:
        assert client.status()["cores"] == 2
    assert set(looks) == {broker.process.pid}


def test_a_broker_that_starts_is_waited_for(monkeypatch):
    """While a broker holds its folder and does not listen yet, no verb says that none runs."""
    monkeypatch.setattr(http_client, "LISTEN_SECONDS", 0.1)
    with short_folder() as folder:
        with pytest.raises(NoBrokerError, match="no broker runs"):
            BrokerClient(folder / "broker.sock")
        with alone(folder), pytest.raises(NoBrokerError, match=f"runs .process {os.getpid()}., and does not"):
            BrokerClient(folder / "broker.sock")


def test_the_connection_that_is_used_is_the_one_that_was_checked(broker, monkeypatch):
    """Another user's socket in the place of the broker's is told nothing, also after the first look."""
    with BrokerClient(broker.path) as client:
        monkeypatch.setattr(unix_socket, "is_own", lambda _connection: False)
        with pytest.raises(BrokenOffError, match="another user"):
            client.status()
        with pytest.raises(BrokenOffError, match="another user"):
            next(client.events())


def test_a_job_that_waits_goes_on_when_the_broker_is_gone(monkeypatch):
    """An Executor that has no core takes one when no broker has been there for a while, and gives it back."""
    monkeypatch.setattr(remote, "ALONE_SECONDS", 0.2)
    with broker_thread(cores=1) as broker:
        orders = {"first": [], "second": []}
        seats = {
            job: remote.connect(broker.path, JobRequest("class-1", job=job), got.append)
            for job, got in orders.items()
        }
        wait_until(lambda: orders["first"], "the core of the first job")
        assert orders["second"] == []
        broker.stop()
        order = wait_until(lambda: orders["second"] and orders["second"][0], "a core without a broker")
        assert order.cores == 1
        seats["second"].confirm(1, order.number)
        time.sleep(0.5)
        assert [len(got) for got in orders.values()] == [1, 1]
        for seat in seats.values():
            seat.end("finished")
