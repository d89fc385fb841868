"""What a user wrote stands on the screen as it was written, whatever it holds, and in one piece."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from malleable.cli._shared import console, table, visible
from support.shell import malleable

ODD = ["train[gpu]", "1234[a]", "[/]", "[bold]x[/bold]", "[link=x]", "a\\[b]", ":smile:", "größe", "作业"]
CLASS = """\
name = {workload}

[[classes]]
name = {name}
arrivals = {{ kind = "poisson", rate = 1.0 }}
size = {{ kind = "exponential", mean = 1.0 }}
speedup = {{ kind = "power", exponent = 0.5 }}
"""
POLICY = """\
def equal(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = cores / len(out)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ODD)
def test_names_stand_as_they_are(name):
    """Workloads, classes, jobs, policies and files with brackets are shown by every verb."""
    file = f"{name.replace('/', '')}.toml"
    Path(file).write_text(CLASS.format(name=json.dumps(name), workload=json.dumps(f"w{name}")), "utf-8")
    # These have a meaning of their own in the name of a policy.
    folder = Path("x" if set(name) & set("=:") else name.replace("/", ""))
    folder.mkdir()
    (folder / "mine.py").write_text(POLICY)
    policy = f"{folder}/mine.py:equal"
    Path("jobs.json").write_text(json.dumps([{"id": name, "class": name, "remaining": 1.0}]), "utf-8")
    run = ("--cores", "8", "--jobs", "1000")
    commands = {
        ("bound", file, "-n", "8"): [f"w{name} on 8 cores", f" {name} "],
        ("allocate", file, "-n", "8", "--jobs", "jobs.json", "--policy", policy): [policy, f" {name} "],
        ("meanfield", file, "-n", "8", "--starts", "0"): [f"wham on w{name}", f" {name} "],
        ("simulate", file, *run, "--policy", policy, "--out", f"{folder}/kept"): [
            f"{policy} on w{name}", f" {name} ", f"saved to {folder}/kept.json",
        ],
        ("compare", file, *run, "--policies", f"wham,{policy}"): [f" {policy} ", f"w{name}, load"],
    }  # fmt: skip
    for command, words in commands.items():
        done = malleable(*command)
        assert (done.status, done.err) == (0, ""), command
        for word in words:
            assert word in done.out, command


@pytest.mark.parametrize(
    "command", [("list", "[/]"), ("[/]",), ("bound", "[/]", "-n", "8"), ("bound", "paper", "-n", "[/]")]
)
def test_errors_name_what_was_written(command):
    """An error shows the brackets that it is about."""
    done = malleable(*command)
    assert done.status in {1, 2}
    assert "[/]" in done.err


def test_control_characters_are_shown():
    """A name cannot steer the terminal."""
    assert visible("a\x1b[31mred\x07\r\tb") == "a\\x1b[31mred\\x07\\r\\tb"
    assert visible("two\nlines – fine") == "two\nlines – fine"


def test_tables_take_words_as_they_are(capsys):
    """No caller has to escape anything: cells, headings and lines are plain text by default."""
    made = table("[b]title[/b]", "[i]heading[/i]", "[/]")
    made.add_row("[red]cell[/red]", "[/]")
    console().print(made)
    console().print("[/] line")
    out = capsys.readouterr().out
    for word in ("[b]title[/b]", "[i]heading[/i]", "[red]cell[/red]", "[/] line"):
        assert word in out


@pytest.mark.parametrize("columns", ["1", "20", "80"])
def test_names_and_numbers_stay_in_one_piece(columns, monkeypatch):
    """However narrow the terminal, no policy's name is broken and no number is cut short."""
    Path("a-rather-long-folder-name").mkdir()
    Path("a-rather-long-folder-name/mine.py").write_text(POLICY)
    long = "a-rather-long-folder-name/mine.py:equal"
    monkeypatch.setattr("support.shell.PLAIN", {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": columns})
    arguments = ("paper", "--cores", "16", "--load", "0.25", "--jobs", "2000")
    done = malleable("compare", *arguments, "--policies", f"wham,fixed-width:widths=2/2/2,{long}")
    assert done.status == 0
    for word in ("fixed-width:widths=2/2/2", long, "0.234633"):
        assert word in done.out
    assert "…" not in done.out
