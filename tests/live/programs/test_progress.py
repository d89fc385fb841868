"""Lines by which programs tell how far they are."""

from __future__ import annotations

import os

import pytest

from malleable.live.programs.progress import ProgressFile, parse_build_progress, parse_progress


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ("12/100", (12.0, 100.0)), ("12 100", (12.0, 100.0)), ("1 2 3", None),
        (" 0.5 / 2 \n", (0.5, 2.0)), ("0.12", (0.12, 1.0)), ("1", (1.0, 1.0)),
        ("45%", (45.0, 100.0)), ("0/3", (0.0, 3.0)), ("", None), ("done", None), ("3/2", None), ("0/0", None),
        ("-1/5", None), ("nan", None), ("1/inf", None), ("1/2/3", None), ("1.5", None), ("%", None),
    ],
)  # fmt: skip
def test_lines(line, progress):
    """Done of total, a fraction or a percentage; what makes no sense is not progress."""
    assert parse_progress(line) == progress


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ("[3/30] cc -c a.c", (3.0, 30.0)), ("[ 45%] Building C object", (45.0, 100.0)),
        ("[100%] Built target x", (100.0, 100.0)), ("cc -c a[3/30].c", None), ("[31/30] no", None),
    ],
)  # fmt: skip
def test_lines_of_builds(line, progress):
    """What ninja and CMake's Makefiles put in front of each command is progress."""
    assert parse_build_progress(line) == progress


def test_the_last_whole_line_counts(tmp_path):
    """Half a line is not read, nor is a file that has not changed; a file written anew is."""
    path = tmp_path / "progress"
    file = ProgressFile(path)
    assert file.news() is None
    path.write_text("1/100\n2/100\n3/1")
    assert file.news() == (2.0, 100.0)
    assert file.news() is None
    path.write_text("9/100\n")
    os.utime(path, ns=(1, 1))  # times of files are coarse
    assert file.news() == (9.0, 100.0)
    path.write_text("x" * 10_000 + "\n77/100\n")
    assert file.news() == (77.0, 100.0)
