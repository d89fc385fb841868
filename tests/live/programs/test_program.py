"""Programs of all kinds, narrowed and widened, paused, told of it, and ended, with all that they start."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from malleable.errors import ExecutionError, ParameterError
from malleable.live.programs import Program
from malleable.live.programs.progress import parse_build_progress
from malleable.live.system.process_tree import family, look_up, threads
from support.living import alive, assert_gone, is_paused, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="affinity and /proc are Linux's")
CPUS = sorted(os.sched_getaffinity(0))
TWO = pytest.mark.skipif(len(CPUS) < 2, reason="it takes two CPUs to move from one to the other")
BUSY = """\
# Threads, a child, a grandchild that leaves the group, and newborn processes all the time.
import os, subprocess, sys, threading, time
for _ in range(3):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
subprocess.Popen(["sh", "-c", "setsid sleep 600 & sleep 600"])
open("ready", "w").close()
while True:
    subprocess.run(["sleep", "0.01"])
"""
STUBBORN = """\
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "600"])
open("ready", "w").close()
time.sleep(600)
"""
COUNTS = """\
import os, signal, time
def note(*_):
    with open("told", "a") as file:
        file.write("told ")
signal.signal(signal.SIGUSR1, note)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
"""

WITHOUT_ITS_FIRST_THREAD = """\
import ctypes
libc = ctypes.CDLL(None)
thread, pause = ctypes.c_ulong(), ctypes.cast(libc.pause, ctypes.c_void_p)
libc.pthread_create(ctypes.byref(thread), None, pause, None)
open("ready", "w").close()
libc.pthread_exit(None)
"""


@pytest.fixture
def start(tmp_path):
    """Start programs in a folder of their own; what is left of them in the end is killed."""
    started = []

    def go(*command, **options):
        folder = tmp_path / f"job-{len(started)}"
        folder.mkdir(exist_ok=True)
        started.append(Program(command, folder, working_folder=tmp_path, **options))
        return started[-1]

    yield go
    for program in started:
        program._grace_seconds = 0.0
        program.cancel()
        program.wait(60)


def python(start, folder, text, **options):
    """Start a program of Python, and wait until it says that it is ready."""
    program = start(sys.executable, "-c", text, **options)
    wait_until((folder / "ready").exists, "start of the program")
    return program


def masks(program):
    """The CPUs of all threads of a program."""
    found = []
    for pid in family(program.pid):
        for thread in threads(pid):
            try:
                found.append(os.sched_getaffinity(thread))
            except ProcessLookupError:
                continue
    return found


def test_output_and_exit_code(start, tmp_path):
    """Both streams are kept in files, the exit code is told; standard input is empty."""
    ends = []
    program = start("sh", "-c", "cat; echo out; echo err >&2; exit 7", on_end=ends.append)
    assert program.wait(60) == 7
    assert (tmp_path / "job-0" / "output").read_text() == "out\nerr\n"
    wait_until(lambda: ends == [7], "the end")
    assert program.width_in_use == 0
    program.set_width(1)
    program.cancel()


def test_what_a_program_is_told(start, tmp_path):
    """It learns its cores, where to report progress, and what is set for it."""
    asks = 'echo "$MALLEABLE_CORES $OTHER"; test -f "$MALLEABLE_PROGRESS"'
    program = start("sh", "-c", asks, width=2, environment={"OTHER": "x"})
    assert program.wait(60) == 0
    assert (tmp_path / "job-0" / "output").read_text() == "2 x\n"


@TWO
def test_all_threads_and_descendants_move(start, tmp_path):
    """Threads, children, processes that left the group and newborn ones run where the program may run."""
    program = python(start, tmp_path, BUSY, width=2, cpus=CPUS[:2])
    wait_until(lambda: len(family(program.pid)) >= 4, "its processes")
    assert len(threads(program.pid)) == 4
    for cpus in (CPUS[:1], CPUS[1:2], CPUS[:2], CPUS[:1]):
        program.set_width(len(cpus), cpus)
        found = masks(program)
        assert len(found) >= 7
        assert all(mask == set(cpus) for mask in found)
        assert program.width_in_use == len(cpus)


def test_alone_it_finds_cpus_itself(start):
    """Without CPUs given, a width is that many CPUs of this process, as far as there are any."""
    program = start("sleep", "600")
    assert len(os.sched_getaffinity(program.pid)) == 1
    program.set_width(len(CPUS) + 5)
    assert len(os.sched_getaffinity(program.pid)) <= len(CPUS)


def test_a_pause(start, tmp_path):
    """At width 0 all processes are stopped; at 1 they go on."""
    program = python(start, tmp_path, BUSY)
    for _ in range(2):
        program.set_width(0)
        wait_until(lambda: is_paused(program.pid), "a pause")
    assert program.width_in_use == 0
    program.set_width(1)
    wait_until(lambda: not is_paused(program.pid), "going on")


def test_started_in_a_pause(start, tmp_path):
    """A program that starts at width 0 ends only after it has been given a core."""
    program = start("sh", "-c", "sleep 0.2; echo done", width=0)
    wait_until(lambda: is_paused(program.pid), "a pause")
    program.set_width(1)
    assert program.wait(60) == 0


def test_told_by_a_signal(start, tmp_path):
    """The signal comes with each change of width, and not with a width that stays."""
    program = python(start, tmp_path, COUNTS, on_resize="USR1")
    for width in (2, 2, 0, 1):
        program.set_width(width)
    wait_until((tmp_path / "told").exists, "the signal")
    (tmp_path / "go").touch()
    assert program.wait(60) == 0
    # Two signals that come together count as one.
    assert (tmp_path / "told").read_text().split() in (["told"], ["told"] * 2)


def test_told_by_a_command(start, tmp_path):
    """The command is run without a shell, with the cores in its words and in its environment."""
    note = tmp_path / "note it"
    note.write_text('#!/bin/sh\necho "$1 $2 $MALLEABLE_CORES $MALLEABLE_PID" >> "$0.log"\n')
    note.chmod(0o755)
    program = start("sleep", "600", on_resize=f"'{note}' {{cores}} '$(touch {tmp_path}/harm); x'")
    for width in (2, 3):
        program.set_width(width)
    log = Path(f"{note}.log")
    lines = [f"{width} $(touch {tmp_path}/harm); x {width} {program.pid}" for width in (2, 3)]
    wait_until(lambda: log.exists() and log.read_text().splitlines() == lines, "both commands")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(("text", "problem"), [("", "needs a signal or a command"), ("'x", "cannot read")])
def test_wrong_notices(start, text, problem):
    """A notice that cannot be given is refused before the program starts."""
    with pytest.raises(ParameterError, match=problem):
        start("true", on_resize=text)


def test_progress(start, tmp_path):
    """Lines are passed on as they are written, appended or not; the last one counts, in the end too."""
    told = []
    text = 'echo 12/100 >> "$MALLEABLE_PROGRESS"; while [ ! -e go ]; do sleep 0.01; done; '
    text += 'printf "noise\\n0.75\\n99/100/x\\n" > "$MALLEABLE_PROGRESS"'
    program = start("sh", "-c", text, on_progress=told.append)
    wait_until(lambda: told == [(12.0, 100.0)], "the first line")
    (tmp_path / "go").touch()
    assert program.wait(60) == 0
    assert told == [(12.0, 100.0), (0.75, 1.0)]


def test_progress_in_the_output(start, tmp_path):
    """A build tells its progress in what it prints."""
    told = []
    text = 'echo "[1/4] cc a.c"; while [ ! -e go ]; do sleep 0.01; done; echo "[4/4] ld a"'
    program = start("sh", "-c", text, on_progress=told.append, output_progress=parse_build_progress)
    wait_until(lambda: told == [(1.0, 4.0)], "the first command")
    (tmp_path / "go").touch()
    assert program.wait(60) == 0
    assert told == [(1.0, 4.0), (4.0, 4.0)]


def test_a_program_that_goes_on_without_its_first_thread(start, tmp_path):
    """A process whose first thread has ended is paused and ended like any other, though it looks dead."""
    program = python(start, tmp_path, WITHOUT_ITS_FIRST_THREAD)
    wait_until(lambda: look_up(program.pid).state == "Z", "the end of its first thread")
    status = Path(f"/proc/{program.pid}/task/{max(threads(program.pid))}/status")
    program.set_width(0)
    wait_until(lambda: "T (stopped)" in status.read_text(), "a pause")
    program.cancel()
    assert program.wait(60) == -signal.SIGTERM


def test_cancel_ends_everything(start, tmp_path):
    """All that was started ends, even what left the group, and what is stopped; SIGTERM is the code."""
    program = python(start, tmp_path, BUSY)
    wait_until(lambda: len(family(program.pid)) >= 4, "its processes")
    program.set_width(0)
    pids = sorted(family(program.pid))
    program.cancel()
    assert program.wait(60) == -signal.SIGTERM
    assert alive(pids) == []


def test_what_ignores_sigterm_is_killed(start, tmp_path):
    """After the grace period a program that does not end is killed, with its children."""
    program = python(start, tmp_path, STUBBORN, grace_seconds=0.3)
    pids = sorted(family(program.pid))
    program.cancel()
    assert program.wait(60) == -signal.SIGKILL
    assert_gone(pids)


def test_nothing_is_left_behind(start):
    """What a program leaves in the background ends with it: its cores are another's from then on."""
    program = start("sh", "-c", "sleep 600 & sleep 600 & wait $!", grace_seconds=0.3)
    wait_until(lambda: len(family(program.pid)) == 3, "its children")
    pids = sorted(family(program.pid))
    os.kill(program.pid, signal.SIGKILL)
    assert program.wait(60) == -signal.SIGKILL
    assert alive(pids) == []


def test_programs_that_cannot_start(start, tmp_path):
    """One line says what cannot be run."""
    for command, problem in (((), "no command"), (("no-such-program",), "cannot run 'no-such-program'")):
        with pytest.raises(ExecutionError, match=problem):
            start(*command)


def test_listeners_that_fail(start, tmp_path, caplog):
    """An error of a listener is logged, and neither stops the program nor the watch over it."""
    told = []
    text = 'echo 0.5 > "$MALLEABLE_PROGRESS"'
    program = start("sh", "-c", text, on_progress=lambda _: 1 / 0, on_end=told.append)
    assert program.wait(60) == 0
    wait_until(lambda: told == [0], "the end")
    assert "a listener raised an error" in caplog.text
