"""Ctrl-C, `kill` and closed terminals: what was done is handed in, nothing is left behind, no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import living, paper_fakes
from support.living import MALLEABLE, assert_gone, children, running, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc")

LONG = ("paper", "--cores", "64", "--load", "0.25", "--jobs", "4e8")
SHORT = ("paper", "--cores", "16", "--load", "0.25", "--jobs", "4000")
TWO = ("--replications", "2")
PYTHON = """\
import sys
from malleable import simulate
try:
    simulate("paper", 16, "slow.py:stuck", load=0.25, jobs=4000, replications=2, workers=2)
except KeyboardInterrupt:
    sys.exit(99)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def log(tmp_path) -> Path:
    """Policies that are slow, and the file that tells how often they have been asked."""
    return living.write_slow_policies(tmp_path)


def workers_of(process: subprocess.Popen, count: int = 2) -> list[int]:
    """The worker processes, once they are there."""
    wait_until(lambda: len(children(process.pid)) == count, f"{count} workers")
    return children(process.pid)


def stopped(process: subprocess.Popen, *signals: int, group: bool = False) -> tuple[int, str, str]:
    """What a process leaves after signals that it takes in one after the other."""
    for signum in signals:
        (os.killpg if group else os.kill)(process.pid, signum)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


@pytest.mark.parametrize("signum", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_no_orphans(signum):
    """Workers end with their parent, whether that is asked to stop or killed."""
    with running(MALLEABLE, "simulate", *LONG, *TWO) as process:
        workers = workers_of(process)
        stopped(process, signum)
        assert_gone(workers)


@pytest.mark.parametrize(
    ("command", "signum", "group"),
    [
        (("simulate", *SHORT, "--policy", "slow.py:slow"), signal.SIGTERM, False),
        (("simulate", *SHORT, "--policy", "slow.py:slow", *TWO), signal.SIGINT, True),
        pytest.param(
            *(("simulate", *SHORT, "--policy", "slow.py:slow", *TWO), signal.SIGHUP, False),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(("compare", *SHORT, "--policies", "slow.py:slow,slow.py:as_slow"), signal.SIGTERM, True),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["alone TERM", "spread INT to all", "spread HUP", "compare TERM to all"],
)
def test_what_was_done_is_handed_in(command, signum, group, log):
    """A signal, also one to all processes of the group, prints and saves the numbers so far; exit 128 + n."""
    with running(MALLEABLE, *command, "--json", "--out", "kept") as process:
        wait_until(living.asked(log, 250), "policies that are asked")
        workers = children(process.pid)
        status, out, err = stopped(process, signum, group=group)
        assert status == 128 + signum, err
        assert err.splitlines()[-1] == "interrupted: these are the numbers so far"
        document = json.loads(out)
        results = document.get("results", [document])
        assert {result["status"] for result in results} == {"interrupted"}
        assert all(0 < result["jobs"] < 8000 for result in results)
        assert Path("kept/comparison.json" if "results" in document else "kept.json").exists()
        assert not workers or assert_gone(workers) is None


def test_second_signal_gives_up(log):
    """When the first finds a worker that does not answer, the second ends everything on the spot."""
    heard = Path("heard")
    command = ("simulate", *SHORT, "--policy", "slow.py:stuck", *TWO)
    with heard.open("w") as file, running(MALLEABLE, *command, stderr=file) as process:
        wait_until(living.asked(log, 301), "a policy that is stuck")
        workers = workers_of(process)
        os.kill(process.pid, signal.SIGINT)
        wait_until(lambda: "once more gives up\n" in heard.read_text(), "a word about the second")
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60)[0] == ""
        assert process.returncode == 130
        assert_gone(workers)
    lines = [line for line in heard.read_text().splitlines() if not line.startswith("warning: ")]
    assert lines == ["stopping as soon as the current stretch ends; once more gives up", "interrupted"]


def test_second_ctrl_c_in_python(log):
    """In the library, too, the second Ctrl-C raises KeyboardInterrupt at once and ends the workers."""
    with running(sys.executable, "-W", "ignore", "-c", PYTHON) as process:
        wait_until(living.asked(log, 301), "a policy that is stuck")
        workers = workers_of(process)
        os.kill(process.pid, signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1.0)
        assert stopped(process, signal.SIGINT) == (99, "", "")
        assert_gone(workers)


@pytest.mark.parametrize("signum", living.STOPS)
def test_while_importing(signum):
    """A signal before anything has begun is one line: nothing is lost, and imports make no traceback."""
    with running(MALLEABLE, "simulate", *LONG) as process:
        wait_until(lambda: living.listens(process), "a handler")
        assert stopped(process, signum) == (128 + signum, "", "interrupted\n")


def test_ignored_signals_stay_ignored(log):
    """Under nohup a closed terminal ends nothing; `kill` still does."""
    with running("nohup", MALLEABLE, "simulate", *SHORT, "--policy", "slow.py:slow") as process:
        wait_until(living.asked(log, 100), "a policy that is asked")
        os.kill(process.pid, signal.SIGHUP)
        more = log.stat().st_size + 100
        wait_until(living.asked(log, more), "a policy that is asked on")
        assert stopped(process, signal.SIGTERM)[0] == 143


@pytest.mark.parametrize(
    "signum",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGHUP, signal.SIGKILL))],
)
def test_paper(signum, tmp_path):
    """`paper` ends at once although a cell is under way, with its workers, and says what is kept."""
    log = paper_fakes.write(tmp_path, "e01_first", slow=0)
    code = paper_fakes.command_line(tmp_path)
    with running(sys.executable, "-c", code, "paper", "--quick", "--workers", "2") as process:
        wait_until(lambda: log.exists() and len(log.read_text().splitlines()) == 2, "two cells")
        kept = Path("out/paper/cells/quick/e01_first")
        wait_until(lambda: len(list(kept.glob("c*.json"))) == 2, "two cells on disk")
        workers = workers_of(process)
        status, out, err = stopped(process, signum)
        assert_gone(workers)
    wanted = "cells are kept in out/paper; the same command goes on from there"
    if signum == signal.SIGKILL:
        assert (status, out, err) == (-signal.SIGKILL, "", "")
    else:
        assert (status, out) == (128 + signum, "")
        assert err.splitlines()[-1].startswith("interrupted: ")
        assert err.splitlines()[-1].endswith(wanted)
