"""A jobserver and the builds that it serves: how many commands run at a time follows the width."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from malleable.errors import ParameterError
from malleable.live.programs.jobserver import Jobserver, form_for
from support.living import wait_until
from support.shell import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jobservers of other systems differ")
COMMANDS = 30
HELD = """\
echo "start $1" >> log
while [ ! -e go ] && [ ! -e "go-$1" ]; do sleep 0.01; done
echo "end $1" >> log
"""
WRAPPER = """\
#!/bin/sh
case "$*" in *--crate-name\\ member*) ;; *) exec "$@" ;; esac
echo "start $4" >> "$LOG"
"$@"
status=$?
echo "end $4" >> "$LOG"
exit $status
"""


def said_version(program: str) -> str:
    """What a program says of its version; nothing if there is none."""
    if shutil.which(program) is None:
        return ""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout


def version(program: str) -> tuple[int, ...]:
    """The version of a program, (0,) if there is none."""
    found = re.search(r"\d+(\.\d+)+", said_version(program))
    return (0,) if found is None else tuple(map(int, found[0].split(".")))


NINJA = os.environ.get("NINJA", "ninja")
HAS_MAKE = pytest.mark.skipif(version("make") < (4, 2), reason="GNU make 4.2 or newer is not installed")
HAS_NINJA = pytest.mark.skipif(
    version(NINJA) < (1, 13), reason="ninja 1.13, the first with a jobserver, is not here (NINJA=path)"
)
HAS_PIPES = pytest.mark.skipif(
    "jobserver-pipe" not in said_version(NINJA), reason="this ninja takes no pipes"
)
HAS_MAKE_FIFO = pytest.mark.skipif(
    version("make") < (4, 4), reason="make 4.4, the first with fifos, is not here"
)


def write_makefile(folder):
    targets = " ".join(f"t{i}" for i in range(COMMANDS))
    (folder / "Makefile").write_text(f"all: {targets}\nt%:\n\t@sh held $*\n")


def write_ninja(folder):
    builds = "".join(f"build t{i}: held\n  number = {i}\n" for i in range(COMMANDS))
    (folder / "build.ninja").write_text(f"rule held\n  command = sh held $number\n{builds}")


class Log:
    """What the commands of a build have noted, one line per start and end."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / "log"
        self.file.touch()

    def running(self):
        lines = [line.split() for line in self.file.read_text().splitlines()]
        ended = {number for what, number in lines if what == "end"}
        return {number for what, number in lines if what == "start"} - ended

    def started(self):
        return self.file.read_text().count("start")

    def let_go(self, numbers):
        for number in numbers:
            (self.folder / f"go-{number}").touch()

    def most_since(self, line):
        """The most commands that ran at a time after a line of the log."""
        running, most = set(), 0
        for i, text in enumerate(self.file.read_text().splitlines()):
            what, number = text.split()
            (running.add if what == "start" else running.discard)(number)
            most = max(most, len(running)) if i >= line else 0
        return most


@contextmanager
def building(command, folder, server):
    (folder / "held").write_text(HELD)
    process = subprocess.Popen(
        command, cwd=folder, env=server.environment(), pass_fds=server.inherited, stdout=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        (folder / "go").touch()
        process.wait(PATIENCE)


@pytest.mark.parametrize(
    ("command", "form", "write"),
    [
        pytest.param(["make"], "pipe", write_makefile, marks=HAS_MAKE, id="make"),
        pytest.param(["make"], "fifo", write_makefile, marks=HAS_MAKE_FIFO, id="make-fifo"),
        pytest.param([NINJA], "fifo", write_ninja, marks=HAS_NINJA, id="ninja"),
        pytest.param([NINJA], "pipe", write_ninja, marks=[HAS_NINJA, HAS_PIPES], id="ninja-pipe"),
    ],
)
def test_commands_follow_the_width(tmp_path, command, form, write):
    """From 1 to 4 while a command runs; from 4 to 2 as commands end; never more than the width in force."""
    write(tmp_path)
    log = Log(tmp_path)
    told = []
    with Jobserver(1, form, on_width=told.append) as server, building(command, tmp_path, server) as process:
        wait_until(lambda: len(log.running()) == 1, "the first command")
        log.let_go(log.running())
        wait_until(lambda: log.started() == 2, "the second command")
        assert log.most_since(0) == 1
        server.set_width(4)
        log.let_go(log.running())  # make looks for tokens when a command ends
        wait_until(lambda: len(log.running()) == 4, "four commands")
        server.set_width(2)
        before, four = log.started(), log.running()
        while server.width_in_use > 2:
            # Of a fifo a build may take the token again that it has just returned, and so start another one.
            log.let_go(four if form == "pipe" else log.running())
            time.sleep(0.002)
        if form == "pipe":
            # Two commands end for good; what the others, let go with them, make room for may start.
            assert log.started() - before <= 2
        mark = log.file.read_text().count("\n")
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE) == 0
    assert log.most_since(0) == 4
    assert log.most_since(mark) <= 2
    assert log.started() == COMMANDS
    assert told[0] == 4
    assert told[-1] == 2


