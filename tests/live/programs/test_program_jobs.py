"""The broker's side of submitted programs, with processes that only pretend to be supervisors."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from malleable.live.broker.broker import Broker
from malleable.live.broker.state import ProgramRequest, Store
from malleable.live.core.events import Confirmed, CoresChanged, Failed, Finished, Progressed, Registered
from malleable.live.core.orders import RefusedError
from malleable.live.core.scheduler import Scheduler
from malleable.live.programs import program_jobs, program_processes
from malleable.live.programs.job_folder import HeldCores, JobFolder, Result
from malleable.live.programs.program_jobs import ProgramJobs
from malleable.live.programs.supervisor import NOT_NEEDED
from malleable.live.programs.supervisor_server import SupervisorServer
from malleable.live.system import loop_thread
from malleable.live.system.cpus import CpuSets
from support.living import alive, assert_gone, kill, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
REQUEST = ProgramRequest(("make",), "/", {"A": "b"}, on_resize="USR1")


class Host:
    """A broker with its programs, which can be ended and started again; supervisors are other commands."""

    def __init__(self, folder, cores):
        self.folder, self.cores = folder, cores
        self.started: list[str] = []
        self.command = ["sleep", "600"]
        self.pids: list[int] = []
        self.memory = 100.0

    def open(self):
        cpus = CpuSets(set(range(self.cores)), all_threads=True)
        self.broker = Broker(Scheduler(None, self.cores, "equi", memory=self.memory), cpus)
        self.store = Store(self.folder)
        self.programs = ProgramJobs(self.broker, self.store, self.folder, self.folder / "socket")
        self.programs.recover()

    def close(self):
        self.programs.close()
        self.broker.close()
        self.store.close()

    def start_supervisor(self, folder):
        pid = os.posix_spawnp(self.command[0], self.command, os.environ)
        self.started.append(folder.path.name)
        self.pids.append(pid)
        return pid

    def reap(self, pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if pid in self.pids else None

    def job_folder(self, job):
        return JobFolder(self.folder / "jobs" / job)

    def account(self, job):
        found = self.broker.state()["jobs"].get(job)
        return None if found is None else (found["told"], found["granted"], found["in_use"])

    def state(self, job):
        return self.store.get(job).state

    def running(self, request=REQUEST):
        """A program whose supervisor has attached and uses what it was told; its orders."""
        job, orders = self.programs.submit(request), []
        wait_until(lambda: job in self.started, "the supervisor")
        orders.append(self.programs.attach(job, self.store.get(job).ticket, orders.append, lambda: None))
        self.programs.tell(Confirmed(job, orders[-1].cores, orders[-1].number))
        return job, orders


@pytest.fixture
def host(tmp_path, monkeypatch):
    made = Host(tmp_path / "state", 2)
    monkeypatch.setattr(SupervisorServer, "start", lambda _, folder: made.start_supervisor(folder))
    monkeypatch.setattr(SupervisorServer, "reap", lambda _, pid: made.reap(pid))
    monkeypatch.setattr(program_processes, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(program_jobs, "SETTLE_SECONDS", 0.0)
    made.open()
    yield made
    made.close()
    for pid in alive(made.pids):
        kill(pid)


def test_a_program_starts_when_it_is_granted_cores(host):
    """Its folder, for this user alone, says what to run and where the broker is; the first order waits."""
    job = host.programs.submit(REQUEST)
    wait_until(lambda: host.started == [job], "the supervisor")
    folder = host.job_folder(job)
    document = folder.request()
    assert (document["job"], document["command"], document["form"]) == (job, ["make"], "build")
    assert (document["environment"], document["on_resize"]) == ({"A": "b"}, "USR1")
    assert (document["ticket"], document["socket"]) == (
        host.store.get(job).ticket,
        str(host.folder / "socket"),
    )
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / "request.json").stat().st_mode) == 0o600
    order = host.programs.attach(job, document["ticket"], lambda _: None, lambda: None)
    assert (order.cores, len(order.cpus)) == (2, 2)
    assert host.account(job) == (2, 2, 0)


def test_only_the_ticket_lets_in(host):
    """A wrong ticket, and a job that is not there, are refused; orders go to the last that was let in."""
    job, first = host.running()
    for name, ticket in ((job, ""), (job, "x"), (job, "\u00e4"), ("99", host.store.get(job).ticket)):
        with pytest.raises(RefusedError, match="ticket"):
            host.programs.attach(name, ticket, lambda _: None, lambda: None)
    second = []
    host.programs.attach(job, host.store.get(job).ticket, second.append, lambda: None)
    host.programs.detach(job, first.append)
    host.broker.tell(CoresChanged(1))
    assert [order.cores for order in first] == [2]
    assert [order.cores for order in second] == [1]


def test_a_supervisor_that_is_away_keeps_its_cores(host):
    """While its process lives, what it was granted is nobody else's; orders wait for it."""
    job, orders = host.running()
    host.programs.detach(job, orders.append)
    other = host.programs.submit(REQUEST)
    assert host.account(job) == (1, 2, 2)
    assert host.account(other) == (0, 0, 0)
    order = host.programs.attach(job, host.store.get(job).ticket, orders.append, lambda: None)
    assert order.cores == 1
    host.programs.tell(Confirmed(job, 1, order.number))
    wait_until(lambda: host.started == [job, other], "the other's supervisor")


