"""Streams of every kind: closed, full, gone, ASCII only. Never a traceback, and a sensible exit status."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from malleable.cli import _streams
from support.shell import environment, malleable, shell

RUN = "simulate paper -n 16 --load .25 --jobs 2000"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "status", "err"),
    [
        ("malleable bound paper -n 64 >&-", 0, ""),
        ("malleable bound paper -n 64 >/dev/full", 1, "error: cannot write the output: No space"),
        ("malleable --help >/dev/full", 1, "error: cannot write the output: No space"),
        ("malleable bound paper -n 64 | head -1 >/dev/null; exit ${PIPESTATUS[0]}", 0, ""),
        ("malleable bound paper -n 0 2>&-", 1, ""),
        ("malleable bound paper -n 64 <&- >&- 2>&-", 0, ""),
        ("malleable allocate paper -n 4 --jobs - <&-", 1, "error: "),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                (
                    "malleable bound paper -n 64 --json >/dev/full",
                    1,
                    "error: cannot write the output: No space",
                ),
                ("malleable bound paper -n 0 2>/dev/full", 1, ""),
                (f"malleable {RUN} --out kept >/dev/full", 1, "error: cannot write the output: No space"),
            )
        ),
    ],
)
def test_streams(line, status, err):
    """Full is one line and exit 1; closed is what the caller wanted; a reader that leaves has seen enough."""
    done = shell(line)
    assert done.status == status, done.err
    assert done.err.startswith(err) if err else done.err == ""
    assert len(done.err.splitlines()) <= 2
    assert "Traceback" not in done.out + done.err
    if "--out" in line:
        assert json.loads(Path("kept.json").read_text("utf-8"))["jobs"] == 2000


@pytest.mark.parametrize(
    "verb",
    [
        RUN,
        "bound --help",
        *(
            pytest.param(v, marks=pytest.mark.slow)
            for v in ("meanfield paper -n 16 --load .25 --starts 1", "list")
        ),
    ],
)
def test_ascii(verb, monkeypatch):
    """A terminal without ρ, ± and – gets other words, in columns that are as straight as ever."""
    monkeypatch.setattr("support.shell.PLAIN", {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"})
    done = shell(f"PYTHONIOENCODING=ascii malleable {verb}")
    assert (done.status, done.err) == (0, "")
    assert done.out.isascii()
    assert "\\u" not in done.out
    rows = [row for row in done.out.splitlines() if row.startswith(("|", "+"))]
    assert rows
    for first, second in itertools.pairwise(rows):
        assert len(first) == len(second) or {first[0], second[0]} == {"+"}


def test_words_for_what_is_lacking():
    """Characters that an encoding lacks are written in others; those without a substitute, as escapes."""
    text = "ρ ± – ∞ … é \udcff"
    assert text.encode("ascii", _streams.HANDLER) == rb"rho +/- - inf ... \xe9 \udcff"
    assert text.encode("latin-1", _streams.HANDLER) == b"rho \xb1 - inf ... \xe9 \\udcff"
    assert text.encode("utf-8", _streams.HANDLER) == "ρ ± – ∞ … é \\udcff".encode()


def test_python_m_malleable():
    """`python -m malleable` is `malleable`."""
    assert shell("python -m malleable bound paper -n 64") == shell("malleable bound paper -n 64")
    assert "Usage: malleable" in shell("python -m malleable --help").out


def test_home_that_cannot_be_written():
    """Where there is no place for caches, commands work all the same."""
    there = environment() | {"HOME": "/proc", "XDG_CACHE_HOME": "/proc/none"}
    line = " ".join(f"{key}={there[key]}" for key in ("HOME", "XDG_CACHE_HOME"))
    done = shell(f"{line} malleable {RUN} --interpreted --json")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["jobs"] == 2000


@pytest.mark.parametrize("family", ["backends"])
def test_empty_families_are_not_advertised(family):
    """What does not exist yet is in no help and no hint, though one may ask for it."""
    assert family not in malleable("list", "--help").out
    assert family not in malleable("list", "nonsense").err
    assert malleable("list", family).out == f"there are no {family} yet\n"
