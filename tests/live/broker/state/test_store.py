"""The store of submitted programs: what was accepted stays, whoever is killed and whatever the disk does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from malleable.live.broker.state import ProgramRequest, Store, StoreError, schema
from malleable.live.broker.state import store as store_module
from malleable.live.broker.state.store import PRESENT
from support.disks import small_disk
from support.living import wait_until
from support.shell import PATIENCE, environment

REQUEST = ProgramRequest(("make", "all"), "/somewhere", {"SECRET": "x"})
ADD_FOR_EVER = """\
import sys
from pathlib import Path
from malleable.live.broker.state import ProgramRequest, Store
store = Store(Path(sys.argv[1]))
request = ProgramRequest(("x",), "/")
while True:
    job = store.add(request).job
    store.mark_ended(job, "finished", 7)
    print(job, flush=True)
"""


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "state", batch_seconds=0.05) as made:
        yield made


def test_the_life_of_a_program(store):
    """It is queued, started, asked to end, and ended; each is there to be read as soon as it is written."""
    job = store.add(REQUEST)
    assert store.get(job.job) == job
    assert (job.state, job.request, job.exit_code) == ("queued", REQUEST, None)
    store.mark_started(job.job, 123, 456, "boot")
    found = store.get(job.job)
    assert (found.state, found.pid, found.start_time, found.boot) == ("running", 123, 456, "boot")
    store.mark_cancel_asked(job.job)
    assert store.get(job.job).cancel_asked is True
    store.mark_ended(job.job, "cancelled", -15, started=98.0, ended=99.0, reason="asked")
    found = store.get(job.job)
    assert (found.state, found.exit_code, found.reason) == ("cancelled", -15, "asked")
    assert (found.started, found.ended) == (98.0, 99.0)


def test_a_program_ends_once(store):
    """Only the first ending counts, and nothing starts after it."""
    job = store.add(REQUEST).job
    store.mark_ended(job, "finished", 0)
    store.mark_ended(job, "failed", 1)
    store.mark_started(job, 1, 2)
    assert (store.get(job).state, store.get(job).exit_code) == ("finished", 0)


def test_lists(store):
    """Programs come in order, by state, the last so many if asked; one that was removed is gone for good."""
    names = [store.add(REQUEST).job for _ in range(5)]
    store.mark_ended(names[1], "failed", 1)
    store.mark_started(names[2], 1, 2)
    assert [job.job for job in store.jobs()] == names
    assert [job.job for job in store.jobs(PRESENT)] == [names[0], *names[2:]]
    assert [job.job for job in store.jobs(most=2)] == names[3:]
    assert store.counts() == {"queued": 3, "failed": 1, "running": 1}
    store.remove(names[4])
    assert store.add(REQUEST).job not in names


@pytest.mark.parametrize("name", ["", "x", "-1", "1 OR 1=1", "../1", "²", "9" * 30, "0"])
def test_what_is_no_name(store, name):
    """Only numbers name programs; anything else names none."""
    store.add(REQUEST)
    assert store.get(name) is None


def test_secrets_are_not_shown(store):
    """The document for everyone has neither the ticket nor the variables."""
    job = store.add(REQUEST)
    text = str(job.to_dict())
    assert "SECRET" not in text
    assert job.ticket not in text
    assert "make" in text


def test_only_the_user_may_read_it(store):
    """The database and the files beside it are the user's alone."""
    store.add(REQUEST)
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.folder.glob("jobs.sqlite*")}
    assert modes == dict.fromkeys(("jobs.sqlite", "jobs.sqlite-wal", "jobs.sqlite-shm"), 0o600)


def test_progress_is_written_together(store):
    """The last report counts, a little later, and the number of units stays when it is not said again."""
    job = store.add(REQUEST).job
    for done in range(50):
        store.progress(job, float(done), 100.0)
    store.progress(job, 60.0)
    wait_until(lambda: store.get(job).units_done == 60.0, "the batch")
    assert store.get(job).units == 100.0


