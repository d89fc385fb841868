"""`malleable simulate` and `malleable compare`, used as people use them: JSON, tables, files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from malleable import Comparison, Result
from malleable.catalog import split_policies
from support.cli_checks import REFERENCE, as_json, assert_one_line
from support.cli_runs import MODERATE, steady
from support.shell import malleable

pytestmark = pytest.mark.usefixtures("with_policies")
DESIGNED = {
    *("policy", "cores", "load", "seed", "jobs", "warmup", "cost", "bound", "gap", "utilisation", "overload"),
    *("classes", "events_per_second", "stable"),
}
MORE = {
    *("status", "notes", "effective_load", "workload", "replications", "seeds", "confidence", "batches"),
    *("control_variates", "precision", "precision_reached", "warmup_given", "events", "seconds", "versions"),
    *("bound_tight", "bound_name", "whole_cores", "blocking", "mean_cores", "pool_loads"),
    *("bound_jobs", "gap_jobs"),
}
DESIGNED_CLASS = {"name", "response_time", "p50", "p95", "p99", "jobs"}
MORE_CLASS = {"slowdown", "width", "present", "little", "resizes"}


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
