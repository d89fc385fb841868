"""The HTTP interface: every route does what it says, and every error is a sentence and a hint."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from pathlib import Path
from urllib.parse import quote

import pytest

from malleable.errors import ExecutionError
from malleable.live.broker.http_client import BrokerClient, NoBrokerError
from malleable.live.broker.state import ProgramRequest
from malleable.live.core.events import Finished, Registered
from malleable.live.programs.following import exit_status, follow
from support.broker_server import broker_thread, short_folder
from support.living import wait_until


@pytest.fixture(scope="module")
def shared():
    with broker_thread() as made:
        yield made


@pytest.fixture
def broker(shared):
    """A broker without jobs, four cores and EQUI."""
    for job in shared.jobs():
        shared.service.broker.tell(Registered.of({"kind": "lost", "job": job}))
    shared.service.change_machine(4, "equi")
    return shared


@pytest.fixture
def client(broker):
    with BrokerClient(broker.path) as made:
        yield made


def request(**more):
    return {"command": ["true"], "folder": "/", **more}


def test_a_program_from_submission_to_its_end(broker, client):
    """A submitted program is on the list, can be looked at, changed and cancelled, and stays known."""
    job = client.submit(request(**{"class": "class-2", "weight": 2.0, "environment": {"SECRET": "s3cret"}}))
    found = client.job(job)
    assert (found["class"], found["weight"], found["kind"], found["state"]) == (
        "class-2",
        2.0,
        "program",
        "queued",
    )
    assert found["command"] == ["true"]
    assert "s3cret" not in json.dumps([found, client.jobs(), client.status()])
    assert broker.store.get(job).request.environment == {"SECRET": "s3cret"}
    assert [each["id"] for each in client.status()["jobs"]] == [job]
    changed = client.change_job(job, {"weight": 5.0, "class": "class-1"})
    assert (changed["weight"], changed["class"]) == (5.0, "class-1")
    assert broker.store.get(job).request.weight == 5.0
    assert client.cancel(job) == {"id": job}
    assert client.job(job)["state"] == "cancelled"
    with pytest.raises(ExecutionError, match="has not ended"):
        client.cancel(job)
    assert job in [each["id"] for each in client.jobs(ended=1)]


def test_clients_are_jobs_too(broker, client):
    """A client of this machine is on the list, and can be changed and asked to end."""
    asked = threading.Event()
    broker.broker.join(Registered("mine", "class-1"), lambda _order: None, asked.set)
    assert [(job["id"], job["kind"]) for job in client.jobs() if job["state"] == "running"] == [
        ("mine", "client")
    ]
    assert client.change_job("mine", {"weight": 3.0})["weight"] == 3.0
    client.cancel("mine")
    assert asked.is_set()
    with pytest.raises(ExecutionError, match="no log"):
        list(client.log("mine"))


def test_the_machine_can_be_changed(broker, client):
    """Cores and policy change at once; what makes no sense changes nothing."""
    assert client.change_machine({"cores": 3, "policy": "greedy"}) == {
        "cores": 3, "policy": "greedy", "draining": False,
    }  # fmt: skip
    with pytest.raises(ExecutionError, match="nonsense"):
        client.change_machine({"policy": "nonsense"})
    with pytest.raises(ExecutionError):
        client.change_machine({"cores": -1})
    assert (client.status()["cores"], client.status()["policy"]) == (3, "greedy")


def test_events_come_as_things_change(broker, client):
    """The stream begins with the present state, and says what has changed without being asked."""
    seen, done = [], threading.Event()

    def listen():
        with BrokerClient(broker.path) as own:
            for document in own.events():
                seen.append([job["id"] for job in document["jobs"]])
                if "new" in seen[-1]:
                    break
        done.set()

    thread = threading.Thread(target=listen)
    thread.start()
    wait_until(lambda: seen)
    assert seen[0] == []
    broker.broker.join(Registered("new", "class-1"), lambda _order: None)
    assert done.wait(60.0)
    thread.join()
    wait_until(lambda: client._ask("GET", "/v1/history")["jobs"].get("new"))
    broker.broker.tell(Finished("new"))
    wait_until(lambda: client.job_log()["went"][-1:] not in ([], [None]))
    (came,), (went,) = (client.job_log()[name] for name in ("came", "went"))
    assert went >= came > time.time() - 3600.0


def test_events_are_short_however_many_wait(broker, client):
    """Of three hundred jobs a stream lists as many as it was asked for, those with cores first."""
    for i in range(300):
        broker.broker.join(Registered(f"job-{i}", "class-1"), lambda _order: None)
    wide = [job["id"] for job in client.status()["jobs"] if job["granted"]]
    for most in (0, 2, 10, 500):
        found = next(client.events(most))
        assert (found["present"], len(found["jobs"])) == (300, min(most, 300))
        assert {job["id"] for job in found["jobs"]} >= set(wide[:most])
    assert len(next(client.events())["jobs"]) == 100
    with pytest.raises(ExecutionError, match="most"):
        next(client.events(501))


def test_logs_are_read_from_anywhere_and_followed(broker, client):
    """A log is read from an offset, both streams, bytes as they are, and to the end of the program."""
    job = client.submit(request())
    assert list(client.log(job)) == []
    out, err = (broker.programs.folder / f"{job}.{stream}" for stream in ("out", "err"))
    out.write_bytes(b"one\n\xff\x00")
    err.write_bytes(b"wrong\n")
    assert b"".join(client.log(job)) == b"one\n\xff\x00"
    assert b"".join(client.log(job, offset=4)) == b"\xff\x00"
    assert b"".join(client.log(job, offset=4000)) == b""
    assert b"".join(client.log(job, "err")) == b"wrong\n"
    got = []
    thread = threading.Thread(target=lambda: got.extend(follow(job, path=broker.path)))
    thread.start()
    wait_until(lambda: b"".join(got) == b"one\n\xff\x00")
    with out.open("ab") as file:
        file.write(b"two\n" * 50_000)
    wait_until(lambda: len(b"".join(got)) == 200_006)
    client.cancel(job)
    thread.join(20.0)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("method", "place", "body", "status"),
    [
        ("GET", "/v1/jobs/none", None, 404),
        ("GET", "/v1/jobs/none/log", None, 404),
        ("GET", "/v1/jobs/none/explain", None, 404),
        ("GET", "/v1/jobs/1/log?stream=both", None, 422),
        ("GET", "/v1/jobs/1/log?offset=-1", None, 422),
        ("GET", "/v1/jobs?ended=-1", None, 422),
        ("GET", "/v1/nothing", None, 404),
        ("PUT", "/v1/status", None, 405),
        ("DELETE", "/v1/jobs/none", None, 404),
        ("PATCH", "/v1/jobs/none", {"weight": 1.0}, 404),
        ("POST", "/v1/jobs", None, 422),
        ("POST", "/v1/jobs", {"command": [], "folder": "/"}, 422),
        ("POST", "/v1/jobs", {"command": ["x"], "folder": "here"}, 422),
        ("POST", "/v1/jobs", {"command": "rm -rf", "folder": "/"}, 422),
        ("POST", "/v1/jobs", {"command": ["x\0"], "folder": "/"}, 422),
        ("POST", "/v1/jobs", {"command": ["\ud800"], "folder": "/"}, 422),
        ("POST", "/v1/jobs", {"command": ["x"], "folder": "/", "weight": -1}, 422),
        ("POST", "/v1/jobs", {"command": ["x"], "folder": "/", "memory": 1e90}, 409),
        ("POST", "/v1/jobs", {"command": ["x"], "folder": "/", "nonsense": 1}, 422),
        ("PATCH", "/v1/machine", {"cores": 1e9}, 422),
        ("PATCH", "/v1/machine", {"policy": "nonsense"}, 409),
        ("PATCH", "/v1/machine", {"policy": "no/such/file.py:Policy"}, 409),
    ],
)  # fmt: skip
def test_errors_are_sentences(broker, method, place, body, status):
    """What cannot be done is said in JSON, with a status below 500, and changes nothing."""
    broker.service.broker.scheduler._memory = 1e12
    before = broker.store.counts(), broker.jobs().keys()
    with broker.http() as http:
        content = None if body is None else json.dumps(body)
        found = http.request(method, place, content=content, headers={"Content-Type": "application/json"})
    assert (found.status_code, set(found.json())) == (status, {"error", "hint"}), found.text
    assert found.json()["error"]
    assert (broker.store.counts(), broker.jobs().keys()) == before


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"weight": 0}, "weight: must be greater than 1e-100, got 0"),
        ({"weight": 1e200}, "weight: must be less than 1e+100, got 1e+200"),
        ({"class": ""}, "class: must have at least 1 character, got ''"),
        ({"command": []}, "command: must have at least 1 entry, got []"),
        ({"folder": None}, "folder: must be a valid string, got None"),
        ({"nonsense": 1}, "nonsense: is not a key that can be given, got 1"),
    ],
)
def test_errors_of_requests_can_be_read(broker, changes, problem):
    """They are worded as those of the library: the value that was given, and no number of a hundred zeros."""
    with broker.http() as http:
        found = http.post("/v1/jobs", json={"command": ["x"], "folder": "/"} | changes)
        assert found.json()["error"] == problem
        assert http.post("/v1/jobs", json={"command": ["x"]}).json()["error"] == "folder: is missing"


def test_names_of_jobs_may_be_anything(broker, client):
    """Slashes, dots, question marks and quotes in a client's name are part of the name."""
    for name in ("a/b", "../etc/passwd", "a?b=c", "ü &%", "x" * 200):
        broker.broker.join(Registered(name, "class-1"), lambda _order: None)
        with broker.http() as http:
            found = http.get(f"/v1/jobs/{quote(name, safe='')}")
        assert found.status_code in {200, 404}
        if "/" not in name:
            assert client.job(name)["id"] == name


