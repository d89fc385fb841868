"""`malleable simulate` and `malleable compare`, used as people use them."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from malleable import Comparison, Result
from malleable.catalog import split_policies
from support.shell import environment, malleable

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
MODERATE = ("paper", "--cores", "16", "--load", "0.25", "--jobs", "4000")
DESIGNED = {
    *("policy", "cores", "load", "seed", "jobs", "warmup", "cost", "bound", "gap", "utilisation", "overload"),
    *("classes", "events_per_second", "stable"),
}
MORE = {
    *("status", "notes", "effective_load", "workload", "replications", "seeds", "confidence", "batches"),
    *("control_variates", "precision", "precision_reached", "warmup_given", "events", "seconds", "versions"),
    *("bound_tight", "bound_name", "whole_cores", "blocking"),
}
DESIGNED_CLASS = {"name", "response_time", "p50", "p95", "p99", "jobs"}
MORE_CLASS = {"slowdown", "width", "present", "little"}
MINE = """\
from dataclasses import dataclass

import numpy as np

from malleable.contracts import Allocation, Policy


def equal(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = cores / len(out)


def raises(jobs, cores):
    return [1 / 0]


def too_much(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = cores


def nothing_known(jobs, cores):
    return np.full(len(jobs), np.nan)


def negative(jobs, cores):
    return np.full(len(jobs), -1.0)


@dataclass(frozen=True)
class Broken(Policy):
    \"\"\"Raises when asked.\"\"\"

    def allocate(self, jobs, cores, *, integer=False):
        raise KeyError("nothing here")
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own, with a file of policies."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)


def as_json(*arguments: str):
    """The JSON document of a command that must succeed, with nothing on stderr."""
    done = malleable(*arguments, "--json")
    assert (done.status, done.err) == (0, ""), done
    return json.loads(done.out, parse_constant=pytest.fail)


def steady(document):
    """The document without what depends on the machine and the moment."""
    return {key: value for key, value in document.items() if key not in {"seconds", "events_per_second"}}


# --- what the JSON holds ----------------------------------------------------------------------------------


def test_simulate_json():
    """`simulate` has the keys of the design and those that the reference adds, and no others."""
    document = as_json("simulate", *MODERATE, "--policy", "wham", "--seed", "3")
    assert set(document) == DESIGNED | MORE
    assert set(document["cost"]) == {"mean", "low", "high"}
    assert [set(row) for row in document["classes"]] == [DESIGNED_CLASS | MORE_CLASS] * 3
    assert [row["name"] for row in document["classes"]] == ["class-1", "class-2", "class-3"]
    assert set(document["classes"][0]["response_time"]) == {"mean", "low", "high"}
    assert (document["policy"], document["cores"], document["seed"]) == ("wham", 16.0, 3)
    assert (document["jobs"], document["load"]) == (4000, pytest.approx(0.25))
    assert document["cost"]["low"] < document["cost"]["mean"] < document["cost"]["high"]
    assert document["gap"] == pytest.approx(document["cost"]["mean"] / document["bound_tight"] - 1.0)
    assert document["stable"] is True
    assert document["status"] == "complete"


def test_compare_json():
    """`compare` has results as `simulate` and differences from the first policy at the same cores."""
    arguments = ("paper", "--cores", "8,16", "--policies", "wham,equi", "--load", "0.25", "--jobs", "4000")
    document = as_json("compare", *arguments)
    assert set(document) == {"results", "differences"}
    assert [(r["cores"], r["policy"]) for r in document["results"]] == [
        (8.0, "wham"), (8.0, "equi"), (16.0, "wham"), (16.0, "equi"),
    ]  # fmt: skip
    assert all(set(r) == DESIGNED | MORE for r in document["results"])
    keys = {"cores", "load", "policy", "baseline", "mean", "low", "high"}
    assert [set(row) for row in document["differences"]] == [keys] * 2
    pairs = [document["results"][:2], document["results"][2:]]
    for row, (wham, equi) in zip(document["differences"], pairs, strict=True):
        assert (row["policy"], row["baseline"]) == ("equi", "wham")
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["mean"] == pytest.approx(equi["cost"]["mean"] - wham["cost"]["mean"], abs=0.01)


def test_compare_is_simulate():
    """A row of `compare` is what `simulate` says with the same seed, however the work was spread."""
    alone = as_json("simulate", *MODERATE, "--policy", "equi", "--replications", "2")
    rows = as_json("compare", *MODERATE, "--policies", "wham,equi", "--replications", "2")["results"]
    assert steady(rows[1]) == steady(alone)


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_every_json_key_is_documented(verb):
    """docs/reference/json.md has every key that the commands write."""
    (section,) = [
        s for s in REFERENCE.read_text("utf-8").split("\n## ") if s.startswith(f"malleable {verb} ")
    ]
    keys = {
        "simulate": DESIGNED | MORE | DESIGNED_CLASS | MORE_CLASS,
        "compare": {"results", "differences", "baseline", "policy", "cores", "load", "mean", "low", "high"},
    }
    for key in keys[verb]:
        assert any(f"{before}{key}`" in section for before in "`."), key


def test_baseline():
    document = as_json("compare", *MODERATE, "--policies", "wham,equi", "--baseline", "equi")
    assert [(d["policy"], d["baseline"]) for d in document["differences"]] == [("wham", "equi")]


def test_seeds_of_replications_follow_one_another():
    document = as_json("simulate", *MODERATE, "--replications", "3", "--seed", "5")
    assert (document["seeds"], document["replications"], document["jobs"]) == ([5, 6, 7], 3, 12000)


def test_interpreted_is_bit_identical():
    """The kernels give the same numbers uncompiled."""
    arguments = ("simulate", "paper", "-n", "16", "--load", "0.25", "--jobs", "600", "--policy", "wham")
    assert steady(as_json(*arguments, "--interpreted")) == steady(as_json(*arguments))


def test_precision():
    """With a precision the run goes on until it is met, and says so when the jobs do not suffice."""
    good = as_json("simulate", "paper", "-n", "16", "--load", "0.25", "--precision", "0.02")
    assert good["precision_reached"] is True
    assert good["cost"]["high"] - good["cost"]["low"] <= 2 * 0.02 * good["cost"]["mean"]
    short = as_json("simulate", *MODERATE, "--precision", "0.0001")
    assert (short["precision_reached"], short["status"]) == (False, "precision not reached")


def test_warmup_and_confidence():
    wide = as_json("simulate", *MODERATE, "--warmup", "500", "--confidence", "0.999")
    assert wide["warmup"] >= 500
    assert (wide["warmup_given"], wide["confidence"]) == (500, 0.999)


def test_allow_unstable():
    """An unstable load runs if asked to, and is labelled; there is no bound to compare with."""
    arguments = ("simulate", "paper", "-n", "8", "--load", "1.1", "--jobs", "3000", "--allow-unstable")
    document = as_json(*arguments)
    assert (document["stable"], document["status"]) == (False, "finite horizon (unstable)")
    assert (document["bound"], document["gap"]) == (None, None)
    assert "[finite horizon (unstable)]" in malleable(*arguments).out


def test_widths():
    document = as_json("simulate", *MODERATE, "--widths")
    assert all(1.0 <= row["width"]["p50"] <= 16.5 for row in document["classes"])
    assert "Cores that work was done on" in malleable("simulate", *MODERATE, "--widths").out


@pytest.mark.parametrize("policy", ["mine.py:equal", "hesrpt", "fw-cam-repaired", "fixed-width:widths=2/2/2"])
def test_policies_of_every_shape(policy):
    assert as_json("simulate", *MODERATE, "--policy", policy)["policy"] == policy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wham,equi", ["wham", "equi"]),
        (" wham , equi,", ["wham", "equi"]),
        ("fixed-width:widths=4,shared=false,wham", ["fixed-width:widths=4,shared=false", "wham"]),
        ("a.py:Mine:x=1,y=2,b.py:f", ["a.py:Mine:x=1,y=2", "b.py:f"]),
    ],
)
def test_lists_of_policies(text, expected):
    """Commas separate policies, and also the options of one."""
    assert split_policies(text) == expected


