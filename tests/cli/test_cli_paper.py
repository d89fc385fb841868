"""`malleable paper`, used as people use it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from malleable import plots
from malleable.cli.paper import _left
from malleable.paper.workers import Report
from support import paper_fakes
from support.shell import environment, malleable, shown_on_terminal


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Two tiny experiments in place of the real ones, and pictures that cost nothing."""
    monkeypatch.setattr(plots, "draw_files", lambda _: dict.fromkeys(plots.SUFFIXES, b"<svg></svg>"))
    log = paper_fakes.write(tmp_path, "e01_first", "e02_second")
    with paper_fakes.used(tmp_path):
        yield log


def start(folder: Path, *arguments: str, **more) -> subprocess.Popen:
    """Start the command with the experiments below `folder`, in another process."""
    code = paper_fakes.command_line(folder)
    there = {**environment(), "TERM": "xterm"}
    return subprocess.Popen([sys.executable, "-c", code, "paper", *arguments], env=there, **more)


def test_real_experiment():
    """The first experiment of the paper runs from the command line, figures and all."""
    status, out, err = malleable("paper", "--quick", "--only", "e01_speedups")
    assert (status, err) == (0, "")
    assert "√k (class 2) is increasing, concave and at most k" in out
    assert "holds" in out
    assert out.rstrip().endswith("out/paper/index.html")
    assert Path("out/paper/figures/speedups.pdf").read_bytes().startswith(b"%PDF")
    assert "Speedup functions" in Path("out/paper/index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("tiny")
def test_json():
    """With --json there is one document: effort, page and verdicts, even if some fail."""
    paper_fakes.write(Path.cwd(), "e02_second", cells=1)
    status, out, err = malleable("paper", "--quick", "--out", "there", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["effort"] == "quick"
    assert Path(found["page"]) == Path("there/index.html")
    assert [row["experiment"] for row in found["verdicts"]] == ["e01_first", "e02_second"]
    assert found["verdicts"][0] == {
        "experiment": "e01_first",
        "statement": "squares grow",
        "verdict": "holds",
        "holds": True,
        "measured": "up to 4",
        "of_the_paper": True,
    }
    assert sum(found["counts"]["paper"].values()) == len(found["verdicts"])
    assert found["counts"]["ours"] == {"holds": 0, "fails": 0, "undecided": 0}
    assert found["verdicts"][1]["verdict"] == "fails"


@pytest.mark.parametrize(
    ("options", "effort"), [(("--quick",), "quick"), (("--full",), "full"), ((), "normal")]
)
@pytest.mark.usefixtures("tiny")
def test_efforts(options, effort):
    """Each effort is chosen by its option; without one it is the normal one."""
    status, out, _ = malleable("paper", *options, "--only", "e01_first")
    assert status == 0
    assert f"({effort})" in out
    assert json.loads(Path("out/paper/manifest.json").read_text())["effort"]["name"] == effort


def test_wrong_inputs(tiny):
    """Each wrong input is one line and a hint, exit 1, before anything is computed."""
    Path("file").write_text("")
    cases = {
        ("--quick", "--full"): ("--quick and --full contradict each other", "give one of them"),
        ("--only", "e01_frist"): ("no experiment is called 'e01_frist'", "e01_first"),
        ("--out", "file"): ("cannot write file", "--out"),
        ("--out", "file/below"): ("cannot write file/below", "--out"),
    }
    for options, (problem, hint) in cases.items():
        status, out, err = malleable("paper", *options)
        assert (status, out) == (1, "")
        first, second = err.splitlines()
        assert first.startswith("error: ")
        assert problem in first
        assert second.startswith("hint: ")
        assert hint in second
    assert not tiny.exists()
    assert malleable("paper", "--slow").status == 2


def test_missing_libraries(tiny, monkeypatch):
    """Without the libraries of the extra it says what to install, before anything is computed."""
    monkeypatch.setattr(
        plots.importlib.util, "find_spec", lambda name: None if name == "plotly" else object()
    )
    status, _, err = malleable("paper", "--quick")
    assert status == 1
    assert "plotly" in err
    assert "malleable[paper]" in err
    assert not tiny.exists()


@pytest.mark.usefixtures("tiny")
def test_raising_findings():
    """An experiment with a bug is named, with the traceback that leads to it."""
    paper_fakes.write(Path.cwd(), "e02_second", raises=True)
    status, out, err = malleable("paper", "--quick")
    assert (status, out) == (1, "")
    assert "Traceback" in err
    assert "in findings" in err
    assert "error: the experiment e02_second raised KeyError" in err


def test_interrupted(tmp_path):
    """Ctrl-C ends at once although a cell is under way, says what is kept, and a rerun computes the rest."""
    log = paper_fakes.write(tmp_path, "e01_first", slow=0)
    process = start(tmp_path, "--quick", stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    try:
        for _ in range(600):
            if log.exists() and len(log.read_text().splitlines()) == 2:
                break
            time.sleep(0.1)
        time.sleep(0.5)
        pressed = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=50)
    finally:
        process.kill()
    assert time.monotonic() - pressed < 30.0  # the cell would take a minute
    assert process.returncode == 130, err
    assert out == ""
    wanted = "interrupted: 2 of 3 cells are kept in out/paper; the same command goes on from there"
    assert err.splitlines() == [wanted]

    paper_fakes.write(tmp_path, "e01_first")
    again = start(tmp_path, "--quick", stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    out, err = again.communicate(timeout=100)
    assert again.returncode == 0, err
    *before, after = log.read_text().splitlines()
    assert sorted(before) == ["e01_first 1 60000", "e01_first 2 60000"]  # two workers, in either order
    assert after == "e01_first 0 60000"


def test_progress_on_a_terminal(tmp_path):
    """On a terminal there is a bar with the stage, the time left and what is running; then it is gone."""
    paper_fakes.write(tmp_path, "e01_first", pause=0.7)
    text = shown_on_terminal(
        lambda stderr: start(tmp_path, "--quick", "--json", stdout=subprocess.DEVNULL, stderr=stderr)
    )
    assert "computing" in text
    assert "e01_first/c" in text
    assert "left" in text
    assert text.rstrip().endswith("\x1b[2K")


def test_time_left():
    """The time left is told in the unit that people would use, and not before it can be known."""
    cases = {
        (0.0, 9.0): "time left unknown",
        (1.0, 10.0): "2 min left",
        (5.0, 10.0): "10 s left",
        (1.0, 3600.0): "9.0 h left",
    }
    for (done, seconds), text in cases.items():
        assert _left(Report("computing", done, 10.0, (), seconds)) == text
