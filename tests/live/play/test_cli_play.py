"""`malleable play`: one line per policy, JSON on demand, errors of ours, and Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from pathlib import Path

from malleable.results import Comparison
from support.living import listens, running, wait_until
from support.shell import malleable

SMALL = ("play", "paper", "--cores", "8", "--load", "0.3", "--jobs", "60", "--speed", "20")
REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "json.md"


def test_a_table():
    """Live and simulated cost of each policy stand side by side, with what to know about them."""
    done = malleable(*SMALL, "--policy", "wham,equi")
    assert done.status == 0
    assert done.out.startswith("paper, 8 cores, load 0.3, 60 jobs, live and simulated")
    assert re.search(r"^ wham .*%", done.out, re.MULTILINE)
    assert re.search(r"^ equi .*%", done.out, re.MULTILINE)
    assert "20 units of time per second, jobs sleeping" in done.out
    assert "in the same order live as simulated: " in done.out
    assert not done.err


def test_json_and_files(tmp_path):
    """One document on stdout, whose keys are documented, and a folder with everything."""
    done = malleable(*SMALL, "--json", "--out", str(tmp_path / "out"))
    document = json.loads(done.out)
    (section,) = [s for s in REFERENCE.read_text("utf-8").split("\n## ") if s.startswith("malleable play ")]
    added = {"simulated", "difference", "lateness"}
    assert added <= set(document["results"][0])
    for key in {*document, *added, *document["results"][0]["lateness"], "share"}:
        assert any(f"{before}{key}`" in section for before in "`."), key
    assert document["results"][0]["policy"] == "wham"
    saved = Comparison.read(tmp_path / "out" / "comparison.json")
    assert [result.policy for result in saved.results] == ["wham", "wham (simulated)"]


def test_errors_are_one_line():
    """What makes no sense is one line and a hint."""
    for wrong, says in (
        (("--speed", "fast"), "speed must be a number"),
        (("--speed", "-1"), "speed"),
        (("--policy", "whim"), "whim"),
        (("--cores", "2.5"), "whole number"),
        (("--cores", "100000", "--burn"), "cannot burn"),
        (("--load", "2"), "load"),
    ):
        done = malleable(*SMALL, *wrong)
        assert done.status == 1, wrong
        assert done.err.startswith("error: "), wrong
        assert says in done.err
        assert "hint: " in done.err
        assert "Traceback" not in done.err


def test_interrupted():
    """Ctrl-C ends it with one line more than the numbers so far, and the status that shells expect."""
    command = [sys.executable, "-m", "malleable", "play", "paper", "--cores", "8", "--load", "0.3"]
    command += ["--jobs", "100000", "--warmup", "0", "--speed", "5", "--policy", "equi"]
    with running(*command) as process:
        wait_until(lambda: listens(process), "the handlers")
        time.sleep(2.0)  # most likely it plays by then; whatever it does, it is to end in the same way
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    if out:  # it may not have come as far as to have numbers
        assert "[interrupted]" in out
        assert "these are the numbers so far" in err
