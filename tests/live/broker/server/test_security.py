"""Nobody else gets in: other users, other sites, requests without the token, too long or with tricks."""

from __future__ import annotations

import os
import socket
import stat

import httpx
import pytest

from malleable.errors import OutputError
from malleable.live.broker.broker_lock import alone
from malleable.live.broker.http_client import BrokerClient, NoBrokerError
from malleable.live.broker.server.access import MOST_BODY, read_or_make_token
from malleable.live.broker.server.listening import unix_listener
from malleable.live.broker.server.paths import broker_socket, private, runtime_folder, state_folder
from malleable.live.core.events import Cancelled
from malleable.live.system import unix_socket
from support.broker_server import NO_CERTIFICATES, TOKEN, broker_thread, serve_process, short_folder
from support.living import wait_until

WRITES = [
    ("POST", "/v1/jobs", {"command": ["true"], "folder": "/"}),
    ("PATCH", "/v1/jobs/1", {"weight": 2.0}),
    ("DELETE", "/v1/jobs/1", None),
    ("PATCH", "/v1/machine", {"cores": 1}),
    ("POST", "/v1/drain", None),
]


@pytest.fixture(scope="module")
def broker():
    with broker_thread(loopback=True) as made:
        made.service.submit({"command": ["true"], "folder": "/"})
        yield made


@pytest.fixture
def http(broker):
    with httpx.Client(base_url=f"http://127.0.0.1:{broker.port}", verify=NO_CERTIFICATES) as made:
        yield made


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(("method", "place", "body"), [*WRITES, ("GET", "/v1/jobs/1/log", None)])
@pytest.mark.parametrize(
    "headers",
    [
        {}, bearer("wrong"), bearer(TOKEN[:-1]), bearer(TOKEN + "x"), {b"Authorization": "Bearer ü".encode()},
        {"Authorization": "Bearer"},
        {"Authorization": TOKEN}, {"Authorization": f"Basic {TOKEN}"}, {"X-Token": TOKEN},
    ],
)  # fmt: skip
def test_loopback_needs_the_token_to_write(broker, http, method, place, body, headers):
    """On loopback nothing is changed, and no output read, without exactly the token."""
    before = broker.service.status()["jobs"], broker.service.machine(), broker.store.counts()
    found = http.request(method, place, json=body, headers=headers)
    assert (found.status_code, set(found.json())) == (401, {"error", "hint"})
    after = broker.service.status()["jobs"], broker.service.machine(), broker.store.counts()
    assert [[job["id"] for job in each[0]] for each in (before, after)] == [["1"], ["1"]]
    assert before[1:] == after[1:]


SECRET = "the-secret-of-its-user"


def test_without_the_token_no_one_learns_what_programs_are():
    """Commands, folders and reasons of programs that wait, run and have ended are their user's alone."""
    request = {
        "command": ["sh", "-c", SECRET], "folder": f"/{SECRET}", "environment": {"A": SECRET},
        "on_resize": f"echo {SECRET}",
    }  # fmt: skip
    with (
        broker_thread(loopback=True) as broker,
        broker.http() as own,
        httpx.Client(base_url=f"http://127.0.0.1:{broker.port}", verify=NO_CERTIFICATES) as http,
    ):
        ended, waits = (broker.service.submit(request) for _ in range(2))
        broker.broker.tell(Cancelled(ended))
        broker.store.mark_ended(ended, "failed", reason=f"cannot run {SECRET}")
        places = [
            f"/v1/{place}"
            for place in ("status", "jobs", "jobs?present=false", f"jobs/{ended}", f"jobs/{waits}")
        ]
        for place in (*places, "/v1/history"):
            assert SECRET not in http.get(place).text, place
        for place in places:
            assert SECRET in http.get(place, headers=bearer(TOKEN)).text, place
            assert SECRET in own.get(place).text, place
        assert SECRET not in _first_event(http, {})
        assert SECRET in _first_event(http, bearer(TOKEN))
        assert http.get(f"/v1/jobs/{ended}").json()["command"] is None