def test_what_was_not_started_gives_back_at_once(host):
    """A program that is to wait again before its supervisor has come uses no core, and says so."""
    job = host.programs.submit(REQUEST)
    wait_until(lambda: host.started == [job], "the supervisor")
    host.broker.tell(CoresChanged(0))
    wait_until(lambda: host.account(job) == (0, 0, 0), "the cores")
    assert host.state(job) == "queued"


def test_an_ending_is_noted(host):
    """The broker frees the cores as the supervisor says so; the store has what the result says."""
    job, _ = host.running()
    wait_until(lambda: host.state(job) == "running", "the start")
    assert host.store.get(job).pid == host.pids[0]
    host.programs.tell(Progressed(job, 3.0, 4.0))
    folder = host.job_folder(job)
    folder.mark_started()
    folder.write_result(Result("failed", 3, 1.0, 2.0, "why"))
    host.programs.tell(Failed(job))
    assert host.account(job) is None
    wait_until(lambda: host.state(job) == "failed", "the end")
    found = host.store.get(job)
    assert (found.exit_code, found.ended, found.reason) == (3, 2.0, "why")
    wait_until(lambda: host.store.get(job).units_done == 3.0, "the progress")
    with pytest.raises(RefusedError, match="not ended"):
        host.programs.cancel(job)
    os.kill(host.pids[0], signal.SIGKILL)
    assert host.programs.present == 0


def test_what_is_refused_is_not_kept(host):
    """A request that the scheduler does not take leaves nothing behind; nor does one above the limit."""
    with pytest.raises(RefusedError, match="memory"):
        host.programs.submit(ProgramRequest(("x",), "/", memory=101.0))
    assert host.store.jobs() == []
    assert host.programs.present == 0
    host.programs._most_queued = 1
    host.programs.submit(REQUEST)
    with pytest.raises(RefusedError, match="programs already"):
        host.programs.submit(REQUEST)
    assert len(host.store.jobs()) == 1


def test_a_queued_program_is_cancelled(host):
    """One without a supervisor ends at once, without an exit code."""
    host.broker.tell(CoresChanged(0))
    job = host.programs.submit(REQUEST)
    host.programs.cancel(job)
    wait_until(lambda: host.state(job) == "cancelled", "the end")
    assert host.account(job) is None
    assert host.store.get(job).exit_code is None
    assert host.started == []


def test_a_cancel_reaches_the_supervisor(host):
    """Through its session if it has one, when it attaches if it is away, and by SIGTERM besides."""
    job, orders = host.running()
    asked = []
    host.programs.attach(job, host.store.get(job).ticket, orders.append, lambda: asked.append(1))
    host.programs.cancel(job)
    wait_until(lambda: asked == [1], "the cancel")
    assert host.store.get(job).cancel_asked
    host.programs.attach(job, host.store.get(job).ticket, orders.append, lambda: asked.append(2))
    assert asked == [1, 2]
    host.programs.detach(job, orders.append)
    host.programs.cancel(job)
    assert_gone(host.pids)
    wait_until(lambda: host.state(job) == "lost", "the end")  # this one leaves no result


def test_a_cancel_before_the_supervisor_came(host):
    """One that was to start the program is ended, and the program with it, without having run."""
    job = host.programs.submit(REQUEST)
    wait_until(lambda: host.started == [job], "the supervisor")
    host.programs.cancel(job)
    assert_gone(host.pids)
    wait_until(lambda: host.state(job) == "cancelled", "the end")
    assert host.started == [job]


def test_supervisors_that_do_not_come_up(host):
    """After three that ended before they started the program it has failed, and the log says why."""
    host.command = ["false"]
    job = host.programs.submit(REQUEST)
    (host.job_folder(job).path).mkdir(parents=True, exist_ok=True)
    (host.job_folder(job).path / "supervisor.log").write_text("Traceback\nKeyError: 'x'\n")
    wait_until(lambda: host.state(job) == "failed", "the end")
    assert host.started == [job] * 3
    assert host.store.get(job).reason == "its supervisor ended with 1: KeyError: 'x'"
    assert host.account(job) is None


