"""Two builds under one broker: together they never run more commands than there are cores."""

from __future__ import annotations

import shutil
import sys
import time
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

    def running(self) -> dict[str, int]:
        """How many commands of each build run now."""
        found: dict[str, int] = {}
        for line in self.log.read_text().splitlines():
            what, name = line.split()
            build = name.partition("-")[0]
            found[build] = found.get(build, 0) + (1 if what == "start" else -1)
        return found

    def most(self) -> int:
        """The most commands that ran at a time, by what they noted."""
        running = most = 0
        for line in self.log.read_text().splitlines():
            running += 1 if line.startswith("start") else -1
            most = max(most, running)
        return most


@pytest.mark.parametrize("tools", [pytest.param(("make", "make"), marks=pytest.mark.slow), ("make", "ninja")])
def test_two_builds_share_the_cores(broker, tmp_path, tools):
    """Never more commands than cores, at samples of 10 ms and by what they note; both builds have some."""
    if shutil.which(tools[1]) is None:
        pytest.skip(f"{tools[1]} is not installed")
    builds = Builds(tmp_path, list(tools), 25)
    jobs = [broker.submit(tool, folder=place) for place, tool in builds.folders]
    samples = []
    end = time.monotonic() + 120.0
    while time.monotonic() < end and not all(broker.folder(job).result() for job in jobs):
        samples.append(builds.running())
        time.sleep(0.01)
    assert {job["state"] for job in broker.wait(jobs)} == {"finished"}
    assert max(sum(sample.values()) for sample in samples) == builds.most() == 2
    assert any(all(sample.get(number) == 1 for number in "01") for sample in samples)
    assert builds.log.read_text().count("end") == 50
