"""`plan`, `explain` and lists of cores on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import malleable as package
from support import logs
from support.cli_checks import REFERENCE, as_json
from support.json_keys import keys
from support.shell import malleable

JOBS = "id,class,remaining\na,class-1,1\nb,class-2,2\nc,class-3,0.5\n"
NEW = "class=class-1,remaining=1"
FAST = ("--jobs", "4000", "--workers", "1")


def unwrapped(text):
    """The words, whatever the width of the terminal."""
    return " ".join(text.split())


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own, with some jobs."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(JOBS, "utf-8")


def test_explain_in_words_and_a_table():
    """The answer comes first, then every job; the numbers are those of Python."""
    done = malleable("explain", "paper", "--cores", "16", "--jobs", "jobs.csv")
    found = package.explain("paper", package.api.read_jobs(package.load_workload("paper"), "jobs.csv"), 16)
    assert (done.status, done.err) == (0, "")
    for sentence in (*found.words, *(f"{job.id} {job.why}." for job in found.jobs)):
        assert sentence in unwrapped(done.out)
    assert unwrapped(done.out).startswith(found.words[0])


def test_explain_one_job():
    """With --job it comes first, with what would be without it; --arrives says what a new job would get."""
    options = ("--jobs", "jobs.csv", "--job", "b", "--arrives", "class=class-2,remaining=1")
    done = malleable("explain", "paper", "--cores", "16", *options)
    assert done.status == 0
    assert done.out.startswith("b has 9.573 cores because")
    assert "If b left" in done.out
    assert "If the new job arrived, it would have" in unwrapped(done.out)
    document = json.loads(malleable("explain", "paper", "--cores", "16", *options, "--json").out)
    assert {"price", "policy", "jobs", "next_core", "lost_core", "arrival", "departure"} <= set(document)


@pytest.mark.parametrize("verb", ["explain", "plan"])
def test_pictures_and_pages(verb):
    """--plot draws, --report writes a page that names nothing outside of it."""
    target = ("--target", "cost < 0.5", "--load", "0.75", *FAST) if verb == "plan" else ("--jobs", "jobs.csv")
    done = malleable(verb, "paper", "--cores", "16", *target, "--plot", "a.svg", "--report", "a.html")
    assert done.status == 0
    assert "written: a.svg" in done.out
    assert Path("a.svg").read_text("utf-8").count("<svg") == 1
    page = Path("a.html").read_text("utf-8")
    assert page.count("<svg") == 1
    assert "src=" not in page
    assert 'href="http' not in page


def test_plan():
    """A number of cores, a proof and a curve; the document says the same."""
    asked = ("plan", "paper", "--cores", "16", "--load", "0.75", "-t", "cost < 0.5", *FAST)
    done = malleable(*asked)
    assert done.status == 0
    assert done.out.startswith("16 cores meet cost < 0.5 under wham: cost is ")
    assert "There are 16 now: just enough." in done.out
    document = json.loads(malleable(*asked, "--json").out)
    assert (document["cores"], document["misses"], document["reached"]) == (16, 15, True)
    assert document["certificate"]["cores"] == 14


def test_plan_of_a_log():
    """A log is told by its file, and what was assumed of its jobs is said."""
    Path("x.swf").write_text(logs.SWF, "utf-8")
    done = malleable("plan", "x.swf", "-t", "response < 1h", "--burst-price", "0.1")
    assert done.status == 0
    assert "meets response < 1h under wham" in done.out
    assert "Assumed:" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "paper"), "nothing to plan for"),
        (("plan", "paper", "-t", "p95 <"), "no number"),
        (("plan", "paper", "-t", "cost < 1", "--format", "swf"), "format is for logs"),
        (("plan", "none.toml", "-t", "cost < 1"), "no workload or file"),
        (("plan", "paper", "-t", "cost < 1", "--growth", "lots"), "growth must be a share"),
        (("plan", "jobs.csv", "-t", "cost < 1"), "jobs.csv"),
        (("explain", "paper", "-n", "4", "--jobs", "none.csv"), "there is no file"),
        (("explain", "paper", "-n", "4", "--jobs", "jobs.csv", "--job", "z"), "there is no job 'z'"),
        (("explain", "-", "-n", "4", "--jobs", "-"), "standard input"),
        (("bound", "paper", "-n", "4,x"), "cores must be a number"),
        (("meanfield", "paper", "-n", "4,,8"), "cores must be a number"),
    ],
)
def test_errors_are_one_line_and_a_hint(arguments, words):
    """What is wrong, and what to do; exit status 1."""
    done = malleable(*arguments)
    assert done.status == 1
    first, *rest = done.err.strip().splitlines()
    assert first.startswith("error: ")
    assert words in first
    assert len(rest) <= 1


def test_several_numbers_of_cores():
    """A list of cores is a row each, and in JSON the documents of each."""
    for verb, options in (("bound", ()), ("meanfield", ("--starts", "0"))):
        many = json.loads(malleable(verb, "paper", "-n", "16,32", "--load", "0.5", *options, "--json").out)
        for cores, document in zip(("16", "32"), many["results"], strict=True):
            alone = json.loads(malleable(verb, "paper", "-n", cores, "--load", "0.5", *options, "--json").out)
            assert document == alone
        lines = malleable(verb, "paper", "-n", "16,32", "--load", "0.5", *options).out.splitlines()
        assert [line.split()[0] for line in lines if line.strip()[:2] in {"16", "32"}] == ["16", "32"]


@pytest.mark.parametrize(
    "command",
    [
        (
            "explain",
            "paper",
            "-n",
            "4",
            "--jobs",
            "jobs.csv",
            "--job",
            "a",
            "--arrives",
            "class=class-1,remaining=1",
        ),
        ("plan", "x.swf", "-t", "response < 1h", "--growth", "20%", "--burst-price", "0.1"),
        ("plan", "x.swf", "-t", "response < 1h", "--policy", "wham,equi"),
    ],
)
def test_every_key_is_in_the_reference(command):
    """docs/reference/json.md has every key that the verbs write."""
    Path("x.swf").write_text(logs.SWF, "utf-8")
    title = f"malleable {command[0]} "
    (section,) = [s for s in REFERENCE.read_text("utf-8").split("\n## ") if s.startswith(title)]
    for key in keys(as_json(*command)):
        assert any(f"{before}{key}`" in section for before in "`."), key