def test_supervisors_that_are_not_needed(host):
    """One that found nothing to do is no failure: the program waits for the next."""
    host.command = ["sh", "-c", f"exit {NOT_NEEDED}"]
    job = host.programs.submit(REQUEST)
    wait_until(lambda: len(host.started) > 5, "attempts")
    assert host.state(job) == "queued"
    host.command = ["sleep", "600"]


def test_no_file_to_watch_a_process_with(host, monkeypatch):
    """Where no file is to be had for it, others are seen to meanwhile, and its end is noticed later."""
    usual, tries = os.pidfd_open, []

    def pidfd_open(pid):
        if pid == host.pids[0] and len(tries) < 3:
            tries.append(pid)
            raise OSError(errno.EMFILE, "Too many open files")
        return usual(pid)

    monkeypatch.setattr(loop_thread, "RETRY_SECONDS", 0.1, raising=False)
    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    first = host.programs.submit(REQUEST)
    wait_until(lambda: host.started == [first], "the first supervisor")
    second = host.programs.submit(REQUEST)
    host.broker.tell(CoresChanged(0))
    wait_until(lambda: host.account(first) == (0, 0, 0), "the cores")
    host.broker.tell(CoresChanged(2))
    wait_until(lambda: host.started == [first, second], "the second supervisor")
    wait_until(lambda: len(tries) == 3, "attempts")
    assert host.started == [first, second]
    host.job_folder(first).mark_started()
    host.job_folder(first).write_result(Result("finished", 0))
    kill(host.pids[0])
    wait_until(lambda: host.state(first) == "finished", "the end")


def test_no_file_to_read_a_result_with(host, monkeypatch):
    """A folder that cannot be read for want of files is read later, and not taken for another's or empty."""
    job, _ = host.running()
    folder = host.job_folder(job)
    folder.mark_started()
    folder.write_result(Result("failed", 3))
    usual, tries = {module: module.open for module in (io, os)}, []
    for module in (io, os):

        def refuse(path, *arguments, module=module, **options):
            if str(path).startswith(str(folder.path)) and len(tries) < 5:
                tries.append(path)
                raise OSError(errno.EMFILE, "Too many open files")
            return usual[module](path, *arguments, **options)

        monkeypatch.setattr(module, "open", refuse)
    kill(host.pids[0])
    wait_until(lambda: host.state(job) not in {"running", "queued"}, "the end")
    assert (host.state(job), host.store.get(job).exit_code, len(tries)) == ("failed", 3, 5)
    assert host.store.get(job).reason == ""


def test_a_supervisor_that_is_killed(host):
    """Its program is lost: what is left of it is killed, and its cores are free."""
    job, _ = host.running()
    folder = host.job_folder(job)
    folder.mark_started()
    told = {**os.environ, "MALLEABLE_PROGRESS": str(folder.path / "progress")}
    first, second = (
        subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"], start_new_session=True, env=env)
        for env in (None, told)
    )
    folder.note_program(first.pid)
    os.kill(host.pids[0], signal.SIGKILL)
    wait_until(lambda: host.state(job) == "lost", "the end")
    assert first.wait(60) != 0
    assert second.wait(60) != 0
    assert host.account(job) is None
    assert host.store.get(job).exit_code is None


def test_what_a_dead_supervisor_noted_is_not_believed(host):
    """One that died before it started its program holds nothing, whatever it was about to hold."""
    host.broker.tell(CoresChanged(0))
    job = host.programs.submit(REQUEST)
    host.close()
    host.job_folder(job).prepare({})
    host.job_folder(job).note_held(HeldCores(2, (0, 1)))
    host.open()
    wait_until(lambda: host.started == [job], "the supervisor")
    assert host.account(job) == (2, 2, 0)


def test_draining(host):
    """What was started goes on; what waits is left to the next broker, and nothing new is accepted."""
    job, orders = host.running(ProgramRequest(("x",), "/", memory=100.0))
    waiting = host.programs.submit(ProgramRequest(("x",), "/", memory=100.0))
    assert host.account(waiting) == (0, 0, 0)
    host.programs.drain()
    assert host.account(waiting) is None
    with pytest.raises(RefusedError, match="accepts no programs"):
        host.programs.submit(REQUEST)
    assert (host.state(waiting), host.programs.present) == ("queued", 1)
    host.job_folder(job).mark_started()
    host.job_folder(job).write_result(Result("finished", 0))
    host.programs.tell(Finished(job))
    wait_until(lambda: host.programs.present == 0, "the end of what ran")
    assert host.started == [job]
    host.close()
    host.open()
    wait_until(lambda: waiting in host.started, "the one that waited")
    assert orders