def test_the_description_is_complete(broker):
    """The OpenAPI document has every route but the session and the page, each with a sentence."""
    with broker.http() as http:
        paths = http.get("/v1/openapi.json").json()["paths"]
    assert {(place, method) for place, item in paths.items() for method in item} == {
        ("/v1/status", "get"), ("/v1/history", "get"), ("/v1/past-jobs", "get"), ("/v1/events", "get"),
        ("/v1/jobs", "post"),
        ("/v1/jobs", "get"), ("/v1/jobs/{job}", "get"), ("/v1/jobs/{job}", "patch"),
        ("/v1/jobs/{job}", "delete"), ("/v1/jobs/{job}/log", "get"), ("/v1/machine", "patch"),
        ("/v1/jobs/{job}/explain", "get"),
        ("/v1/drain", "post"), ("/v1/alive", "get"),
    }  # fmt: skip
    assert all(part["description"] for item in paths.values() for part in item.values())


def test_without_a_broker_one_is_told():
    """No socket, or one that nobody listens at: an error with what to do."""
    with short_folder() as folder:
        for path in (folder / "none", folder / "none" / "s"):
            with pytest.raises(NoBrokerError, match="malleable serve"):
                BrokerClient(path)


def test_statuses_as_shells_have_them():
    """An exit code is itself, a signal is 128 + n, a program that was never started is a failure."""
    assert [exit_status({"exit_code": code}) for code in (0, 7, -15, None)] == [0, 7, 143, 1]


