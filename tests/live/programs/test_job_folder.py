"""The folder of a submitted program: who is its supervisor, whether it was started, and how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from malleable.live.programs import job_folder
from malleable.live.programs.job_folder import HeldCores, JobFolder, ProcessName, Result
from support.disks import small_disk
from support.shell import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
HOLD = """\
import sys, time
from pathlib import Path
from malleable.live.programs.job_folder import JobFolder
assert JobFolder(Path(sys.argv[1])).lock()
print("locked", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(job_folder, "LOCK_SECONDS", 0.2)
    made = JobFolder(tmp_path / "job")
    made.prepare({"a": 1})
    return made


def test_one_supervisor_at_a_time(folder):
    """While a process has the lock no other gets it, and it is known which; its death frees it."""
    assert folder.supervisor() is None
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)], env=environment(), stdout=subprocess.PIPE
    )
    try:
        assert child.stdout.readline() == b"locked\n"
        assert folder.supervisor() == ProcessName.of(child.pid)
        assert not folder.lock()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert folder.supervisor() is None
    assert folder.lock()
    assert folder.supervisor() == ProcessName.of(os.getpid())


def test_looking_does_not_lock(folder):
    """A broker that looks all the time does not keep a supervisor out."""
    (folder.path / "supervisor").touch()
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        assert folder.supervisor() is None
    assert folder.lock()


def test_a_process_is_told_from_a_later_one(folder):
    """A name of an earlier start of the machine, or of another process with the same number, is nobody's."""
    name = ProcessName.of(os.getpid())
    assert name.process().pid == os.getpid()
    assert name._replace(start_time=name.start_time - 1).process() is None
    assert name._replace(boot="another").process() is None
    assert ProcessName.of(2**22 + 1) is None


def test_it_is_marked_as_started_once(folder):
    """The first mark counts; there is room for the result from then on."""
    assert not folder.started
    assert folder.mark_started()
    assert folder.started
    assert not folder.mark_started()
    assert (folder.path / "result.part").stat().st_size == job_folder.ROOM


def test_syncs_of_the_disk(folder, monkeypatch):
    """A program waits for the disk once before it is started, and twice for its result to be safe."""
    syncs, usual = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: syncs.append(file) or usual(file))
    folder.mark_started()
    assert len(syncs) == 1
    folder.note_held(HeldCores(1))
    folder.note_program(os.getpid())
    folder.write_result(Result("finished", 0))
    assert len(syncs) == 3


def test_the_result(folder):
    """It is there whole or not at all, and never longer than the room that was kept for it."""
    assert folder.result() is None
    folder.mark_started()
    made = Result("failed", -9, 1.5, 2.5, "why " * 500)
    folder.write_result(made)
    found = folder.result()
    assert (found.outcome, found.exit_code, found.started, found.ended) == ("failed", -9, 1.5, 2.5)
    assert found.reason.startswith("why why")
    assert (folder.path / "result.json").stat().st_size == job_folder.ROOM
    json.loads((folder.path / "result.json").read_text())


def test_half_a_result_is_none(folder):
    """What was not renamed does not count."""
    folder.mark_started()
    (folder.path / "result.part").write_text('{"outcome": "fin')
    assert folder.result() is None


def test_what_is_held(folder):
    """Cores, CPUs, and the seconds at each width so far."""
    assert folder.held() == HeldCores()
    held = HeldCores().then(2, (3, 4), 10.0).then(1, (3,), 15.0).then(0, (), 16.0).then(2, (3, 5), 20.0)
    assert held == HeldCores(2, (3, 5), 20.0, ((2, 5.0), (1, 1.0)))
    assert held.history(21.5) == {2: 6.5, 1: 1.0}
    folder.note_held(held)
    assert folder.held() == held


def test_what_cannot_be_noted_is_no_error(folder):
    """A note that may be missing does not end a program: a full disk, a folder that is gone."""
    gone = JobFolder(folder.path / "gone")
    gone.note_held(HeldCores(1))
    gone.note_program(os.getpid())
    assert gone.held() == HeldCores()
    with pytest.raises(OSError, match="No such file"):
        gone.write_result(Result("finished", 0))


def test_on_a_full_disk(tmp_path):
    """A program that was started when there was room leaves its result, whole, when there is none."""
    with small_disk(tmp_path / "disk") as disk:
        folder = JobFolder(disk / "job")
        folder.prepare({})
        folder.mark_started()
        with pytest.raises(OSError, match="No space"):
            (disk / "ballast").write_bytes(b"x" * 10**6)
        folder.write_result(Result("finished", 0, 1.0, 2.0))
        assert folder.result() == Result("finished", 0, 1.0, 2.0)