# --- tables for people ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["simulate", *MODERATE], ["cost per job", "±", "lower bound (V*", "0.170353", "p99", "utilis"]),
        (["compare", *MODERATE, "--policies", "wham,equi"], ["differences from wham", "equi", "±", "gap"]),
        (["simulate", *MODERATE, "--precision", "1e-4"], ["[precision not reached]"]),
        (["compare", *MODERATE, "--policies", "wham,equi", "--precision", "1e-4"], ["equi *", "reached]"]),
    ],
)  # fmt: skip
def test_tables(command, words):
    """Without --json there is a table with the numbers, on stdout only, within 80 columns."""
    done = malleable(*command)
    assert (done.status, done.err) == (0, "")
    for word in words:
        assert word in done.out
    assert max(map(len, done.out.splitlines())) <= 80


# --- files ------------------------------------------------------------------------------------------------


def test_simulate_out():
    """--out saves a result that reads back equal to what was printed."""
    printed = as_json("simulate", *MODERATE, "--out", "kept/run")
    assert Result.read("kept/run.json").to_dict() == printed
    assert "saved to kept/run.json" in malleable("simulate", *MODERATE, "--out", "kept/run").out


def test_compare_out():
    """--out DIR saves the comparison with its records, and the table as CSV."""
    printed = as_json("compare", *MODERATE, "--policies", "wham,equi", "--out", "kept")
    assert Comparison.read("kept/comparison.json").to_dict() == printed
    with Path("kept/comparison.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["class"]) for row in rows[2:4]] == [("wham", "class-3"), ("equi", "class-1")]
    assert float(rows[3]["difference"]) == printed["differences"][0]["mean"]


def test_out_that_cannot_be_written():
    Path("file").write_text("")
    assert_one_line(malleable("simulate", *MODERATE, "--out", "file/run"), "cannot write")


# --- errors -----------------------------------------------------------------------------------------------


def assert_one_line(done, *words: str) -> None:
    """One `error:` line, at most one `hint:` line behind it, exit 1, nothing on stdout."""
    lines = [line for line in done.err.splitlines() if not line.startswith("warning: ")]
    assert (done.status, done.out) == (1, ""), done
    assert lines[0].startswith("error: "), done.err
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: ")), done.err
    for word in words:
        assert word in done.err


BAD_OPTIONS = {
    "--jobs 0": ["jobs must be a whole number of at least 1, got 0"],
    "--jobs -5": ["jobs", "-5"],
    "--jobs many": ["jobs must be a whole number, got 'many'", "--jobs 1e6"],
    "--jobs 1.5": ["'1.5'"],
    "--jobs nan": ["'nan'"],
    "--jobs inf": ["'inf'"],
    "--precision 0": ["precision must lie between 0 and 1"],
    "--precision 2": ["0.01 means"],
    "--precision high": ["precision must be a number, got 'high'", "--precision 0.01"],
    "--seed -1": ["seed"],
    "--seed x": ["seed must be a whole number"],
    "--replications 0": ["replications"],
    "--confidence 1": ["confidence"],
    "--warmup -1": ["warmup"],
    "--warmup 4000": ["warm-up of 4000 jobs leaves nothing"],
    "--load half": ["load must be a number"],
    "--load 1.2": ["load", "1.2", "20 cores", "--allow-unstable"],
}


@pytest.mark.parametrize(("option", "words"), BAD_OPTIONS.items(), ids=BAD_OPTIONS.keys())
@pytest.mark.parametrize("verb", ["simulate", "compare --policies wham"])
def test_bad_options(verb, option, words):
    name, value = option.split()
    assert_one_line(malleable(*verb.split(), *MODERATE, f"{name}={value}"), *words)


@pytest.mark.parametrize("cores", ["0", "-1", "many", "8.5", "inf"])
@pytest.mark.parametrize("verb", ["simulate", "compare --policies wham"])
def test_bad_cores(verb, cores):
    assert_one_line(malleable(*verb.split(), "paper", f"--cores={cores}"), "cores")


@pytest.mark.parametrize("verb", ["simulate --policy", "compare --policies"])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("whan", ["did you mean 'wham'"]),
        ("fw-cam:beta=2", ["beta"]),
        ("mine.py:Absent", ["'Absent'"]),
        ("mine.py:too_much", ["mine.py:too_much", "more than 16 cores", "of class-", "cores 16, 16"]),
        ("mine.py:nothing_known", ["mine.py:nothing_known", "NaN", "of class-"]),
        ("mine.py:negative", ["mine.py:negative", "negative", "cores -1"]),
    ],
)
def test_bad_policies(verb, policy, words):
    """A policy that breaks the rules is named, with the state and the numbers."""
    assert_one_line(malleable(*verb.split(), policy, *MODERATE), *words)


