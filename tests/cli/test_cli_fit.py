"""`malleable fit`: the documents, the tables, the picture, and the mistakes of people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.json_keys import keys
from support.shell import malleable

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
RUNS = "cores,time\n1,100\n1,102\n2,53\n2,52\n4,29\n4,30\n8,18\n8,18.2\n"
SIZES = "\n".join(map(str, [1, 1, 2, 2, 3, 3, 4, 5, 9, 30])) + "\n"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own, with two files."""
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text(RUNS)
    Path("sizes.txt").write_text(SIZES)


def as_json(*arguments: str, stdin: str = ""):
    done = malleable("fit", *arguments, "--json", stdin=stdin)
    assert (done.status, done.err) == (0, "")
    return json.loads(done.out, parse_constant=pytest.fail)


def test_the_document():
    """The keys of the design, and what they say."""
    document = as_json("runs.csv")
    assert {"speedup", "family", "criterion", "points"} <= set(document)
    assert document["speedup"]["kind"] == document["family"] == "amdahl"
    assert document["criterion"] == "leave-one-width-out error"
    for point in document["points"]:
        assert {"cores", "time", "speedup", "low", "high"} <= set(point)
        assert point["low"] <= point["speedup"] <= point["high"]
        assert point["speedup"] == pytest.approx(document["one_core"] / point["time"])
    assert [point["cores"] for point in document["points"]] == [1.0, 2.0, 4.0, 8.0]
    assert document["points"][0]["time"] == pytest.approx(101.0, rel=1e-3)
    assert (
        document["line"]
        == f'speedup = {{ kind = "amdahl", sequential = {document["speedup"]["sequential"]} }}'
    )


@pytest.mark.parametrize(
    "arguments", [("runs.csv",), ("--sizes", "sizes.txt"), ("1@2,2@1", "--family", "hull")]
)
def test_every_json_key_is_documented(arguments):
    """docs/reference/json.md has every key that the command writes."""
    (section,) = [s for s in REFERENCE.read_text("utf-8").split("\n## ") if s.startswith("malleable fit ")]
    for key in keys(as_json(*arguments)):
        assert any(f"{before}{key}`" in section for before in "`."), key


def test_standard_input():
    """A dash reads the pipe, and says the same as the file."""
    assert as_json("-", stdin=RUNS)["speedup"] == as_json("runs.csv")["speedup"]
    assert as_json("--sizes", "-", stdin=SIZES)["size"] == as_json("--sizes", "sizes.txt")["size"]


def test_for_people():
    """Measured beside fitted, the scores with a mark at the chosen one, and the line."""
    done = malleable("fit", "runs.csv")
    assert (done.status, done.err) == (0, "")
    for word in ("95 % band", "residual", "amdahl *", "error at a width that was left out"):
        assert word in done.out
    assert done.out.splitlines()[-1].startswith('speedup = { kind = "amdahl", sequential = 0.0')


def test_sizes_for_people():
    """Quantiles, moments and scores, and the line."""
    done = malleable("fit", "--sizes", "sizes.txt", "--family", "hyper-exponential")
    assert done.status == 1
    done = malleable("fit", "--sizes", "sizes.txt")
    assert (done.status, done.err) == (0, "")
    for word in ("P(X > x)", "squared coefficient of variation", "BIC"):
        assert word in done.out
    assert done.out.splitlines()[-1].startswith("size = { kind = ")


@pytest.mark.parametrize(
    "suffix", ["svg", *(pytest.param(one, marks=pytest.mark.slow) for one in ("png", "pdf"))]
)
def test_pictures(suffix):
    """The ending names the format."""
    marks = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    done = malleable("fit", "runs.csv", "--plot", f"a/fit.{suffix}")
    assert done.status == 0
    assert Path(f"a/fit.{suffix}").read_bytes().startswith(marks[suffix])
    assert f"drawn in a/fit.{suffix}" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv",), "there is no file 'nowhere.csv'"),
        (("empty.csv",), "empty.csv is empty"),
        (("1@3",), "only one width was measured, 1 cores"),
        (("1@3,2@0",), "a time must be a number above 0, got '0'"),
        (("1@3,2@nan",), "a time must be a number above 0, got 'nan'"),
        (("runs.csv", "--family", "amdal"), "there is no family 'amdal' to fit"),
        (("runs.csv", "--plot", "fit.jpg"), "cannot tell the format of a picture from 'fit.jpg'"),
        (("--sizes", "sizes.txt", "--row", "1"), "--row and --sizes contradict each other"),
        (("--sizes", "sizes.txt", "--phases", "x"), "phases must be a whole number"),
        (("--sizes", "sizes.txt", "--phases", "99"), "phases must be at most"),
        (("--sizes", "empty.csv"), "holds no numbers"),
        (("--sizes", "runs.csv"), "is not a positive number"),
    ],
)
def test_mistakes(arguments, words):
    """One line and a hint, exit status 1, nothing on stdout, and no file."""
    Path("empty.csv").write_text("")
    before = sorted(Path().iterdir())
    done = malleable("fit", *arguments)
    error, hint = done.err.splitlines()
    assert (done.status, done.out) == (1, "")
    assert error.startswith("error: ")
    assert words in error
    assert hint.startswith("hint: ")
    assert sorted(Path().iterdir()) == before
