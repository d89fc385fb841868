"""What ended programs have left is removed after a while; nothing else ever is."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from malleable.errors import ParameterError
from malleable.live.broker.state import ProgramRequest, Store, running_time
from malleable.live.broker.state import store as state_store
from malleable.live.programs import retention
from malleable.live.programs.job_folder import HeldCores, JobFolder, Result
from malleable.live.programs.retention import Keep, Retention
from malleable.live.system.loop_thread import LoopThread
from support.living import wait_until

REQUEST = ProgramRequest(("make",), "/", {"SECRET": "s3cret"})
DAY = 86400.0


class Clocks:
    """The clocks of a machine, as they are to be."""

    def __init__(self):
        self.boot, self.uptime, self.wall = "first", 100.0, 1.8e9

    def __call__(self):
        return self.boot, self.uptime, self.wall

    def pass_time(self, seconds):
        self.uptime += seconds
        self.wall += seconds


@pytest.fixture
def clocks(monkeypatch):
    made = Clocks()
    monkeypatch.setattr(running_time, "_clocks", made)
    return made


@pytest.fixture
def store(tmp_path, clocks):
    with Store(tmp_path) as made:
        made.clocks = clocks
        yield made


@pytest.fixture
def loop():
    made = LoopThread("test")
    yield made
    made.close()


def ended(store, days_ago, *, started=True):
    """A program that has ended, with its folder."""
    job = store.add(REQUEST).job
    if started:
        folder = JobFolder(store.folder / "jobs" / job)
        folder.prepare({"job": job})
        (folder.path / "output").write_text("said\n")
    store.clocks.pass_time(-days_ago * DAY)
    at = store.clocks.wall
    store.mark_ended(job, "finished", 0, started=at if started else None, ended=at)
    store.clocks.pass_time(days_ago * DAY)
    return job


def removed(store):
    return {job.job for job in store.jobs() if job.removed}


def folders(store):
    return {path.name for path in (store.folder / "jobs").iterdir()}


def test_what_is_to_be_kept():
    """A number of programs, days or hours, both, or all; anything else is an error with an example."""
    assert Keep.parse("500,7d") == Keep(500, 7 * DAY)
    assert Keep.parse(" 12h ") == Keep(0, DAY / 2)
    assert Keep.parse("500") == Keep(500, 0.0)
    assert Keep.parse("ALL") == Keep(math.inf, math.inf)
    assert Keep.parse("1000,30d") == Keep()
    for wrong in ("", "7w", "-1", "1.5d", "7d;", "d"):
        with pytest.raises(ParameterError, match="--keep 7d"):
            Keep.parse(wrong)


def test_neither_recent_nor_among_the_last(store, loop):
    """Of programs that ended 5, 4, 3, 2 and 1 days ago, the last two are kept, and those of 3½ days.

    Variables are those of programs that may still be started: the ended ones have none.
    """
    jobs = [ended(store, days) for days in (5, 4, 3, 2, 1)]
    queued, running = store.add(REQUEST).job, store.add(REQUEST).job
    store.mark_started(running, 1, 2, "boot")
    JobFolder(store.folder / "jobs" / running).prepare({})
    never = ended(store, 9, started=False)
    Retention(store, store.folder / "jobs", Keep(2, 3.5 * DAY), loop).start()
    wait_until(lambda: len(folders(store)) == 4, "the removal")
    wait_until(lambda: removed(store) == {*jobs[:2], never}, "the notes")
    assert folders(store) == {*jobs[2:], running}
    assert store.get(jobs[0]).request.environment == {}
    assert (store.get(jobs[0]).state, store.get(jobs[0]).exit_code) == ("finished", 0)
    assert store.get(queued).request == store.get(running).request == REQUEST
    assert store.get(jobs[2]).request == replace(REQUEST, environment={})


def test_more_are_kept_if_they_are_recent_or_few(store, loop):
    """Five recent ones stay though one is enough, or though they are old; with `all` everything stays."""
    recent = [ended(store, 1.0 + i / 10) for i in range(5)]
    for keep in (Keep(1, 2 * DAY), Keep(5, 0.0), Keep(math.inf, math.inf)):
        done = Retention(store, store.folder / "jobs", keep, loop)
        done.start()
        loop_is_through(loop)
        assert folders(store) == {*recent}, keep
        assert not removed(store)


def test_a_crash_in_between(store, loop):
    """A folder that a broker had noted as removed, and was killed then, is removed by the next one."""
    job, other = ended(store, 9), ended(store, 8)
    store.mark_removed([job])
    (store.folder / "jobs" / "notes").mkdir()  # not ours
    Retention(store, store.folder / "jobs", Keep(10, 0.0), loop).start()
    wait_until(lambda: folders(store) == {other, "notes"}, "the removal")
    assert removed(store) == {job}


def test_a_supervisor_that_lives_keeps_its_folder(store, loop, monkeypatch):
    """A program that counts as lost is left alone while its supervisor holds the folder, and no longer."""
    monkeypatch.setattr(retention, "LOOK_SECONDS", 0.02)
    job = ended(store, 9)
    held = []
    monkeypatch.setattr(JobFolder, "supervisor", lambda _: held or None)
    held.append("somebody")
    Retention(store, store.folder / "jobs", Keep(0, 0.0), loop).start()
    for _ in range(3):
        loop_is_through(loop)
        time.sleep(0.03)
    assert folders(store) == {job}
    held.clear()
    wait_until(lambda: folders(store) == set(), "the removal")


@pytest.mark.parametrize("boot", ["first", "second"])
def test_a_clock_that_is_wrong(tmp_path, clocks, loop, boot):
    """A wall clock that is set a month ahead, or back, removes nothing of the last seven days.

    It does not while the broker runs, nor from one broker to the next, nor across a start of the machine,
    where a day of it is believed.
    """
    keep = Keep(0, 7 * DAY)
    with Store(tmp_path) as store:
        store.clocks = clocks
        old, young = ended(store, 6.5), ended(store, 5.0)
        clocks.wall += 30 * DAY
        Retention(store, tmp_path / "jobs", keep, loop).start()
        loop_is_through(loop)
        assert not removed(store)
    clocks.wall += 30 * DAY
    if boot != clocks.boot:
        clocks.boot, clocks.uptime = boot, 10.0
    with Store(tmp_path) as store:
        Retention(store, tmp_path / "jobs", keep, loop).start()
        loop_is_through(loop)
        wait_until(lambda: removed(store) == ({old} if boot == "second" else set()), "the removal")
    clocks.wall -= 60 * DAY
    clocks.uptime += 1.5 * DAY
    with Store(tmp_path) as store:
        Retention(store, tmp_path / "jobs", keep, loop).start()
        gone = {old, young} if boot == "second" else {old}
        wait_until(lambda: removed(store) == gone, "the removal of what is old now")


def test_what_is_kept_of_what_was_removed(store, loop, monkeypatch):
    """Of programs that were removed the last so many are known, and none of the others is in the database."""
    monkeypatch.setattr(state_store, "MOST_REMOVED", 2)
    jobs = [ended(store, 9.0) for _ in range(6)]
    kept = ended(store, 1.0)
    Retention(store, store.folder / "jobs", Keep(0, 7 * DAY), loop).start()
    wait_until(lambda: folders(store) == {kept}, "the removal")
    wait_until(lambda: [job.job for job in store.jobs()] == [*jobs[-2:], kept], "the rest")
    assert int(store.add(REQUEST).job) > int(kept)


def test_what_a_program_leaves(store, loop):
    """Of one that has printed nothing no file is left, of another one what it has printed.

    A broker that was killed before it had tidied up leaves that to the next one.
    """
    silent, loud, another, running = (store.add(REQUEST) for _ in range(4))
    for job in (silent, loud, another, running):
        folder = JobFolder(store.folder / "jobs" / job.job)
        folder.prepare({"ticket": "x" if job is another else job.ticket})
        folder.mark_started()
        folder.note_program(1)
        folder.note_held(HeldCores())
        for name in ("output", "errors", "progress", "exit_code"):
            (folder.path / name).touch()
        folder.write_result(Result("finished", 0))
        if job is not running:
            store.mark_ended(job.job, "finished", 0)
    (store.folder / "jobs" / loud.job / "errors").write_text("oh\n")
    Retention(store, store.folder / "jobs", Keep(), loop).start()
    wait_until(lambda: folders(store) == {loud.job, another.job, running.job}, "the silent one")
    left = {path.name for path in (store.folder / "jobs" / loud.job).iterdir()}
    assert left == {"errors", "started"}
    assert JobFolder(store.folder / "jobs" / another.job).result() is not None
    assert JobFolder(store.folder / "jobs" / running.job).result() is not None
    assert not JobFolder(store.folder / "jobs" / loud.job).is_of("another program's ticket")


def loop_is_through(loop):
    """Wait until a loop has done what it was to do, and what followed from that."""
    for _ in range(10):
        done = []
        loop.soon(done.append, True)
        wait_until(lambda done=done: bool(done), "the loop")
