"""Comparisons at several loads: paired within each load, and told apart in tables, JSON and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from malleable import Comparison, compare
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
