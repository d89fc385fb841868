"""Sessions: jobs of other processes join, are told orders, answer, and are missed when they are gone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading

import pytest
from websockets.sync.client import unix_connect

from malleable.live.broker import remote
from malleable.live.broker.http_client import BrokerClient
from malleable.live.broker.membership import JobRequest
from malleable.live.broker.server import listening
from malleable.live.core.events import Finished, Progressed
from malleable.live.core.orders import Held, RefusedError
from malleable.live.system.cpus import CpuSets
from support.broker_server import BrokerThread, broker_thread, serve_process, short_folder
from support.living import alive, kill, wait_until

CLIENT = r"""
import os, sys, threading, time
from malleable.live.broker.membership import JobRequest
from malleable.live.broker.remote import connect
seat, ready = None, threading.Event()
def obey(order):
    ready.wait()
    seat.confirm(order.cores, order.number)
    os.write(1, f"{order.cores}\n".encode())  # in one piece, whichever thread writes
seat = connect(sys.argv[1], JobRequest("class-1", job=sys.argv[2]), obey)
ready.set()
child = os.fork() if "fork" in sys.argv else None
if child:
    os.write(1, f"child {child}\n".encode())
time.sleep(60)
os._exit(0)
"""


class Client:
    """A job that does at once what it is told, and remembers it."""

    def __init__(self, path, job, **options):
        self.orders, self.cancelled = [], threading.Event()
        ready = threading.Event()

        def obey(order):
            ready.wait()
            self.orders.append(order)
            self.seat.confirm(order.cores, order.number)

        request = JobRequest("class-1", job=job, units=options.pop("units", None))
        self.seat = remote.connect(path, request, obey, self.cancelled.set, **options)
        ready.set()

    @property
    def cores(self):
        return self.orders[-1].cores if self.orders else 0


@pytest.fixture
def broker():
    with broker_thread(cpus=CpuSets(range(4), all_threads=True)) as made:
        yield made


def test_orders_reach_jobs_of_other_processes(broker):
    """The first job has all cores until a second one comes; both confirm, on CPUs of their own."""
    one = Client(broker.path, "one")
    wait_until(lambda: one.cores == 4)
    two = Client(broker.path, "two")
    wait_until(lambda: one.cores == two.cores == 2)
    wait_until(lambda: [job["in_use"] for job in broker.jobs().values()] == [2, 2])
    assert {*broker.broker.cpus_of("one")} | {*broker.broker.cpus_of("two")} == {0, 1, 2, 3}
    assert one.orders[-1].cpus[:2] == broker.broker.cpus_of("one")
    two.seat.end("finished")
    wait_until(lambda: one.cores == 4)
    assert broker.broker.state()["ended"]["finished"] == 1
    broker.broker.cancel("one")
    assert one.cancelled.wait(60.0)
    one.seat.end("cancelled")
    one.seat.end("failed")  # only the first counts
    wait_until(lambda: broker.broker.state()["ended"]["cancelled"] == 1)
    assert broker.broker.state()["ended"]["failed"] == 0


def test_progress_is_reported_seldom_and_up_to_date(broker):
    """Ten thousand reports at once are a few messages; the last one says how far the job is."""
    one = Client(broker.path, "one", units=10_000.0)
    for done in range(10_001):
        one.seat.progress(done)
    wait_until(lambda: broker.jobs()["one"]["units"] == (10_000.0, 10_000.0))
    assert 1 <= sum(isinstance(event, Progressed) for event in broker.events) < 1_000
    one.seat.progress(10_002, 20_000)
    one.seat.end("finished")
    assert broker.events[-2:] == [Progressed("one", 10_002.0, 20_000.0), Finished("one")]


def test_a_broker_may_refuse(broker):
    """A name that is taken, that of a program, a class that is not known: errors with the broker's reason."""
    one = Client(broker.path, "one")
    for job, words in (("one", "there already"), ("17", "a program"), ("", "job")):
        with pytest.raises(RefusedError, match=words):
            Client(broker.path, job)
    with pytest.raises(RefusedError, match="weight"):
        remote.connect(broker.path, JobRequest(job="x", weight=-1.0), one.orders.append)
    assert [*broker.jobs()] == ["one"]
    one.seat.end("finished")


def test_a_seat_is_light():
    """What the supervisor of every program loads: neither NumPy nor SciPy, Numba, or the web framework."""
    heavy = ("numpy", "scipy", "numba", "pydantic", "fastapi", "starlette", "httpx")
    code = f"import sys, malleable.live.broker.remote; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