@HAS_MAKE
def test_make_below_make(tmp_path):
    """A make that a make starts shares its tokens: together they run no more than the width."""
    write_makefile(tmp_path)
    (tmp_path / "outer.mk").write_text("all: a b\na b:\n\t+@$(MAKE) -f Makefile -C . $(LIST_$@)\n")
    halves = [" ".join(f"t{i}" for i in range(k, COMMANDS, 2)) for k in (0, 1)]
    command = ["make", "-f", "outer.mk", f"LIST_a={halves[0]}", f"LIST_b={halves[1]}"]
    (tmp_path / "go").touch()
    log = Log(tmp_path)
    with Jobserver(3) as server, building(command, tmp_path, server) as process:
        assert process.wait(PATIENCE) == 0
    assert log.started() == COMMANDS
    assert 1 <= log.most_since(0) <= 3


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_cargo(tmp_path):
    """Cargo compiles as many crates at a time as the width allows."""
    for i in range(5):
        (tmp_path / f"member{i}" / "src").mkdir(parents=True)
        (tmp_path / f"member{i}" / "Cargo.toml").write_text(
            f'[package]\nname = "member{i}"\nversion = "0.1.0"\n'
        )
        (tmp_path / f"member{i}" / "src" / "lib.rs").write_text("pub fn one() -> u32 { 1 }\n")
    (tmp_path / "Cargo.toml").write_text('[workspace]\nmembers = ["member*"]\nresolver = "2"\n')
    (tmp_path / "wrapper").write_text(WRAPPER)
    (tmp_path / "wrapper").chmod(0o755)
    log = Log(tmp_path)
    there = {"RUSTC_WRAPPER": str(tmp_path / "wrapper"), "LOG": str(log.file)}
    with Jobserver(1) as server:
        done = subprocess.run(
            ["cargo", "build", "--offline", "--quiet", "-j8"], cwd=tmp_path,
            env={**server.environment(), **there}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"cargo does not work here: {done.stderr:.200}")
    assert log.started() == 5
    assert log.most_since(0) == 1


@pytest.mark.parametrize("form", ["pipe", "fifo"])
def test_tokens(form):
    """A width of k is k − 1 tokens in the pipe; those that are out are taken back when they return."""
    told = []
    with Jobserver(4, form, on_width=told.append) as server:
        read, write = ends(server)
        assert os.read(read, 2) == b"++"
        server.set_width(1)
        wait_until(lambda: server.width_in_use == 3, "the token in the pipe")
        os.write(write, b"+")
        wait_until(lambda: server.width_in_use == 2, "the first one returned")
        os.write(write, b"+")
        wait_until(lambda: told[-1] == 1, "the second one returned")
        os.set_blocking(read, False)
        with pytest.raises(BlockingIOError):
            os.read(read, 1)
        server.set_width(0)
        server.set_width(2)
        assert os.read(read, 9) == b"+"
        assert server.width_in_use == 2


def ends(server):
    """The descriptors by which a build reads and writes tokens."""
    if server.inherited:
        return server.inherited
    path = server.environment({})["MAKEFLAGS"].partition("fifo:")[2]
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    end = os.open(path, os.O_RDWR)
    server._stack.callback(os.close, end)
    return end, end


@pytest.mark.parametrize("blocking", [True, False])
def test_the_pipe_blocks_as_the_build_wishes(blocking):
    """Whether the build's end blocks is its own affair: neither side changes it for the other."""
    with Jobserver(3, "pipe") as server:
        read, _ = server.inherited
        assert not fcntl.fcntl(read, fcntl.F_GETFL) & os.O_NONBLOCK
        os.set_blocking(read, blocking)
        server.set_width(1)
        wait_until(lambda: server.width_in_use == 1, "both tokens")
        assert os.get_blocking(read) is blocking


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ("", " -j", ""),
        ("ks", "ks -j", ""),
        ("ks -j8 --jobserver-auth=3,4 -Otarget", "ks -Otarget -j", ""),
        (" -- CFLAGS=-O2\\ -jx", " -j", " -- CFLAGS=-O2\\ -jx"),
    ],
)
def test_flags_of_the_user_stay(given, start, end):
    """Flags and variables that a user gives to make are kept, except for a jobserver of another one."""
    with Jobserver(2, "fifo") as server:
        found = server.environment({"MAKEFLAGS": given, "A": "b", "MFLAGS": "-j8"})
    assert re.fullmatch(
        f"{re.escape(start)}[0-9]+ --jobserver-auth=fifo:[^ ]+{re.escape(end)}", found["MAKEFLAGS"]
    )
    assert found.keys() == {"MAKEFLAGS", "A"}


def test_form_of_a_program():
    """Make and cargo take pipes; ninja takes a fifo."""
    assert form_for("make") == form_for("/usr/bin/cargo") == "pipe"
    assert form_for("ninja") == form_for("/usr/bin/ninja-build") == "fifo"


def test_nothing_is_left():
    """Closing removes the pipe and its folder, and may be repeated."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    server = Jobserver(2, "fifo")
    path = server.environment({})["MAKEFLAGS"].partition("fifo:")[2]
    server.close()
    server.close()
    assert not Path(path).parent.exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(ParameterError, match="a width must be"):
        Jobserver(-1)
