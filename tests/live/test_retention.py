"""What ended programs have left is removed after a while; nothing else ever is."""

from __future__ import annotations

import math
import time

import pytest

from malleable.errors import ParameterError
from malleable.live import retention
from malleable.live.job_folder import JobFolder
from malleable.live.loop_thread import LoopThread
from malleable.live.retention import Keep, Retention
from malleable.live.state import ProgramRequest, Store
from support.living import wait_until

REQUEST = ProgramRequest(("make",), "/", {"SECRET": "s3cret"})
DAY = 86400.0


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as made:
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
        JobFolder(store.folder / "jobs" / job).prepare({"job": job})
    at = time.time() - days_ago * DAY
    store.mark_ended(job, "finished", 0, started=at if started else None, ended=at)
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
    """Of programs that ended 5, 4, 3, 2 and 1 days ago, the last two are kept, and those of 3½ days."""
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
    assert store.get(queued).request == store.get(jobs[2]).request == REQUEST


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
    store.mark_removed(job)
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


def loop_is_through(loop):
    """Wait until a loop has done what it was to do, and what followed from that."""
    for _ in range(10):
        done = []
        loop.soon(done.append, True)
        wait_until(lambda done=done: bool(done), "the loop")
