"""Long runs: Ctrl-C keeps what was done, a terminal shows a bar, and Ray gives the same numbers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from support.cli_checks import as_json, assert_one_line
from support.cli_runs import MODERATE, steady
from support.living import wait_until
from support.shell import environment, malleable, shown_on_terminal

pytestmark = pytest.mark.usefixtures("with_policies")

# --- Ctrl-C -----------------------------------------------------------------------------------------------

LONG = ("paper", "--cores", "64", "--load", "0.25", "--jobs", "5e8")


def listen() -> None:
    """Have the child hear Ctrl-C even if the tests themselves were started in the background, deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(*arguments: str) -> tuple[int, str, str]:
    """Start a long command, press Ctrl-C when it has been computing for a while, return what it left."""
    command = [Path(sys.executable).parent / "malleable", *arguments]
    # Where it compiles first it has not got anywhere yet; then it is given longer.
    for seconds in (2.0, 15.0, 40.0):
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(),
            preexec_fn=listen,  # noqa: PLW1509 - nothing else runs in the child before exec
        )
        try:
            wait_until(partial(has_spent, seconds, process.pid), "a run that is under way", 300.0)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=100)
        finally:
            process.kill()
        if out:
            break
    return process.returncode, out, err


def has_spent(seconds: float, pid: int) -> bool:
    """Whether a process and its children have used so much of the cores; on busy ones it takes longer."""
    process = psutil.Process(pid)
    try:
        times = [one.cpu_times() for one in (process, *process.children())]
    except psutil.NoSuchProcess:
        return False
    return sum(one.user + one.system for one in times) > seconds


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param([], id="alone", marks=pytest.mark.slow),
        pytest.param(["--replications", "2"], id="spread"),
    ],
)
def test_interrupted_simulation(spread):
    """Ctrl-C prints what was done so far, marked as interrupted, and exits with 130."""
    status, out, err = interrupted("simulate", *LONG, *spread, "--json")
    assert status == 130, err
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert 0 < document["jobs"] < 8_000_000_000
    assert document["cost"]["mean"] > document["bound"]
    assert err.startswith("interrupted")
    assert "Traceback" not in err


@pytest.mark.slow
def test_interrupted_comparison():
    """Ctrl-C during a comparison leaves what was found, and says that it was interrupted."""
    status, out, err = interrupted("compare", *LONG, "--policies", "wham,equi")
    assert status == 130, err
    assert "[interrupted]" in out
    assert "Traceback" not in err


# --- progress ---------------------------------------------------------------------------------------------


def on_terminal(*arguments: str) -> str:
    """What a command shows on stderr when that is a terminal."""
    command = [Path(sys.executable).parent / "malleable", *arguments]
    there = {**environment(), "TERM": "xterm"}
    return shown_on_terminal(
        lambda stderr: subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=there)
    )


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param([], id="alone"),
        pytest.param(["--replications", "2"], id="spread", marks=pytest.mark.slow),
    ],
)
def test_progress_bar(spread):
    """On a terminal there is a bar with the share done, the rate and the time left; before, a word."""
    shown = on_terminal("simulate", "paper", "-n", "64", "--load", "0.25", "--jobs", "4e6", *spread)
    assert "first use compiles" in shown
    assert re.search(r"\d+%", shown)
    assert re.search(r"[\d.]+ [Mk] jobs/s", shown)
    assert re.search(r"\d:\d\d:\d\d", shown)


def test_progress_in_python():
    """`progress=True` shows the same bar from Python, and nothing where there is no terminal."""
    script = (
        "import malleable; print(malleable.simulate('paper', 64, load=0.25, jobs=4e6, progress=True).jobs)"
    )
    shown = shown_on_terminal(
        lambda stderr: subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={**environment(), "TERM": "xterm"},
        )
    )
    assert re.search(r"[\d.]+ [Mk] jobs/s", shown)
    quiet = subprocess.run(
        [sys.executable, "-c", script.replace("4e6", "4e3")],
        capture_output=True, encoding="utf-8", env=environment(), timeout=100, check=True,
    )  # fmt: skip
    assert quiet.stderr == ""


# --- Ray --------------------------------------------------------------------------------------------------


def test_ray_gives_the_same_numbers():
    """A Ray cluster gives the same results as this machine; policies in files travel with the tasks."""
    arguments = ("compare", *MODERATE, "--policies", "wham,mine.py:equal")
    done = subprocess.run(
        [Path(sys.executable).parent / "malleable", *arguments, "--ray", "local", "--json"],
        capture_output=True,
        encoding="utf-8",
        env={**environment(), "RAY_USAGE_STATS_ENABLED": "0"},
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here = as_json(*arguments)
    there = json.loads(done.stdout)
    assert there["differences"] == here["differences"]
    assert [steady(r) for r in there["results"]] == [steady(r) for r in here["results"]]


def test_no_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert_one_line(malleable("simulate", *MODERATE, "--ray", "auto"), "needs ray", "malleable[ray]")
