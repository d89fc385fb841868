"""A broker that runs out of files says so and keeps its programs; it takes more than its shell allows."""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from malleable.live.broker import http_client
from malleable.live.broker.http_client import BrokerClient, NoBrokerError
from malleable.live.system.unix_socket import open_socket
from support.broker_server import serve_process
from support.cli_checks import assert_one_line
from support.living import wait_until
from support.shell import Outcome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
LIMITS = "ulimit -Sn 64; ulimit -Hn 200"


def verb(broker, *words):
    """A verb in a process of its own."""
    done = broker.run(*words)
    return Outcome(done.returncode, done.stdout, done.stderr)


def open_files(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def is_closed(connection):
    """Whether the other end has closed a connection on which nothing is said."""
    try:
        return not connection.recv(1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_more_connections_than_files():
    """Beyond half of its files, connections are refused in one line; programs start and end all the same."""
    with serve_process("--no-bind", "--cores", "2", first=LIMITS) as broker, ExitStack() as opened:
        go = broker.state.parent / "go"
        limits = verb(broker, "submit", "--wait", "--", "sh", "-c", "ulimit -Sn; ulimit -Hn")
        assert limits == Outcome(0, "64\n200\n", "")
        script = f"while [ ! -e {go} ]; do sleep 0.01; done; exit 3"
        job = verb(broker, "submit", "--", "sh", "-c", script).out.strip()
        before = open_files(broker.process.pid)
        for _ in range(100):
            opened.enter_context(open_socket(broker.path))
        wait_until(lambda: open_files(broker.process.pid) > before + 90, "the connections")
        assert_one_line(verb(broker, "status"), "100 connections", "ulimit")
        for _ in range(200):
            opened.enter_context(open_socket(broker.path))
        wait_until(lambda: open_files(broker.process.pid) < 190, "the end of most connections")
        go.touch()
        folder = broker.state / "jobs" / job
        wait_until(lambda: not (folder / "request.json").exists(), "that its end is noted")
        opened.close()
        found = wait_until(lambda: verb(broker, "status", job).out, "an answer")
        assert "failed" in found
        assert verb(broker, "submit", "--wait", "--", "true").status == 0


def test_more_connections_at_once_than_files(tmp_path, monkeypatch):
    """Those that come while a broker does not look are taken a few at a time, without a flood in its log."""
    monkeypatch.setattr(http_client, "LISTEN_SECONDS", 0.1)
    log = tmp_path / "errors"
    first = f"exec 2>{log}; {LIMITS}"
    with serve_process("--no-bind", "--cores", "2", first=first) as broker, ExitStack() as opened:
        broker.process.send_signal(signal.SIGSTOP)
        waiting = [opened.enter_context(open_socket(broker.path)) for _ in range(400)]
        broker.process.send_signal(signal.SIGCONT)
        wait_until(lambda: sum(map(is_closed, waiting)) == 400 - 150, "the end of those that are too many")
        with pytest.raises(NoBrokerError, match=r"closes new connections at once .*ulimit -n"):
            BrokerClient(broker.path)
    lines = log.read_text().splitlines()
    assert len(lines) < 20
    assert all(line.startswith("20") for line in lines)
    assert not [line for line in lines if "out of system resource" in line]