def test_running_programs_are_counted_again(host):
    """After a restart their cores, and CPUs, are theirs at once; whoever waits gets only the others."""
    host.broker.tell(CoresChanged(0))
    first, second, third = (host.programs.submit(REQUEST) for _ in range(3))
    host.close()
    folder = host.job_folder(first)
    folder.prepare({})
    assert folder.lock()
    folder.mark_started()
    folder.note_held(HeldCores(1, (1,), time.monotonic() - 5.0, ((2, 3.0),)))
    ended = host.job_folder(second)
    ended.prepare({})
    ended.mark_started()
    ended.write_result(Result("finished", 0, 1.0, 2.0))
    host.open()
    assert host.account(first) == (1, 1, 1)
    assert host.broker.cpus_of(first) == (1,)
    wait_until(lambda: host.state(second) == "finished", "the one that ended meanwhile")
    wait_until(lambda: host.started == [third], "the one that waited")
    assert host.broker.cpus_of(third) == (0,)
    order = host.programs.attach(first, host.store.get(first).ticket, lambda _: None, lambda: None)
    assert (order.cores, order.cpus) == (1, (1,))
    wait_until(lambda: host.state(first) == "running", "its note")
    host.programs.tell(Confirmed(first, order.cores, order.number))


def test_a_paused_program_keeps_its_memory(host):
    """One that uses no core after a restart has started all the same: what does not fit beside it waits."""
    host.broker.tell(CoresChanged(0))
    paused, large = (host.programs.submit(ProgramRequest(("x",), "/", memory=60.0)) for _ in range(2))
    host.close()
    folder = host.job_folder(paused)
    folder.prepare({})
    assert folder.lock()
    folder.mark_started()
    folder.note_held(HeldCores(0, (), time.monotonic(), ((1, 5.0),)))
    host.open()
    wait_until(lambda: host.account(large) is not None, "both")
    assert host.account(paused) == (2, 2, 0)
    assert host.account(large) == (0, 0, 0)
    assert host.started == []


def test_work_done_is_known_again(host):
    """A program with a declared size has done what its widths and times say, and is as old as it is."""
    host.broker.tell(CoresChanged(0))
    job = host.programs.submit(ProgramRequest(("x",), "/", size=1000.0))
    host.close()
    folder = host.job_folder(job)
    folder.prepare({})
    assert folder.lock()
    folder.mark_started()
    folder.note_held(HeldCores(1, (0,), time.monotonic() - 100.0, ((1, 300.0),)))
    host.open()
    assert host.broker.state()["jobs"][job]["remaining"] == pytest.approx(600.0, abs=20.0)


def test_what_was_lost_and_what_was_cancelled(host):
    """A program whose supervisor died, or whose folder is gone, is lost; one that is to be cancelled is."""
    host.broker.tell(CoresChanged(0))
    lost, cancelled, removed = (host.programs.submit(REQUEST) for _ in range(3))
    host.store.mark_cancel_asked(cancelled)
    host.store.mark_started(removed, 1, 2, "another boot")
    host.close()
    host.job_folder(lost).prepare({})
    host.job_folder(lost).mark_started()
    host.open()
    wait_until(lambda: host.state(lost) == "lost", "the lost one")
    wait_until(lambda: host.state(cancelled) == "cancelled", "the cancelled one")
    wait_until(lambda: host.state(removed) == "lost", "the one without a folder")
    assert host.started == []


def test_a_program_of_another_workload(host):
    """One that the new broker does not take has failed, and it is said why; the others are counted."""
    host.broker.tell(CoresChanged(0))
    large = host.programs.submit(ProgramRequest(("x",), "/", memory=90.0))
    small = host.programs.submit(REQUEST)
    host.close()
    host.memory = 10.0
    host.open()
    wait_until(lambda: host.state(large) == "failed", "the large one")
    assert "memory" in host.store.get(large).reason
    wait_until(lambda: small in host.started, "the small one")