def test_closing_writes_what_waits(tmp_path):
    """Progress that was not written yet is, at the end; afterwards nothing is accepted."""
    store = Store(tmp_path, batch_seconds=3600.0)
    job = store.add(REQUEST).job
    store.progress(job, 3.0, 4.0)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.add(REQUEST)
    with Store(tmp_path) as again:
        assert (again.get(job).units_done, again.get(job).units) == (3.0, 4.0)


def test_many_at_once(store):
    """Threads that add at the same time get a name each, and share transactions."""
    commits = []
    store._writer.connection.set_trace_callback(
        lambda text: commits.append(text) if text == "COMMIT" else None
    )
    barrier = threading.Barrier(16)

    def add(_number):
        barrier.wait()
        return [store.add(REQUEST).job for _ in range(10)]

    with ThreadPoolExecutor(16) as threads:
        names = [name for found in threads.map(add, range(16)) for name in found]
    assert len(set(names)) == 160 == len(store.jobs())
    assert len(commits) < 160


def test_killed_while_writing(tmp_path):
    """Whatever was accepted before a SIGKILL is there, as it was written, and the database is sound."""
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", ADD_FOR_EVER, str(tmp_path)], env=environment(), stdout=subprocess.PIPE
        )
        said = [child.stdout.readline() for _ in range(20)]
        child.send_signal(signal.SIGKILL)
        said += child.stdout.read().splitlines()
        child.stdout.close()
        child.wait()
        with Store(tmp_path) as store:
            assert store.integrity() == []
            for name in said:
                found = store.get(name.decode().strip())
                assert (found.state, found.exit_code) == ("finished", 7)


def fill(store):
    """Add programs until the disk takes no more; those that were accepted."""
    accepted = []
    while len(accepted) < 100_000:
        try:
            accepted.append(store.add(REQUEST).job)
        except StoreError as error:
            return accepted, error
    raise AssertionError("it has taken them all")


def check_full(store, more_room):
    """After the first refusal: nothing is lost, and all is well when there is room again."""
    accepted, error = fill(store)
    assert "\n" not in str(error)
    assert error.hint
    assert [job.job for job in store.jobs()] == accepted
    accepted += fill(store)[0]
    more_room()
    again = store.add(REQUEST)
    store.mark_ended(accepted[0], "finished", 0)
    assert store.get(again.job) == again
    assert store.get(accepted[0]).state == "finished"
    assert store.integrity() == []
    return error


def test_a_full_database(store):
    """A database that cannot grow refuses new programs, says so in one line, and loses none."""
    connection = store._writer.connection
    connection.execute("PRAGMA max_page_count=20")
    error = check_full(store, lambda: connection.execute("PRAGMA max_page_count=100000"))
    assert "the disk is full" in error.problem


def test_a_full_disk(tmp_path):
    """On a disk without room new programs are refused in one line, none is lost, and room mends it."""
    with small_disk(tmp_path / "disk") as disk:
        (disk / "ballast").write_bytes(b"x" * 65536)
        with Store(disk / "state") as store:
            error = check_full(store, (disk / "ballast").unlink)
            assert "full" in error.problem


def test_an_end_is_known_though_the_disk_is_full(store, monkeypatch):
    """Readers see at once what became of a program; the disk has it, once, when there is room again."""
    job = store.add(REQUEST).job

    def refuse(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store._writer, "_transact", refuse)
        with pytest.raises(StoreError, match="disk is full"):
            store.mark_ended(job, "failed", 4, reason="why")
        (found,) = store.jobs(PRESENT)
        assert (found.state, found.exit_code, found.reason) == ("failed", 4, "why")
        assert store.get(job) == found
    store.mark_ended(job, "lost")
    assert store.jobs(PRESENT) == []
    again = store.get(job)
    assert (again.state, again.exit_code, again.reason, again.ended) == ("failed", 4, "why", found.ended)


