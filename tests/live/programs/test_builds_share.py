"""Two builds under one broker: together they never run more commands than there are cores."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from support.broker_process import BrokerProcess

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux"),
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]
COMMAND = """\
echo "start $1" >> "$2"
sleep 0.05
echo "end $1" >> "$2"
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker of two cores, which the builds have to share."""
    with BrokerProcess(tmp_path_factory.mktemp("broker"), 2) as made:
        yield made


class Builds:
    """Several builds whose commands note in one file when they start and end."""

    def __init__(self, folder: Path, tools: list[str], commands: int) -> None:
        self.log = folder / "log"
        self.log.touch()
        self.folders = []
        for number, tool in enumerate(tools):
            place = folder / f"build-{number}"
            place.mkdir()
            (place / "command").write_text(COMMAND)
            names = [f"t{i}" for i in range(commands)]
            rule = f"sh command {number}-$* {self.log}"
            (place / "Makefile").write_text(f"all: {' '.join(names)}\nt%:\n\t{rule}\n")
            lines = "".join(f"build {name}: run\n  number = {number}-{name}\n" for name in names)
            text = f"rule run\n  command = sh command $number {self.log}\n{lines}"
            (place / "build.ninja").write_text(text)
            self.folders.append((place, tool))

    def moments(self) -> list[Counter[str]]:
        """How many commands of each build ran, after each of their notes."""
        found, running = [], Counter[str]()
        for line in self.log.read_text().splitlines():
            what, name = line.split()
            running[name.partition("-")[0]] += 1 if what == "start" else -1
            found.append(running.copy())
        return found


@pytest.mark.parametrize("tools", [pytest.param(("make", "make"), marks=pytest.mark.slow), ("make", "ninja")])
def test_two_builds_share_the_cores(broker, tmp_path, tools):
    """By what commands note there are never more of them than cores, and at times one of each build.

    The builds are never paused: commands that a pause caught go on together, on the cores there are then.
    """
    if shutil.which(tools[1]) is None:
        pytest.skip(f"{tools[1]} is not installed")
    builds = Builds(tmp_path, list(tools), 25)
    jobs = [broker.submit(tool, folder=place, never_pause=True) for place, tool in builds.folders]
    assert {job["state"] for job in broker.wait(jobs)} == {"finished"}
    moments = builds.moments()
    assert max(moment.total() for moment in moments) == 2
    assert any(moment["0"] == moment["1"] == 1 for moment in moments)
    assert builds.log.read_text().count("end") == 50