def _first_event(http, headers):
    with http.stream("GET", "/v1/events", headers=headers) as response:
        return next(line for line in response.iter_lines() if line.startswith("data: "))


def test_loopback_reads_without_the_token_and_writes_with_it(broker, http):
    """Status and the description are there for anyone on the machine; with the token all is."""
    for place in ("/", "/script.js", "/style.css"):
        assert http.get(place).status_code == 200
    for place in ("status", "jobs", "jobs/1", "history", "openapi.json"):
        assert http.get(f"/v1/{place}").status_code == 200
    assert http.patch("/v1/jobs/1", json={"weight": 2.0}, headers=bearer(TOKEN)).status_code == 200
    assert http.get("/v1/jobs/1/log", headers=bearer(TOKEN)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Host": "localhost.evil.example:80"},
        {"Host": ""}, {"Origin": "http://evil.example"}, {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
    ],
)  # fmt: skip
def test_other_sites_are_refused(http, headers):
    """A page from elsewhere reaches nothing by another name of this machine, with or without the token."""
    for more in ({}, bearer(TOKEN)):
        found = http.get("/v1/status", headers={**headers, **more})
        assert found.status_code in {400, 403}
    assert "access-control-allow-origin" not in http.get("/v1/status").headers


def test_the_page_is_shut_in(http):
    """Answers forbid to load anything from elsewhere, to be shown in a frame, and to be taken for a page."""
    headers = http.get("/v1/status").headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")


def test_sessions_are_for_the_unix_socket(http):
    """A WebSocket on loopback is refused, with the token as well."""
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
    }  # fmt: skip
    for more in ({}, bearer(TOKEN)):
        assert http.get("/v1/session", headers={**upgrade, **more}).status_code == 403


def test_too_long_a_request_is_refused(broker, http):
    """A body beyond the limit is refused, whether it says how long it is or not; the next request works."""
    long = b'{"command": ["' + b"x" * MOST_BODY + b'"], "folder": "/"}'
    with broker.http() as trusted:
        for sender, headers in ((http, bearer(TOKEN)), (trusted, {})):
            found = sender.post("/v1/jobs", content=long, headers=headers)
            assert (found.status_code, set(found.json())) == (413, {"error", "hint"})
            found = sender.post("/v1/jobs", content=iter([long[:1000], long[1000:]]), headers=headers)
            assert (found.status_code, set(found.json())) == (413, {"error", "hint"})
            assert sender.get("/v1/status").status_code == 200
    assert broker.store.counts() == {"queued": 1}


@pytest.mark.parametrize(
    "name",
    [
        "..", "..%2f1", "..%2f..%2fetc%2fpasswd", "%2e%2e", "1%00", "-1", "1e0", "٣", "1 ", "0x1", "01",
        "%2fetc%2fpasswd", "9" * 30, "1.out", "jobs.sqlite", "state/1.out",
    ],
)  # fmt: skip
def test_no_log_but_by_its_number(broker, name):
    """A log is named by the number of its job and nothing else: no path leads anywhere."""
    (broker.programs.folder / "1.out").write_text("the log of job 1")
    with broker.http() as http:
        found = http.get(f"/v1/jobs/{name}/log")
    assert found.status_code in {404, 422}
    assert "the log" not in found.text
    assert "root:" not in found.text


def test_strangers_on_the_socket_are_turned_away(broker, monkeypatch):
    """The system says that another user is at the other end: the connection is closed without an answer."""
    monkeypatch.setattr(unix_socket, "peer_user", lambda _connection: os.getuid() + 1)
    with pytest.raises(httpx.TransportError), broker.http() as http:
        http.get("/v1/status")
    with pytest.raises(NoBrokerError, match="another user"):
        BrokerClient(broker.path)


def test_the_system_says_who_is_there():
    """The peer of a socket pair of this process is this user."""
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert unix_socket.peer_user(one) == os.getuid()
        assert unix_socket.is_own(one)