def test_a_disk_that_is_full_for_a_while(host, monkeypatch):
    """Neither a start nor an end is lost: both are tried again until the disk takes them."""
    refuse = threading.Event()
    refuse.set()
    prepare, end = JobFolder.prepare, host.store.mark_ended

    def full(usual):
        def write(*arguments, **options):
            if not refuse.is_set():
                return usual(*arguments, **options)
            host.refused = True
            error = program_processes.StoreError("the disk is full")
            if "then" not in options:
                raise error
            return options["then"](error)

        return write

    monkeypatch.setattr(JobFolder, "prepare", full(prepare))
    monkeypatch.setattr(host.store, "mark_ended", full(end))
    job = host.programs.submit(REQUEST)
    wait_until(lambda: getattr(host, "refused", False), "the first refusal")
    assert host.started == []
    refuse.clear()
    wait_until(lambda: host.started == [job], "the start")
    refuse.set()
    host.refused = False
    host.programs.cancel(job)
    wait_until(lambda: host.refused, "the second refusal")
    assert host.account(job) is None
    assert host.state(job) == "queued"
    refuse.clear()
    wait_until(lambda: host.state(job) == "cancelled", "the end")


@pytest.mark.slow
def test_ten_thousand_queued_programs(host):
    """They are accepted and held, by this broker and by the next one, which starts none but the first."""
    first, _ = host.running(ProgramRequest(("x",), "/", memory=100.0))
    host.job_folder(first).mark_started()
    host.job_folder(first).note_held(HeldCores(2, (0, 1), time.monotonic()))
    assert host.job_folder(first).lock()
    request = ProgramRequest(("x",), "/", memory=1.0)
    with ThreadPoolExecutor(8) as threads:  # who waits for the disk at the same time waits once
        names = set(threads.map(lambda _: host.programs.submit(request), range(10_000)))
    assert len(names) == 10_000
    assert host.programs.present == 10_001
    host.close()
    assert len(host.started) == 1
    host.open()
    wait_until(lambda: host.broker.look(lambda scheduler: len(scheduler.table)) == 10_001, "all", 300.0)
    assert host.store.counts() == {"queued": 10_000, "running": 1}
    assert len(host.started) == 1


def test_names_are_numbers(host):
    """A client that has taken the name of the next program is not mixed up with it: that is refused."""
    host.broker.join(Registered("1", "x"), lambda _: None)
    with pytest.raises(RefusedError, match="already"):
        host.programs.submit(REQUEST)
    assert host.store.jobs() == []


def test_no_number_is_given_out_whose_folder_is_there(host):
    """After the database was moved away, a new program does not take an old one's folder for its own."""
    old, _ = host.running()
    folder = host.job_folder(old)
    folder.mark_started()
    folder.write_result(Result("finished", 0, 1.0, 2.0))
    host.programs.tell(Finished(old))
    wait_until(lambda: host.state(old) == "finished", "the end of the old one")
    host.close()
    host.store.path.unlink()
    host.started.clear()
    host.open()
    new = host.programs.submit(REQUEST)
    assert int(new) > int(old)
    wait_until(lambda: host.started == [new], "the supervisor")
    assert host.state(new) == "queued"


@pytest.mark.parametrize("when", ["before the start", "before the restart"])
def test_a_folder_of_another_program_says_nothing_of_this_one(host, when):
    """A program whose folder another one has made is not said to have ended as that one did."""
    host.programs.submit(REQUEST)
    host.broker.tell(CoresChanged(0))
    job = host.programs.submit(REQUEST)
    wait_until(lambda: host.account("1") == (0, 0, 0), "the cores")
    folder = host.job_folder(job)
    folder.prepare({"job": job, "ticket": "another"})
    folder.mark_started()
    folder.write_result(Result("finished", 0, 1.0, 2.0))
    if when == "before the restart":
        host.close()
        host.open()
    else:
        host.broker.tell(CoresChanged(2))
    wait_until(lambda: host.state(job) == "failed", "the refusal")
    assert "belongs to another program" in host.store.get(job).reason
    assert job not in host.started
    assert folder.result() == Result("finished", 0, 1.0, 2.0)


def test_a_machine_with_less_memory_than_what_runs(host):
    """After a restart with less memory, a program that runs goes on, and none is started beside it."""
    host.broker.tell(CoresChanged(0))
    large, small = (host.programs.submit(ProgramRequest(("x",), "/", memory=m)) for m in (80.0, 20.0))
    host.close()
    folder = host.job_folder(large)
    folder.prepare({})
    assert folder.lock()
    folder.mark_started()
    folder.note_held(HeldCores(1, (1,)))
    host.memory = 40.0
    host.open()
    assert host.account(large) == (1, 1, 1)
    wait_until(lambda: host.account(small) is not None, "both")
    assert host.account(small) == (0, 0, 0)
    with pytest.raises(RefusedError, match="needs 80 bytes of memory"):
        host.programs.submit(ProgramRequest(("x",), "/", memory=80.0))
    host.broker.tell(Finished(large))
    wait_until(lambda: host.started == [small], "the one that fits now")