@pytest.mark.parametrize("spread", [[], ["--replications", "2"]], ids=["alone", "spread"])
@pytest.mark.parametrize(
    ("policy", "line"), [("raises", "return [1 / 0]"), ("Broken", 'raise KeyError("nothing here")')]
)
def test_policy_that_raises(policy, line, spread, capfd):
    """A policy's own error: its traceback from the user's code on, then one line; wherever it ran."""
    done = malleable("simulate", *MODERATE, "--policy", f"mine.py:{policy}", *spread)
    text = "\n".join(row for row in done.err.splitlines() if not row.startswith("warning: "))
    assert done.status == 1
    assert done.out == ""
    assert text.startswith("Traceback (most recent call last):\n")
    assert line in text
    assert "src/malleable" not in text
    assert [row for row in text.splitlines() if row.startswith("error: ")] == [
        f"error: the policy mine.py:{policy} raised "
        + {"raises": "ZeroDivisionError: division by zero", "Broken": "KeyError: 'nothing here'"}[policy]
    ]
    capfd.readouterr()


@pytest.mark.parametrize("baseline", ["knee", "whan"])
def test_unknown_baseline(baseline):
    assert_one_line(malleable("compare", *MODERATE, "--policies", "wham", "--baseline", baseline), baseline)


def test_nothing_to_compare():
    assert_one_line(malleable("compare", *MODERATE, "--policies", ","), "nothing to compare")


