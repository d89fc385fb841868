"""The broker's log: what an operator needs, a line each, in a file that may be moved away."""

from __future__ import annotations

import asyncio
import re

import pytest
from starlette.applications import Starlette

from malleable.errors import ExecutionError, MalleableError
from malleable.live.broker.http_client import BrokerClient
from malleable.live.broker.operator_log import LOGGER, entry, log_event, logging_to
from malleable.live.broker.server.listening import Server
from malleable.live.core.events import CoresChanged, Finished, Registered
from support.broker_server import serve_process
from support.living import wait_until

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR) \S+( \w+=(\S+|\".*\"))*"
)


def test_a_line_is_one_line():
    """Values with spaces, quotes or newlines are quoted, long ones shortened, unknown ones left out."""
    assert entry("submitted", job="1", command="a\nb c", size=None) == 'submitted job=1 command="a\\nb c"'
    assert len(entry("x", y="z" * 10_000)) < 300


def test_warnings_that_are_the_same_are_few(tmp_path, monkeypatch):
    """One a minute of each text, whatever stands in it, with how many were left out; no other line is."""
    now = [0.0]
    monkeypatch.setattr("malleable.live.broker.operator_log.time.monotonic", lambda: now[0])
    with logging_to(str(tmp_path / "log"), "info"):
        for second in range(600):
            now[0] = second / 2.0
            for job in (1, 2):
                LOGGER.warning("cannot note the end of program %s yet: %s", job, "100 % full")
        LOGGER.info("here")
        LOGGER.info("here")
    lines = [line.split(" ", 2)[2] for line in (tmp_path / "log").read_text().splitlines()]
    text = "cannot note the end of program 1 yet: 100 % full"
    assert lines == [text, *[f"{text} (and 239 more like this)"] * 4, "here", "here"]


@pytest.mark.parametrize(
    ("level", "words"), [("debug", 4), ("info", 3), ("warning", 0)]
)  # fmt: skip
def test_clients_and_cores_are_logged(tmp_path, level, words):
    """Who joins and leaves, and how many cores there are; programs are logged by those who run them."""
    path = tmp_path / "log"
    with logging_to(str(path), level):
        log_event(Registered("sweep-1", "sweep"))
        log_event(CoresChanged(0))
        log_event(Finished("sweep-1"))
        log_event(Finished("17"))
        LOGGER.debug("detail")
    lines = path.read_text().splitlines()
    assert len(lines) == words
    if level == "info":
        assert [line.split(" ", 2)[2] for line in lines] == [
            "joined job=sweep-1 job_class=sweep",
            "cores-changed cores=0",
            "finished job=sweep-1",
        ]


def test_a_log_that_is_moved_away_is_begun_anew(tmp_path):
    """As logrotate does it; only the user may read it, and after the end nothing is written."""
    path = tmp_path / "log"
    with logging_to(str(path), "info"):
        LOGGER.info("one")
        path.rename(tmp_path / "old")
        LOGGER.info("two")
    LOGGER.info("three")
    assert path.read_text().endswith("two\n")
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("file", "level", "words"), [("no/such/log", "info", "no/such/log"), ("log", "loud", "loud")]
)
def test_what_cannot_be_logged_is_one_line(tmp_path, monkeypatch, file, level, words):
    """A file that cannot be written, or a level that does not exist, is an error at the start."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MalleableError, match=words), logging_to(file, level):
        pass


def test_the_life_of_programs_is_logged(tmp_path):
    """Submitted, started, cancelled and ended, with command and exit code; each line has the one form."""
    path = tmp_path / "log"
    with serve_process("--cores", "1", "--no-bind", "--log-file", str(path)) as broker:
        with BrokerClient(broker.path) as client:
            one = client.submit({"command": ["sh", "-c", "exit 3"], "folder": "/"})
            wait_until(lambda: client.job(one)["state"] == "failed", "end of the first")
            two = client.submit({"command": ["sleep", "600"], "folder": "/"})
            wait_until(lambda: client.job(two)["state"] == "running", "start of the second")
            client.cancel(two)
            wait_until(lambda: client.job(two)["state"] == "cancelled", "end of the second")
            with pytest.raises(ExecutionError, match="has not ended"):
                client.cancel(one)  # which is nothing to log
        broker.end()
    lines = path.read_text().splitlines()
    assert all(LINE.fullmatch(line) for line in lines), lines
    said = [line.split(" ", 2)[2] for line in lines]
    happened = [" ".join(line.split()[:2]) for line in said]
    assert happened[:9] == [
        "serving cores=1", "submitted job=1", "started job=1", "failed job=1", "submitted job=2",
        "started job=2", "cancelling job=2", "cancelled job=2", "stopped present=0",
    ]  # fmt: skip
    assert "command=\"sh -c 'exit 3'\"" in said[1]
    assert "exit_code=3" in said[3]
    assert "exit_code=-15" in said[7]


def test_what_goes_wrong_in_the_server_is_logged(tmp_path):
    """What the machine refuses is one line; an error of the program has its traceback."""
    path = tmp_path / "log"
    with logging_to(str(path), "info"):

        async def fail():
            async with asyncio.timeout(60.0):
                server = Server(Starlette())
                server.stop()
                await server.serve([])
                loop = asyncio.get_running_loop()
                refused = {"message": "no file", "exception": OSError(24, "Too many open files")}
                loop.call_exception_handler(refused)
                loop.call_exception_handler({"message": "lost", "exception": ValueError("of ours")})

        asyncio.run(fail())
    lines = path.read_text().splitlines()
    assert lines[0].endswith('trouble problem="no file" error="[Errno 24] Too many open files"')
    assert 'trouble problem=lost error="of ours"' in lines[1]
    assert lines[2].startswith("Traceback") or lines[-1] == "ValueError: of ours"