def test_folders_of_others_are_refused(monkeypatch):
    """A runtime folder that is a link, a file, open to others or of another user is not used."""
    with short_folder() as folder:
        assert stat.S_IMODE(private(folder / "new").stat().st_mode) == 0o700
        (folder / "link").symlink_to(folder / "new")
        (folder / "file").touch()
        (folder / "open").mkdir()
        (folder / "open").chmod(0o750)
        for name in ("link", "file", "open"):
            with pytest.raises(OutputError):
                private(folder / name)
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(OutputError, match="another user"):
            private(folder / "new")


def test_the_token_is_kept_from_others():
    """It is made once, with mode 600, and is long; one that others can read is refused."""
    with short_folder() as folder:
        token = read_or_make_token(folder)
        file = folder / "token"
        assert (stat.S_IMODE(file.stat().st_mode), read_or_make_token(folder)) == (0o600, token)
        assert len(token) >= 40
        file.chmod(0o644)
        with pytest.raises(OutputError, match="others can read"):
            read_or_make_token(folder)
        file.chmod(0o600)
        file.write_text("short")
        with pytest.raises(OutputError, match="token"):
            read_or_make_token(folder)


def test_the_socket_is_kept_from_others():
    """Mode 600; one that was left behind is replaced, and removed in the end; a long path is an error."""
    with short_folder() as folder:
        path = folder / "s"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        with unix_listener(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not path.exists()
        with pytest.raises(OutputError, match="too long"), unix_listener(folder / ("x" * 120)):
            pass


def test_one_broker_holds_a_folder():
    """A second one is told which process holds it."""
    with short_folder() as folder:
        with alone(folder), pytest.raises(Exception, match=f"process {os.getpid()} holds"), alone(folder):
            pass
        with alone(folder):
            pass


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("broker.lock", lambda folder: alone(folder).__enter__()),
        ("token", read_or_make_token),
        ("broker.sock", lambda folder: unix_listener(folder / "broker.sock").__enter__()),
    ],
)
def test_what_cannot_be_written_is_one_line(name, use):
    """Where a file of the broker cannot be, an error of ours says which."""
    with short_folder() as folder:
        (folder / name).mkdir()
        with pytest.raises(OutputError, match=name):
            use(folder)


def test_folders_are_found_without_configuration(monkeypatch, tmp_path):
    """MALLEABLE_HOME and MALLEABLE_STATE first, then those of the desktop's standard, then the user's own."""
    for name in ("MALLEABLE_HOME", "MALLEABLE_STATE", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert str(os.getuid()) in runtime_folder().name
    assert state_folder() == tmp_path / ".local" / "state" / "malleable"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert (str(broker_socket()), str(state_folder())) == (
        "/run/user/7/malleable/broker.sock", "/state/malleable",
    )  # fmt: skip
    monkeypatch.setenv("MALLEABLE_HOME", "/h")
    monkeypatch.setenv("MALLEABLE_STATE", "/s")
    assert (str(broker_socket()), str(state_folder())) == ("/h/broker.sock", "/s")


def test_commands_are_read_by_no_shell():
    """Metacharacters, substitutions and options in a command are words for its program, nothing else."""
    words = [
        "$(touch hacked)",
        "`touch hacked`",
        "; touch hacked",
        "| touch hacked",
        "> hacked",
        "--wait",
        "*",
        "a b",
    ]
    with serve_process() as process:
        folder = process.state.parent / "work"
        folder.mkdir()
        done = process.run(
            "submit", "--wait", "--class", "$(touch x)", "--", "printf", "%s\\n", *words, folder=folder
        )
        assert (done.returncode, done.stdout.splitlines()) == (0, words)
        assert list(folder.iterdir()) == []
        with BrokerClient(process.path) as client:
            job = client.submit({"command": ["; touch x"], "folder": str(folder)})
            wait_until(lambda: client.job(job)["state"] == "failed")
        assert list(folder.iterdir()) == []