# --- Ctrl-C -----------------------------------------------------------------------------------------------

LONG = ("paper", "--cores", "64", "--load", "0.25", "--jobs", "5e8")


def listen() -> None:
    """Have the child hear Ctrl-C even if the tests themselves were started in the background, deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(*arguments: str) -> tuple[int, str, str]:
    """Start a long command, press Ctrl-C when it has been running for a while, return what it left."""
    command = [Path(sys.executable).parent / "malleable", *arguments]
    # On a busy machine it may not have got anywhere yet; then it is given longer.
    for seconds in (6.0, 20.0, 40.0):
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(),
            preexec_fn=listen,  # noqa: PLW1509 - nothing else runs in the child before exec
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=100)
        finally:
            process.kill()
        if out:
            break
    return process.returncode, out, err


@pytest.mark.parametrize("spread", [[], ["--replications", "2"]], ids=["alone", "spread"])
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


def test_interrupted_comparison():
    status, out, err = interrupted("compare", *LONG, "--policies", "wham,equi")
    assert status == 130, err
    assert "[interrupted]" in out
    assert "Traceback" not in err


# --- progress ---------------------------------------------------------------------------------------------


def on_terminal(*arguments: str) -> str:
    """What a command shows on stderr when that is a terminal."""
    ours, theirs = pty.openpty()
    there = {**environment(), "TERM": "xterm"}
    command = [Path(sys.executable).parent / "malleable", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=there)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return shown.decode()


@pytest.mark.parametrize("spread", [[], ["--replications", "2"]], ids=["alone", "spread"])
def test_progress_bar(spread):
    """On a terminal there is a bar with the share done, the rate and the time left; before, a word."""
    shown = on_terminal("simulate", "paper", "-n", "64", "--load", "0.25", "--jobs", "2e7", *spread)
    assert "first use compiles" in shown
    assert re.search(r"\d+%", shown)
    assert re.search(r"[\d.]+ [Mk] jobs/s", shown)
    assert re.search(r"\d:\d\d:\d\d", shown)


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
