"""A broker that runs out of files says so and keeps its programs; it takes more than its shell allows."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

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