def test_without_a_broker_there_is_no_seat():
    """Nobody at the socket, or no socket: None, and no thread is left behind."""
    with short_folder() as folder:
        before = threading.active_count()
        assert remote.connect(folder / "none", JobRequest(job="x"), print) is None
        assert threading.active_count() == before


@pytest.mark.parametrize("fork", [False, True])
def test_a_killed_client_is_missed_at_once(broker, fork):
    """SIGKILL for a client: its cores are in use by another job, though a child of the client lives on."""
    one = Client(broker.path, "one")
    command = [sys.executable, "-c", CLIENT, str(broker.path), "two", *(["fork"] if fork else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        child = None
        try:
            words = [process.stdout.readline().split() for _ in range(1 + fork)]
            child = next((int(line[1]) for line in words if line[0] == "child"), None)
            wait_until(lambda: broker.jobs()["two"]["in_use"] == one.cores == 2)
            process.send_signal(signal.SIGKILL)
            wait_until(lambda: broker.jobs()["one"]["in_use"] == 4)
            assert [*broker.jobs()] == ["one"]
            assert broker.broker.state()["ended"]["lost"] == 1
            assert fork == (child is not None and alive([child]) == [child])
        finally:
            process.kill()
            if child is not None:
                kill(child)
    one.seat.end("finished")


def test_a_client_that_is_stopped_loses_its_cores_and_gets_some_again(monkeypatch):
    """Ctrl-Z for a client: its cores go to another job after the stated time; when it wakes they share."""
    assert listening.PING_SECONDS + listening.SILENT_SECONDS <= 60.0
    monkeypatch.setattr(listening, "PING_SECONDS", 0.2)
    monkeypatch.setattr(listening, "SILENT_SECONDS", 1.0)
    with broker_thread() as broker:
        one = Client(broker.path, "one")
        command = [sys.executable, "-c", CLIENT, str(broker.path), "two"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                wait_until(lambda: broker.jobs().get("two", {}).get("in_use") == 2, "its cores")
                process.send_signal(signal.SIGSTOP)
                wait_until(lambda: [*broker.jobs()] == ["one"] and one.cores == 4, "the cores of the other")
                process.send_signal(signal.SIGCONT)
                wait_until(lambda: broker.jobs().get("two", {}).get("in_use") == 2, "its return")
                assert one.cores == 2
            finally:
                process.kill()
        one.seat.end("finished")


def test_the_end_of_a_server_is_not_the_end_of_its_jobs():
    """A broker that is told to stop does not give the cores of its clients to each other."""
    with broker_thread() as broker:
        clients = [Client(broker.path, job) for job in ("one", "two")]
        wait_until(lambda: [job["in_use"] for job in broker.jobs().values()] == [2, 2])
        broker.stop()
        assert [job["granted"] for job in broker.jobs().values()] == [2, 2]
        assert broker.broker.state()["ended"]["lost"] == 0
        for client in clients:
            client.seat.end("finished")  # nobody hears it, and nothing is wrong


def test_clients_are_counted_again_after_a_crash():
    """The broker is killed: clients keep their cores; the next broker gives each of them the same again."""
    with serve_process("--no-bind", "--cores", "4", "--policy", "equi") as process:
        one, two = Client(process.path, "one", units=10.0), Client(process.path, "two")
        wait_until(lambda: one.cores == two.cores == 2)
        one.seat.progress(5.0)
        before = len(one.orders), len(two.orders)
        process.kill()
        assert (len(one.orders), len(two.orders)) == before
        process.start()
        wait_until(lambda: len(one.orders) > before[0] and len(two.orders) > before[1])
        wait_until(lambda: one.cores == two.cores == 2)
        numbers = [order.number for order in one.orders]
        assert numbers == sorted(set(numbers))
        with BrokerClient(process.path) as asking:
            jobs = asking.status()["jobs"]
        assert sorted(job["id"] for job in jobs) == ["one", "two"]
        one_again = next(job for job in jobs if job["id"] == "one")
        assert (one_again["units_done"], one_again["units"]) == (5.0, 10.0)
        # What a client does not hold is divided anew, once all had time to come back.
        two.seat.end("finished")
        wait_until(lambda: one.cores == 4)
        one.seat.end("finished")


@pytest.mark.slow
def test_clients_survive_many_crashes():
    """The broker is killed 20 times: each time all clients are counted again, and never use more cores."""
    with serve_process("--no-bind", "--cores", "6", "--policy", "equi") as process:
        clients = [Client(process.path, f"client-{i}") for i in range(3)]
        wait_until(lambda: [client.cores for client in clients] == [2, 2, 2])
        most, over = [0], threading.Event()

        def sample():
            while not over.wait(0.005):
                most.append(sum(client.cores for client in clients))

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            for _ in range(20):
                before = [len(client.orders) for client in clients]
                process.kill()
                process.start()
                wait_until(
                    lambda before=before: all(
                        len(client.orders) > old for client, old in zip(clients, before, strict=True)
                    )
                )
                wait_until(lambda: [client.cores for client in clients] == [2, 2, 2])
        finally:
            over.set()
            sampler.join()
        assert max(most) == 6
        for client in clients:
            client.seat.end("finished")


def test_a_job_that_insists_joins_when_there_is_a_broker():
    """A program's supervisor that finds no broker goes on, and is counted with what it holds by the next."""
    with short_folder() as folder:
        one = Client(folder / "s", "one", held=Held(2, (1, 3), age=100.0), insist=True)
        broker = BrokerThread(folder, cpus=CpuSets(range(4), all_threads=True))
        try:
            # It keeps its two CPUs, and gets the others when nobody else has come for a while.
            wait_until(lambda: one.orders)
            assert (one.orders[0].cores, one.orders[0].cpus) == (2, (1, 3))
            wait_until(lambda: one.cores == 4)
            assert set(one.orders[-1].cpus[:2]) == {1, 3}
            assert broker.service.status()["jobs"][0]["age"] >= 100.0
            one.seat.end("finished")
        finally:
            broker.close()


def test_programs_join_with_their_ticket(broker):
    """A supervisor with the right ticket takes its program over; what it says goes to the programs."""
    job = broker.service.submit({"command": ["true"], "folder": "/"})
    with pytest.raises(RefusedError, match="ticket"):
        Client(broker.path, job, ticket="wrong")
    ticket = broker.store.get(job).ticket
    client = Client(broker.path, job, ticket=ticket)
    wait_until(lambda: client.cores == 1)
    wait_until(lambda: [event.kind for event in broker.programs.told] == ["confirmed"])
    client.seat.end("finished")
    assert broker.programs.told[-1] == Finished(job)
    assert broker.programs.seats  # it ended: nothing to detach
    with unix_connect(str(broker.path), "ws://localhost/v1/session") as connection:
        connection.send(json.dumps({"kind": "join", "request": {"job": job, "ticket": ticket}}))
        assert json.loads(connection.recv(timeout=60))["kind"] == "joined"
    wait_until(lambda: not broker.programs.seats, "the detachment")


@pytest.mark.parametrize(
    "first",
    [
        "", "[]", "{}", "null", '"join"', '{"kind": "join"}', '{"kind": "join", "request": 3}', "[" * 50_000,
        '{"kind": "join", "request": {"job": "a", "job_class": "b", "cores": 4}, "held": {"cores": -1}}',
        '{"kind": "join", "request": {"job": "a", "nonsense": 1}}',
        '{"kind": "join", "request": {"job": "a", "job_class": "b", "size": "x", "units": {}}}',
        '{"kind": "finished", "job": "a"}', b"\xff\xfe",
    ],
)  # fmt: skip
def test_nonsense_is_refused(broker, first):
    """A first word that makes no sense is refused in a sentence, and nothing has joined."""
    with unix_connect(str(broker.path), "ws://localhost/v1/session") as connection:
        connection.send(first)
        answer = json.loads(connection.recv(timeout=60))
    assert answer["kind"] == "refused"
    assert answer["reason"]
    assert broker.jobs() == {}


def test_later_nonsense_does_no_harm(broker):
    """A job may speak of itself only, and what it says too late or wrongly is refused; it stays."""
    with unix_connect(str(broker.path), "ws://localhost/v1/session") as connection:
        connection.send(json.dumps({"kind": "join", "request": {"job": "a", "job_class": "class-1"}}))
        assert json.loads(connection.recv(timeout=60)) == {"kind": "joined", "job": "a"}
        assert json.loads(connection.recv(timeout=60))["kind"] == "order"
        for said in (
            {"kind": "finished", "job": "b"},
            {"kind": "confirmed", "job": "a", "cores": 9, "number": 1},
            {"kind": "cores_changed", "cores": 100},
            {"kind": "confirmed", "job": "a", "cores": "many", "number": None},
        ):
            connection.send(json.dumps(said))
            assert json.loads(connection.recv(timeout=60))["kind"] == "refused"
        assert [*broker.jobs()] == ["a"]
        connection.send(json.dumps({"kind": "finished", "job": "a"}))
        wait_until(lambda: not broker.jobs())
    assert broker.broker.state()["ended"] == {"finished": 1, "failed": 0, "cancelled": 0, "lost": 0}