def test_why_a_program_waits(store):
    """It is told of a program that waits, and as long as it is so."""
    job = store.add(REQUEST).job
    store.explain(job, "no room")
    assert store.get(job).reason == "no room"
    store.explain(job, "")
    assert store.get(job).reason == ""


LIMITED = """\
import resource, sys
from pathlib import Path
from malleable.live.broker.state import ProgramRequest, Store, StoreError
store = Store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
accepted, refused = [], []
for _ in range(3000):
    try:
        accepted.append(store.add(ProgramRequest(("x" * 200,), "/")).job)
    except StoreError as error:
        refused.append(str(error))
        if len(refused) > 3:
            break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
accepted.append(store.add(ProgramRequest(("x",), "/")).job)
assert [job.job for job in store.jobs()] == accepted
assert store.integrity() == []
store.close()
print(len(accepted), refused[0])
"""


def test_files_that_may_not_grow(tmp_path):
    """A limit on the size of files is refused in the same way, and nothing is lost."""
    said = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("\n") == 1
    assert "jobs.sqlite" in said.stdout


def said_to_others(folder: Path) -> str:
    """What a user who may not write to a folder is told when opening a store there."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads; the child has none
        child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            try:
                Store(folder).close()
            except StoreError as error:
                os.write(write, f"{error}\n".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_cannot_be_written(tmp_path, there):
    """A folder without the right to write is one clear line, with a database in it or without."""
    folder = Path("/tmp") / f"malleable-test-{os.getpid()}-{there}"  # where others may go
    folder.mkdir()
    try:
        if there:
            Store(folder).close()
        folder.chmod(0o555)
        said = said_to_others(folder)
        assert said.count("\n") == 1
        assert said.startswith(f"cannot write {folder}/jobs.sqlite")
        assert "MALLEABLE_STATE" in said
        said = said_to_others(folder / "below")
        assert said.startswith(f"cannot make {folder}/below")
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_damaged_database(tmp_path):
    """Bytes that were scrambled are noticed when it is opened; the file stays as it is, to be rescued."""
    with Store(tmp_path) as store:
        for _ in range(200):
            store.add(REQUEST)
    path = tmp_path / "jobs.sqlite"
    held = bytearray(path.read_bytes())
    for place in range(6000, len(held), 4096):
        held[place : place + 500] = b"\xff" * 500
    path.write_bytes(held)
    with pytest.raises(StoreError, match="is damaged") as caught:
        Store(tmp_path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == held


@pytest.mark.parametrize("text", [b"this is no database at all, but a letter to a friend", b"\0" * 5000])
def test_no_database(tmp_path, text):
    """A file of something else is left alone."""
    (tmp_path / "jobs.sqlite").write_bytes(text)
    with pytest.raises(StoreError, match="is damaged"):
        Store(tmp_path)
    assert (tmp_path / "jobs.sqlite").read_bytes() == text


def test_another_version(tmp_path):
    """A database of a later version, or of another program, is not touched."""
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / "jobs.sqlite") as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreError, match="is of version 99"):
        Store(tmp_path)
    with sqlite3.connect(tmp_path / "jobs.sqlite") as connection:
        connection.execute("PRAGMA application_id=7")
    connection.close()
    with pytest.raises(StoreError, match="something else"):
        Store(tmp_path)


def test_it_is_read_through_after_an_unclean_end_only(tmp_path, monkeypatch):
    """A database that a broker has closed is not checked, one that was not closed or is another is."""
    checks = []
    usual = store_module.check_integrity
    monkeypatch.setattr(store_module, "check_integrity", lambda *each: checks.append(1) or usual(*each))
    first = Store(tmp_path)
    first.add(REQUEST)
    copy = tmp_path / "killed"
    copy.mkdir()
    for path in tmp_path.glob("jobs.*"):
        shutil.copy2(path, copy)
    first.close()
    checks.clear()
    Store(tmp_path).close()
    assert not checks
    Store(copy).close()
    assert len(checks) == 1
    Store(copy).close()
    assert len(checks) == 1
    with sqlite3.connect(copy / "jobs.sqlite") as connection:
        connection.execute("UPDATE jobs SET reason='touched'")
    connection.close()
    Store(copy).close()
    assert len(checks) == 2


def test_ends_are_noted_together(store):
    """Who does not wait for the disk shares its syncs with others; a start is not worth one."""
    jobs = [store.add(REQUEST).job for _ in range(20)]
    statements = []
    store._writer.connection.set_trace_callback(statements.append)
    store.mark_started(jobs[0], 1, 2)
    assert "PRAGMA synchronous=NORMAL" in statements
    assert "PRAGMA synchronous=FULL" not in statements
    first, done = threading.Event(), []

    def hold(error):
        assert first.wait(PATIENCE)
        done.append(error)

    store.mark_ended(jobs[0], "finished", 0, then=hold)  # the writer is busy until it is told
    for job in jobs[1:]:
        store.mark_ended(job, "failed", 1, then=done.append)
    first.set()
    wait_until(lambda: len(done) == len(jobs), "all ends")
    assert done == [None] * len(jobs)
    assert statements.count("COMMIT") <= 3
    assert store.counts() == {"finished": 1, "failed": 19}


def test_an_end_that_cannot_be_noted(store):
    """Who does not wait is told of the error; a closed store is one."""
    job = store.add(REQUEST).job
    store._writer.connection.execute("PRAGMA query_only=ON")
    said = []
    store.mark_ended(job, "finished", 0, then=said.append)
    wait_until(lambda: said, "the error")
    assert isinstance(said[0], StoreError)
    store.close()
    store.mark_ended(job, "finished", 0, then=said.append)
    assert isinstance(said[1], StoreError)


def test_a_database_of_an_earlier_malleable(tmp_path):
    """What it lacks is added, what is in it stays, and an earlier malleable can still read it."""
    connection = sqlite3.connect(tmp_path / "jobs.sqlite")
    connection.executescript(
        f"{schema.TABLES} PRAGMA application_id={schema.APPLICATION}; PRAGMA user_version={schema.VERSION}"
    )
    text = json.dumps(REQUEST.parameters())
    known = "INSERT INTO jobs (request, ticket, submitted) VALUES (?, 'x', ?)"
    connection.execute(known, (text, time.time() - 7.0))
    connection.commit()
    for _ in range(2):
        with Store(tmp_path) as store:
            old = store.get("1")
            assert (old.request, old.state, old.accepted) == (REQUEST, "queued", None)
            assert store.age(old) == pytest.approx(7.0, abs=PATIENCE)
    connection.execute(known, (text, 1.0))
    connection.commit()
    connection.close()
    with Store(tmp_path) as store:
        store.mark_ended("1", "finished", 0, cpu_seconds=1.5)
        assert store.get("1").cpu_seconds == 1.5
        assert store.get("1").request == replace(REQUEST, environment={})
        assert store.get("2").request == REQUEST


def test_ages_are_of_no_clock_that_is_set(store, monkeypatch):
    """A program is as old as time has passed, when the wall clock has jumped a month ahead or back."""
    usual = time.time
    for jump in (-30 * 86400.0, 30 * 86400.0):
        job = store.add(REQUEST)
        monkeypatch.setattr(time, "time", lambda jump=jump: usual() + jump)
        assert 0.0 <= store.age(job) < PATIENCE
        assert 0.0 <= store.age(store.get(job.job)) < PATIENCE


@pytest.mark.slow
def test_ten_thousand_programs(tmp_path):
    """So many are accepted one by one, and are there in order after a restart."""
    with Store(tmp_path) as store:
        names = [store.add(REQUEST).job for _ in range(10_000)]
    with Store(tmp_path) as store:
        assert [job.job for job in store.jobs(PRESENT)] == names
        assert store.integrity() == []
