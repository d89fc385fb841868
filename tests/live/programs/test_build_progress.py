"""How far a build is: by what it prints, and by what `make -n` says that it will run."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter

import pytest

from malleable.live.programs import build_progress
from malleable.live.programs.build_progress import BuildProgress, planned_commands
from support.living import assert_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="builds are supervised on Linux")
MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
HERE = {"PATH": os.environ["PATH"]}


@MAKE
def test_what_make_will_run(tmp_path):
    """Commands of a make below count too; what is up to date does not; nothing is run."""
    (tmp_path / "Makefile").write_text("all: a b\n\t+@$(MAKE) -f below\na b:\n\ttouch $@\n")
    (tmp_path / "below").write_text("x:\n\techo same\n\techo same\n")
    (tmp_path / "a").touch()
    assert planned_commands(["make"], tmp_path, HERE) == {"touch b": 1, "make -f below": 1, "echo same": 2}
    assert not (tmp_path / "b").exists()


@MAKE
def test_no_plan(tmp_path, monkeypatch):
    """Another program, a Makefile that is not there, and one that takes too long have none."""
    assert planned_commands(["ninja"], tmp_path, HERE) == {}
    assert planned_commands(["make"], tmp_path, HERE) == {}
    assert planned_commands(["make"], tmp_path / "gone", HERE) == {}
    note = tmp_path / "pid"
    (tmp_path / "Makefile").write_text(
        f"X := $(shell echo $$$$ > {note}; exec sleep 600)\nall:\n\techo $(X)\n"
    )
    monkeypatch.setattr(build_progress, "PLAN_SECONDS", 2.0)
    assert planned_commands(["make"], tmp_path, HERE) == {}
    assert_gone([int(note.read_text())])


class Output:
    """What a build prints, bit by bit."""

    def __init__(self, folder, planned):
        self.path, self.running = folder / "output", 0
        self.progress = BuildProgress(self.path, Counter(planned), lambda: self.running)

    def after(self, text):
        with self.path.open("a") as file:
            file.write(text)
        return self.progress.news()


def test_commands_are_counted(tmp_path):
    """A command that was printed and does not run any more is done; each as often as it was planned."""
    output = Output(tmp_path, {"cc a": 1, "cc b": 2, "ld": 1})
    assert output.progress.news() is None
    output.running = 1
    assert output.after("cc a\n") == (0.0, 4.0)
    assert output.after("a warning\ncc") is None
    assert output.after(" b\ncc b\ncc b\n") == (2.0, 4.0)
    output.running = 3  # it cannot go back
    assert output.progress.news() is None
    output.running = 0
    assert output.after("ld\n") == (4.0, 4.0)
    assert output.progress.news() is None


def test_what_a_build_says_itself_counts(tmp_path):
    """Lines of ninja and of CMake's Makefiles come before what was planned."""
    output = Output(tmp_path, {"cc a": 1, "cc b": 1, "cc c": 1})
    assert output.after("[1/4] cc a\ncc a\n[2/4] cc b\n") == (2.0, 4.0)
    assert output.after("cc b\ncc c\n") is None
    assert output.after("[ 75%] Building\n") == (75.0, 100.0)
