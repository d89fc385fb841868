"""A build as a job: its running commands follow its cores, its cores are given back as commands end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading

import pytest

from malleable.live.programs.build_client import BuildClient
from malleable.live.programs.job_folder import JobFolder
from malleable.live.programs.program_client import Command, Ending
from support.living import is_paused, wait_until
from support.seats import Seat, driven
from support.shell import PATIENCE

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="affinity and /proc are Linux's"),
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]
COMMANDS = 12
HELD = """\
echo "start $1" >> log
while [ ! -e go ] && [ ! -e "go-$1" ]; do sleep 0.01; done
echo "end $1" >> log
"""


def has_ninja() -> bool:
    """Whether there is a ninja that takes tokens."""
    if shutil.which("ninja") is None:
        return False
    text = subprocess.run(["ninja", "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(map(int, re.findall(r"\d+", text)[:2])) >= (1, 13)


NINJA = pytest.mark.skipif(not has_ninja(), reason="ninja 1.13, the first with a jobserver, is not here")


class Build:
    """A build of commands that wait for a word, in a folder of its own."""

    def __init__(self, folder, tool, commands=COMMANDS):
        self.folder, self.job = folder, JobFolder(folder / "job")
        self.job.prepare({})
        (folder / "held").write_text(HELD)
        (folder / "log").touch()
        targets = [f"t{i}" for i in range(commands)]
        (folder / "Makefile").write_text(f"all: {' '.join(targets)}\nt%:\n\tsh held $*\n")
        lines = "".join(f"build {name}: held\n  number = {name[1:]}\n" for name in targets)
        (folder / "build.ninja").write_text(f"rule held\n  command = sh held $number\n{lines}")
        self.client = BuildClient(Command([tool], folder, {"PATH": os.environ["PATH"]}), self.job)

    def running(self):
        lines = [line.split() for line in (self.folder / "log").read_text().splitlines()]
        ended = {number for what, number in lines if what == "end"}
        return [number for what, number in lines if what == "start" and number not in ended]

    def end_one(self):
        for number in self.running()[:1]:
            self.end(number)

    def end(self, number):
        (self.folder / f"go-{number}").touch()


TOOLS = ["make", pytest.param("ninja", marks=NINJA)]


@pytest.fixture(params=TOOLS)
def build(tmp_path, request):
    return Build(tmp_path, request.param)


@pytest.mark.parametrize("tool", TOOLS)
def test_commands_follow_the_cores(tmp_path, tool):
    """One, then three run; of three, each that ends gives a core back until one is left."""
    # Of a fifo, ninja may take the token again that it has just returned, many times on a busy machine.
    build = Build(tmp_path, tool, 2000)
    with driven(build.client) as job:
        job.obeyed(1)
        wait_until(lambda: len(build.running()) == 1, "one command")
        job.obeyed(3)
        first = build.running()[0]
        build.end(first)  # ninja looks for tokens when a command ends
        wait_until(lambda: len({*build.running()} - {first}) == 3, "three commands")
        wait_until(lambda: first not in build.running(), "end of the first")
        number = job.order(1)
        wait_until(lambda: (3, number) in job.seat.confirmed, "an answer")
        assert build.job.held().cores == 3
        for left in (2, 1):
            wait_until(
                lambda left=left: (left, number) in job.seat.confirmed or build.end_one(), f"{left} cores"
            )
            assert build.job.held().cores <= left
        wait_until(lambda: len(build.running()) == 1, "one command")


class Slow(Seat):
    """A seat whose broker takes its time to hear an answer, if it is told to."""

    def __init__(self):
        super().__init__()
        self.hears = threading.Event()
        self.hears.set()

    def confirm(self, cores, number):
        super().confirm(cores, number)
        assert self.hears.wait(PATIENCE)


def test_a_token_that_comes_back_after_the_next_order(tmp_path):
    """A build is told 1 and then 2 cores before its token is back: a later 1 is in force at one command only.

    What the jobserver said before the order to 2 was taken for what is in use after it, so that the answer to
    the last order gave back a core on which a command ran.
    """
    build = Build(tmp_path, "make")
    with driven(build.client, Slow()) as job:
        job.obeyed(2)
        wait_until(lambda: len(build.running()) == 2, "two commands")
        job.seat.hears.clear()
        narrower = job.order(1)
        wait_until(lambda: (2, narrower) in job.seat.confirmed, "an answer that is not heard yet")
        wider = job.order(2)
        build.end_one()
        wait_until(lambda: build.client._jobserver.width_in_use == 1, "the token")
        job.seat.hears.set()
        wait_until(lambda: (2, wider) in job.seat.confirmed, "the wider order")
        wait_until(lambda: len(build.running()) == 2, "two commands again")
        last = job.order(1)
        wait_until(lambda: job.seat.confirmed[-1][1] == last, "an answer")
        assert job.seat.confirmed[-1] == (2, last)
        build.end_one()
        wait_until(lambda: job.seat.confirmed[-1] == (1, last), "the core that is given back")
        assert len(build.running()) <= 1
        (build.folder / "go").touch()


def test_a_pause(build):
    """Without cores all of it is stopped, and nothing is in use; it goes on where it was."""
    with driven(build.client) as job:
        job.obeyed(2)
        wait_until(lambda: len(build.running()) == 2, "two commands")
        job.obeyed(0)
        pid = build.job.program().pid
        wait_until(lambda: is_paused(pid), "a pause")
        job.order(1)
        wait_until(lambda: job.seat.confirmed[-1] == (1, job.number), "going on with one core")
        (build.folder / "go").touch()
        assert job.ending.result(60.0) == Ending("finished", 0)
    assert (build.folder / "log").read_text().count("end") == COMMANDS
    assert max(cores for cores, _ in job.seat.confirmed) == 2


@NINJA
def test_progress(tmp_path):
    """ninja says how many commands have ended, of all that there are."""
    build = Build(tmp_path, "ninja")
    with driven(build.client) as job:
        job.obeyed(2)
        for done in range(1, 4):
            wait_until(lambda: len(build.running()) == 2, "two commands")
            build.end(build.running()[0])
            wait_until(lambda done=done: (done, COMMANDS) in job.seat.reports, f"{done} commands")
        (build.folder / "go").touch()
        assert job.ending.result(60.0) == Ending("finished", 0)
    assert [units for _, units in job.seat.reports] == [COMMANDS] * len(job.seat.reports)
    assert job.seat.reports == sorted(job.seat.reports)


def test_nothing_of_a_build_runs_twice(tmp_path):
    """What make runs even when it is only asked (`+`, `$(MAKE)`, `$(shell)`) runs once, and in its order."""
    job = JobFolder(tmp_path / "job")
    job.prepare({})
    (tmp_path / "Makefile").write_text(
        "$(shell echo read >> log)\n"
        "release:\n\t$(MAKE) build && echo released >> log\n\t+echo submitted >> log\n"
        "build: ; echo built >> log\n"
    )
    client = BuildClient(Command(["make"], tmp_path, {"PATH": os.environ["PATH"]}), job)
    with driven(client) as driver:
        driver.order(1)
        assert driver.ending.result(60.0) == Ending("finished", 0)
    # make below make reads the file, too.
    assert (tmp_path / "log").read_text().split() == ["read", "read", "built", "released", "submitted"]
    assert driver.seat.reports == []


def test_a_build_that_is_not_there(tmp_path):
    """It is an error of one line, as for any program."""
    build = Build(tmp_path, "samu")
    with driven(build.client) as job:
        job.order(1)
        with pytest.raises(RuntimeError, match="cannot run 'samu'"):
            job.ending.result(60.0)
