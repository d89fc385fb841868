"""Random kills, random terminals: always a documented exit, never a traceback, an orphan or half a file."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from malleable import Comparison, Result
from support import living
from support.living import MALLEABLE, assert_gone, children, running, wait_until
from support.shell import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc"),
]

RUN = ("paper", "--cores", "16", "--load", "0.25")
COMMANDS = {
    "simulate": ("simulate", *RUN, "--jobs", "2e7", "--replications", "2", "--out", "kept/run"),
    "compare": ("compare", *RUN, "--jobs", "2e7", "--policies", "wham,equi,srpt", "--out", "kept"),
    "slow": ("simulate", *RUN, "--jobs", "2000", "--policy", "slow.py:slow", "--workers", "2",
             "--replications", "3", "--out", "kept/run"),
    "paper": ("paper", "--quick", "--only", "e01_speedups", "--out", "kept"),
}  # fmt: skip
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def check_files() -> None:
    """Whatever was saved is whole."""
    for path in Path("kept").rglob("*.json"):
        json.loads(path.read_text("utf-8"))
    if Path("kept/run.json").exists():
        assert Result.read("kept/run").jobs > 0
    if Path("kept/comparison.json").exists():
        assert Comparison.read("kept/comparison").results


@pytest.mark.parametrize("seed", range(40))
def test_random_kills(seed, tmp_path):
    """One to three signals at random moments, to the command alone or to all of its processes."""
    chance = random.Random(seed)
    living.write_slow_policies(tmp_path)
    signals = [chance.choice(SIGNALS) for _ in range(chance.choice([1, 1, 2, 3]))]
    with running(MALLEABLE, *chance.choice(list(COMMANDS.values()))) as process:
        wait_until(lambda: process.poll() is not None or living.listens(process), "a handler")
        family = [process.pid]
        sent = []
        for signum in signals:
            end = time.monotonic() + chance.choice([0.01, 0.3, 1.0, 3.0, 8.0]) * chance.random()
            while time.monotonic() < end and process.poll() is None:
                family = sorted({*family, *children(process.pid)})
                time.sleep(0.01)
            if process.poll() is not None:
                break
            # A group that is killed with -9 has no process left that could say so.
            group = chance.random() < 0.5
            family = sorted({*family, *children(process.pid)})
            (os.killpg if group else os.kill)(process.pid, signum)
            sent.append(signum)
        family = sorted({*family, *children(process.pid)})
        out, err = process.communicate(timeout=120)
        statuses = {0, *(128 + s for s in sent), *(-s for s in sent if s == signal.SIGKILL)}
        assert process.returncode in statuses, (sent, out, err)
        assert "Traceback" not in out + err
        assert "rror" not in err.replace("SlowPolicyWarning", "")
        if process.returncode > 0:
            assert "interrupted" in err.splitlines()[-1]
        assert_gone(family)
    check_files()


VERBS = (
    ("bound", "paper", "-n", "64"),
    ("bound", "paper", "-n", "64", "--json"),
    ("bound", "papr", "-n", "64"),
    ("bound", "größe[/].toml", "-n", "64"),
    ("bound", "caf\udce9.toml", "-n", "64"),
    ("bond",),
    ("allocate", "paper", "-n", "8", "--jobs", "-"),
    ("meanfield", "paper", "-n", "16", "--load", ".25", "--starts", "1"),
    ("simulate", *RUN, "--jobs", "500", "--out", "kept/run"),
    ("simulate", *RUN, "--jobs", "500", "--confidence", "0"),
    ("compare", *RUN, "--jobs", "500", "--policies", "wham,fixed-width:widths=2/2/2", "--out", "kept"),
    ("list",),
    ("list", "policies", "--json"),
    ("simulate", "--help"),
    ("--version",),
)
JOBS = (
    b"id,class,remaining\na,class-1,1\n",
    'id,class,remaining\n"größe[/]",class-1,1\n'.encode(),
    b"\xff\xfe\x00",
    b"id,class,remaining\n\xe9,class-1,1\n",
    b"",
)
REDIRECTIONS = (
    "",
    ">&-",
    "2>&-",
    "<&-",
    ">/dev/full",
    "2>/dev/full",
    "| head -1",
    ">&- 2>&- <&-",
    "1</dev/null",
)


@pytest.mark.parametrize("seed", range(80))
def test_random_terminals(seed):
    """Any verb with any encoding, width, terminal and set of open streams: no traceback, a sensible exit."""
    chance = random.Random(seed)
    there = {key: value for key, value in environment().items() if key not in {"COLUMNS", "TERM"}}
    settings = {
        "PYTHONIOENCODING": ["", "ascii", "latin-1", "utf-8", "utf-16", "cp437", "ascii:strict"],
        "LANG": ["C", "C.UTF-8", "POSIX", "nonsense"],
        "LC_ALL": ["", "C", "C.UTF-8"],
        "PYTHONUTF8": ["", "0", "1"],
        "TERM": ["", "dumb", "xterm", "xterm-256color", "nonsense"],
        "COLUMNS": ["", "0", "1", "7", "20", "80", "1000", "-5", "many"],
        "HOME": [there.get("HOME", "/"), "/proc", "/nonexistent"],
        "FORCE_COLOR": ["", "1"],
    }
    for key, values in settings.items():
        there.pop(key, None)
        if value := chance.choice(values):
            there[key] = value
    verb, redirection = chance.choice(VERBS), chance.choice(REDIRECTIONS)
    line = f'"$@" {redirection}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", MALLEABLE, *map(os.fsencode, verb)],
        input=chance.choice(JOBS),
        capture_output=True,
        env=there,
        timeout=120,
        check=False,
    )
    told = (verb, redirection, {key: there.get(key) for key in settings}, done)
    assert done.returncode in {0, 1, 2}, told
    assert b"Traceback" not in done.stdout + done.stderr, told
    assert b"Exception ignored" not in done.stderr, told
    check_files()
