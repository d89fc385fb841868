"""Comparisons at several loads: paired within each load, and told apart in tables, JSON and files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from malleable import Comparison, compare, simulate
from malleable.statistics import Estimate
from support.shell import malleable

FAST = ("paper", "--cores", "8,16", "--policies", "wham,equi", "--jobs", "2000")
PLACES = [(8.0, 0.3), (8.0, 0.6), (16.0, 0.3), (16.0, 0.6)]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare("paper", [8, 16], ["wham", "equi"], load=[0.3, 0.6], jobs=2000)


def test_each_load_is_what_it_is_alone(found):
    """The rows at a load are those of a comparison at this load alone, differences included."""
    assert [(d.cores, round(d.load, 9)) for d in found.differences] == PLACES
    for load in (0.3, 0.6):
        alone = compare("paper", [8, 16], ["wham", "equi"], load=load, jobs=2000)
        assert [r.cost for r in found.results if r.load == pytest.approx(load)] == [
            r.cost for r in alone.results
        ]
        assert [d for d in found.differences if d.load == pytest.approx(load)] == list(alone.differences)


def test_json_and_files(found):
    """Rows and differences have their load; what is saved reads back; the table has each difference once."""
    done = malleable("compare", *FAST, "--load", ".3,.6", "--json", "--out", "kept")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    places = [(row["cores"], round(row["load"], 9)) for row in document["differences"]]
    assert places == PLACES
    assert [round(row["load"], 9) for row in document["results"]] == [0.3, 0.3, 0.6, 0.6] * 2
    assert document["differences"] == found.to_dict()["differences"]
    kept = Comparison.read("kept/comparison.json")
    assert kept.differences == found.differences
    rows = list(csv.DictReader(Path("kept/comparison.csv").read_text("utf-8").splitlines()))
    differences = [row["difference"] for row in rows if row["policy"] == "equi" and row["class"] == "class-1"]
    assert [float(value) for value in differences] == [d.mean for d in found.differences]


def test_comparison_saved_before_there_were_loads():
    """A file whose differences have no load gets it from its results."""
    alone = compare("paper", [8, 16], ["wham", "equi"], load=0.3, jobs=2000)
    path = alone.save("old")
    document = json.loads(path.read_text("utf-8"))
    for row in document["differences"]:
        del row["load"]
    path.write_text(json.dumps(document), "utf-8")
    assert Comparison.read(path).differences == alone.differences


def test_table():
    """With several loads there is a column for them; with one it stands above."""
    several = malleable("compare", *FAST, "--load", ".3,.6").out
    assert "cores   load   policy" in several
    assert "16      0.6    equi" in several
    one = malleable("compare", *FAST, "--load", ".3").out
    assert "paper, load 0.3; differences from wham" in one
    assert "cores   policy" in one


def test_str_names_the_load(found):
    assert "equi − wham on 8 cores at load 0.3:" in str(found)


FOUR = """
[[classes]]
name = "query"
holding_cost = 3.0
arrivals = { kind = "renewal", interval = { kind = "erlang", stages = 2, mean = 0.25 } }
size = { kind = "hyperexponential", probabilities = [0.9, 0.1], rates = [4.0, 0.5] }
speedup = { kind = "power", exponent = 0.4 }
[[classes]]
name = "train"
arrivals = { kind = "renewal", interval = { kind = "erlang", stages = 2, mean = 2.0 } }
size = { kind = "hyperexponential", probabilities = [0.7, 0.3], rates = [0.5, 0.125] }
speedup = { kind = "amdahl", sequential = 0.05 }
[[classes]]
name = "render"
arrivals = { kind = "renewal", interval = { kind = "erlang", stages = 3, mean = 1.0 } }
size = { kind = "hyperexponential", probabilities = [0.8, 0.2], rates = [2.0, 0.3] }
speedup = { kind = "usl", contention = 0.03, coherency = 0.0005 }
[[classes]]
name = "etl"
arrivals = { kind = "renewal", interval = { kind = "erlang", stages = 2, mean = 1.0 } }
size = { kind = "hyperexponential", probabilities = [0.5, 0.5], rates = [1.0, 9.0] }
speedup = { kind = "table", cores = [1, 2, 4, 8, 16], speedup = [1, 1.9, 3.5, 5.6, 7] }
"""
"""Workload of a user whose costs once contradicted their difference."""


def test_costs_differ_as_the_paired_difference_says():
    """Costs side by side are as far apart as the interval of their paired difference allows."""
    Path("four.toml").write_text(FOUR, "utf-8")
    found = compare("four.toml", 128, ["wham", "equi"], load=[0.3, 0.5, 0.8], jobs=100_000)
    costs = {(r.load, r.policy): r.cost.mean for r in found.results}
    for d in found.differences:
        assert d.low <= costs[d.load, "equi"] - costs[d.load, "wham"] <= d.high
    assert not any("paired" in note for r in found.results for note in r.notes)


def test_costs_of_runs_of_different_lengths_say_so():
    """Where costs cannot share a regression and contradict the difference, a note names the one to trust."""
    ours = simulate("paper", 16, "wham", load=0.6, jobs=2000)
    theirs = simulate("paper", 16, "equi", load=0.6, jobs=3000)
    moved = replace(theirs, cost=Estimate(9.0, 8.9, 9.1))
    (_, noted) = Comparison.of([ours, moved]).results
    assert "the one to trust" in noted.notes[-1]
