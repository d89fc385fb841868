"""A program as a job: it starts at its first grant, once, follows its orders, and says what it uses."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from malleable.errors import ExecutionError
from malleable.live.core.orders import Order
from malleable.live.programs import program_client as program_module
from malleable.live.programs.job_folder import JobFolder
from malleable.live.programs.program_client import Command, Ending, ProgramClient
from malleable.live.system.process_tree import look_up
from support.living import wait_until
from support.seats import driven

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="affinity and /proc are Linux's")
CPUS = tuple(sorted(os.sched_getaffinity(0)))
WAIT = 'echo "$MALLEABLE_CORES $OMP_NUM_THREADS $OTHER"; echo oh >&2; while [ ! -e go ]; do sleep 0.01; done'


@pytest.fixture
def folder(tmp_path):
    made = JobFolder(tmp_path / "job")
    made.prepare({})
    return made


@pytest.fixture
def start(folder, tmp_path):
    """A client of a shell's command, that runs in the test's folder."""

    def make(text, environment=None, on_resize=None, max_cores=None):
        command = Command(["sh", "-c", text], tmp_path, environment or {}, on_resize, max_cores)
        return driven(ProgramClient(command, folder))

    return make


def test_libraries_start_no_more_threads_than_it_takes_cores(start, folder):
    """A program that takes at most one core is told so, whatever the machine has."""
    with start('echo "$OMP_NUM_THREADS"', max_cores=1) as job:
        job.obeyed(1, CPUS[:1])
        assert job.ending.result(60.0) == Ending("finished", 0)
    assert (folder.path / "output").read_text() == "1\n"


def test_it_starts_at_its_first_grant(start, folder, tmp_path):
    """Without cores it does not run; then it is told how many it has; the end is its own."""
    with start(WAIT, {"OTHER": "x"}) as job:
        job.obeyed(0)
        assert not folder.started
        job.obeyed(1, CPUS[:1])
        assert folder.program().process() is not None
        wait_until(lambda: (folder.path / "errors").read_text() == "oh\n", "its errors")
        (tmp_path / "go").touch()
        assert job.ending.result(60.0) == Ending("finished", 0)
    assert (folder.path / "output").read_text() == f"1 {len(CPUS)} x\n"
    assert job.client.started_at <= time.time()


def test_threads_as_the_user_says(start, folder, tmp_path):
    """A number of threads that is asked for is left alone."""
    (tmp_path / "go").touch()
    with start(WAIT, {"OMP_NUM_THREADS": "3"}) as job:
        job.obeyed(1)
        job.ending.result(60.0)
    assert (folder.path / "output").read_text() == "1 3 \n"


def test_executors_inside_divide_its_own_cores(start, folder):
    """A program is counted once: what it runs asks no broker for more, unless the user says so."""
    for given, seen in (({}, "embedded"), ({"MALLEABLE_BROKER": "/a/socket"}, "/a/socket")):
        folder.path.joinpath("started").unlink(missing_ok=True)
        with start('echo "$MALLEABLE_BROKER"', given) as job:
            job.obeyed(1)
            job.ending.result(60.0)
        assert (folder.path / "output").read_text().splitlines()[-1] == seen


def test_it_follows_its_orders(start, folder):
    """CPUs, pauses and going on; what it holds is written down; an order that comes late changes nothing."""
    with start("sleep 600") as job:
        for cores, cpus in ((1, CPUS[:1]), (len(CPUS[:2]), CPUS[:2]), (1, CPUS[1:2] or CPUS[:1])):
            job.obeyed(cores, cpus)
            pid = folder.program().pid
            assert os.sched_getaffinity(pid) == set(cpus)
            assert folder.held()[:2] == (cores, cpus)
        job.obeyed(0)
        wait_until(lambda: look_up(pid).state == "T", "a pause")
        assert folder.held().cores == 0
        job.client.obey(Order("1", 1, 1, CPUS[:1]))
        job.obeyed(1, CPUS[:1])
        wait_until(lambda: look_up(pid).state != "T", "going on")
        assert [number for _, number in job.seat.confirmed] == [1, 2, 3, 4, 5]
        assert folder.held().history(time.monotonic())[1] > 0.0


def test_more_cores_are_noted_before_they_are_used(start, folder, monkeypatch):
    """Whoever reads the folder at any moment knows at least the cores in use."""
    noted = []
    with start("sleep 600") as job:
        job.obeyed(1, CPUS[:1])
        program = job.client._program
        usual = program.set_width
        monkeypatch.setattr(
            program, "set_width", lambda *a: (noted.append((a[0], folder.held().cores)), usual(*a))
        )
        job.obeyed(5)
        job.obeyed(2)
    assert noted[:2] == [(5, 5), (2, 5)]


def test_any_cpus_where_none_are_named(start, folder):
    """Where cores are numbers only, a program may run anywhere; there may be more than the machine has."""
    with start("sleep 600") as job:
        job.obeyed(100)
        assert os.sched_getaffinity(folder.program().pid) == set(CPUS)


def test_it_is_told_of_a_new_width(start, tmp_path):
    """By a signal, if it wishes so."""
    with start(
        "trap 'echo told >> told' USR1; touch ready; while :; do sleep 0.01; done", on_resize="USR1"
    ) as job:
        job.obeyed(1)
        wait_until((tmp_path / "ready").exists, "start of the program")
        job.obeyed(2)
        wait_until((tmp_path / "told").exists, "the signal")


def test_progress_is_passed_on(start, tmp_path):
    """What the program writes to its progress file."""
    with start('echo 3/10 > "$MALLEABLE_PROGRESS"; ' + WAIT) as job:
        job.obeyed(1)
        wait_until(lambda: job.seat.reports == [(3.0, 10.0)], "the report")


def test_cancelled_before_it_started(start, folder):
    """It never runs, and has no exit code."""
    with start("touch ran") as job:
        job.client.cancel()
        assert job.ending.result(60.0) == Ending("cancelled", None)
    assert not folder.started


@pytest.mark.parametrize("cores", [0, 1])
def test_cancelled_while_it_runs(start, cores):
    """It is ended, also while it is paused, and the signal is its code."""
    with start("sleep 600") as job:
        job.obeyed(1)
        job.obeyed(cores)
        job.client.cancel()
        assert job.ending.result(60.0) == Ending("cancelled", -signal.SIGTERM)


@pytest.mark.parametrize(("text", "ending"), [("exit 3", ("failed", 3)), ("kill -9 $$", ("failed", -9))])
def test_failures(start, text, ending):
    """An exit code, or a signal as a negative one."""
    with start(text) as job:
        job.order(1)
        assert job.ending.result(60.0) == ending


def test_cancelled_too_late(start, tmp_path):
    """A program that ends well although it was asked to end has finished."""
    with start("trap 'exit 0' TERM; touch ready; while :; do sleep 0.01; done") as job:
        job.obeyed(1)
        wait_until((tmp_path / "ready").exists, "start of the program")
        job.client.cancel()
        assert job.ending.result(60.0) == Ending("finished", 0)


def test_it_is_never_started_twice(start, folder, tmp_path):
    """Where somebody has marked it as started, it is not, whatever became of that."""
    folder.mark_started()
    with start("touch ran") as job:
        job.order(1)
        with pytest.raises(ExecutionError, match="started before"):
            job.ending.result(60.0)
    assert not (tmp_path / "ran").exists()


def test_what_cannot_be_started(folder, tmp_path):
    """A command that is not there, and a folder that is not, are errors of one line."""
    for words, place in ((["no-such-command"], tmp_path), (["true"], tmp_path / "nowhere")):
        (folder.path / "started").unlink(missing_ok=True)
        with driven(ProgramClient(Command(words, place), folder)) as job:
            job.order(1)
            with pytest.raises(ExecutionError, match="cannot run"):
                job.ending.result(60.0)


def test_a_full_disk_at_the_start(start, folder, monkeypatch):
    """It does not lose its turn: it starts when there is room to note that it does."""
    usual, tries = JobFolder.mark_started, []

    def mark_started(self):
        tries.append(1)
        if len(tries) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(self)

    monkeypatch.setattr(JobFolder, "mark_started", mark_started)
    monkeypatch.setattr(program_module, "RETRY_SECONDS", 0.01)
    with start("exit 0") as job:
        job.order(1)
        assert job.ending.result(60.0) == Ending("finished", 0)
    assert len(tries) == 3


def test_a_clock_that_is_set_meanwhile(start, folder, monkeypatch):
    """How long a program was there, and at which widths, does not depend on a clock that someone sets."""
    usual = time.time
    with start("sleep 600") as job:
        job.obeyed(1)
        monkeypatch.setattr(time, "time", lambda: usual() + 30 * 86400.0)
        job.obeyed(2)
        assert job.client.time_now() - job.client.started_at < 60.0
        assert 0.0 < sum(folder.held().history(time.monotonic()).values()) < 60.0


@pytest.mark.parametrize("place", ["fsync", "touch", "open", "Popen"])
def test_what_fails_after_the_mark(start, folder, tmp_path, monkeypatch, place):
    """Whatever the machine refuses before the command runs, its turn is not lost, and it runs once."""
    module = {"fsync": os, "touch": Path, "open": os, "Popen": subprocess}[place]
    usual, tries = getattr(module, place), []

    def refuse(*arguments, **options):
        if folder.started and len(tries) < 3:
            tries.append(1)
            raise OSError(errno.EAGAIN if place == "Popen" else errno.ENOSPC, "refused")
        return usual(*arguments, **options)

    monkeypatch.setattr(program_module, "RETRY_SECONDS", 0.01)
    with start("echo x >> ran") as job:
        monkeypatch.setattr(module, place, refuse)
        job.order(1)
        assert job.ending.result(60.0) == Ending("finished", 0)
    assert (len(tries), (tmp_path / "ran").read_text()) == (3, "x\n")


def test_what_fails_while_it_runs(start, folder, monkeypatch, caplog):
    """An order that cannot be followed is tried again, and said once: also to continue it."""
    monkeypatch.setattr(program_module, "RETRY_SECONDS", 0.01)
    tries = []

    def refuse(*_):
        tries.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    with start("sleep 600") as job:
        job.obeyed(1)
        pid = folder.program().pid
        numbers = []
        for cores in (0, 1):
            tries.clear()
            with monkeypatch.context() as patch:
                patch.setattr(os, "listdir", refuse)
                numbers.append(job.order(cores))
                wait_until(lambda: len(tries) >= 3, "three attempts")
            wait_until(lambda: job.seat.confirmed[-1][1] == numbers[-1], "the order")
            wait_until(lambda: (look_up(pid).state == "T") == (len(numbers) == 1), "its state")
    assert [record.message for record in caplog.records] == [
        "cannot follow an order yet: [Errno 24] Too many open files"
    ]


def test_a_turn_that_cannot_be_taken(folder, tmp_path, monkeypatch, caplog):
    """A paused program whose supervisor cannot look for its turn is not lost, and hears the next broker."""
    monkeypatch.setattr(program_module, "LOOK_SECONDS", 0.01)
    tries = []

    class Short:
        def taken(self, _):
            tries.append(1)
            raise OSError(errno.ENOSPC, "No space left on device")

        def forget(self):
            """It is not paused any more."""

    with driven(ProgramClient(Command(["sleep", "600"], tmp_path), folder, turn=Short())) as job:
        job.obeyed(1)
        job.obeyed(0)
        wait_until(lambda: len(tries) >= 3, "three looks")
        job.obeyed(1)
        assert not job.ending.done()
    assert len(caplog.records) == 1


def test_cpus_that_have_vanished(start, folder):
    """A program is started, widened and narrowed though CPUs that it is given are not there any more."""
    missing = 1000
    with start("sleep 600") as job:
        job.obeyed(1, (missing,))
        pid = folder.program().pid
        assert os.sched_getaffinity(pid) == set(CPUS)
        job.obeyed(2, (missing, CPUS[0]))
        assert os.sched_getaffinity(pid) == {CPUS[0]}
        job.obeyed(1, (missing,))
        job.obeyed(0)
        job.obeyed(1, CPUS[-1:])
        assert os.sched_getaffinity(pid) == {CPUS[-1]}
        assert not job.ending.done()


def test_giving_up(start):
    """A program that no broker starts is given up; one that runs is not."""
    with start("sleep 600") as job:
        job.client.give_up()
        assert job.ending.result(60.0) is None
    with start("sleep 600") as job:
        job.obeyed(1)
        job.client.give_up()
        job.obeyed(2)
        assert not job.ending.done()