def test_draining_is_shown():
    """After drain the machine says so; the broker goes on."""
    with broker_thread() as broker, BrokerClient(broker.path) as client:
        assert client.drain()["draining"] is True
        assert client.status()["draining"] is True


def test_a_log_that_was_removed(broker, client):
    """What a program printed is kept no longer: one line says so (410), and how it ended stays known."""
    job = broker.store.add(ProgramRequest(("true",), "/")).job
    broker.store.mark_ended(job, "failed", 3, started=1.0)
    assert b"".join(client.log(job)) == b""
    assert client.job(job)["removed"] is False
    broker.store.mark_removed([job])
    with pytest.raises(ExecutionError, match="was removed") as raised:
        next(client.log(job))
    assert "--keep" in raised.value.hint
    with broker.http() as http:
        assert http.get(f"/v1/jobs/{job}/log").status_code == 410
    found = client.job(job)
    assert (found["state"], found["exit_code"], found["removed"]) == ("failed", 3, True)


def test_the_extra_asks_for_a_uvicorn_that_has_the_protocol():
    """`websockets-sansio` came with uvicorn 0.35: whoever installs the extra gets that or a later one."""
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for extra in ("live", "dev"):
        (asked,) = [one for one in extras[extra] if one.startswith("uvicorn")]
        assert tuple(map(int, asked.partition(">=")[2].split("."))) >= (0, 35)
