"""The process that forks supervisors: what they are spared, and what they outlive."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from malleable.live.programs.job_folder import JobFolder
from malleable.live.programs.supervisor import NOT_NEEDED
from malleable.live.programs.supervisor_server import SupervisorServer
from malleable.live.system.process_tree import look_up, threads
from support.broker_process import BrokerProcess
from support.living import alive, assert_gone, kill, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
FORKED_ONLY = 0x40
"""In the flags of /proc/PID/stat: the process was forked, and no program was executed in it since."""


@pytest.fixture
def server():
    made = SupervisorServer()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path):
    """A folder whose program was started before: its supervisor has nothing to do."""
    made = JobFolder(tmp_path / "job")
    made.prepare({})
    made.mark_started()
    return made


def flags(pid: int) -> int:
    """The flags of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[6])


def test_the_exit_code_is_known(server, folder):
    """As that of a child; a process that the server has not started has none that it knows."""
    pid = server.start(folder)
    wait_until(lambda: look_up(pid) is None, "its end")
    assert server.reap(pid) == NOT_NEEDED
    assert server.reap(pid) is None
    assert server.reap(os.getpid()) is None


def test_what_cannot_be_started(server, folder):
    """A folder that is not there is an error that says so, and the server goes on."""
    with pytest.raises(FileNotFoundError):
        server.start(JobFolder(folder.path / "none"))
    assert server.start(folder) > 0


def test_a_server_that_was_killed(server, folder):
    """The order that finds it dead is an error; the next one finds another server."""
    server.start(folder)
    kill(server._pid)
    with pytest.raises(OSError, match=r"."):
        server.start(folder)
    assert server.start(folder) > 0


def test_it_ends_when_it_is_closed(server, folder):
    """No process is left, and no code is known; it may be used again."""
    server.start(folder)
    pid = server._pid
    server.close()
    assert look_up(pid) is None
    assert server.reap(pid) is None
    assert server.start(folder) > 0


def test_supervisors_of_a_broker(tmp_path):
    """All are forked by one process, which has no threads, and none has started Python anew.

    That process may be killed, and so may the broker, with which it ends: supervisors and programs go on, and
    the next programs are started by another one.
    """
    with BrokerProcess(tmp_path, 4) as broker:
        jobs = [broker.submit("sleep", "600", max_cores=1) for _ in range(2)]
        wait_until(lambda: all(broker.job(job)["in_use"] == 1 for job in jobs), "the start")
        supervisors = [broker.folder(job).supervisor().process() for job in jobs]
        programs = [broker.folder(job).program().pid for job in jobs]
        assert all(flags(supervisor.pid) & FORKED_ONLY for supervisor in supervisors)
        (server,) = {supervisor.parent for supervisor in supervisors}
        assert look_up(server).parent == broker.process.pid
        assert len(threads(server)) == 1
        names = {Path(f"/proc/{each.pid}/comm").read_text().strip() for each in supervisors}
        assert names == {f"malleable-{job}" for job in jobs}

        os.kill(server, signal.SIGKILL)
        jobs.append(broker.submit("sleep", "600", max_cores=1))
        wait_until(lambda: broker.job(jobs[2])["in_use"] == 1, "the start of the third")
        third = broker.folder(jobs[2]).supervisor().process()
        assert third.parent != server
        broker.kill()
        assert_gone([third.parent])
        everyone = [*(each.pid for each in (*supervisors, third)), *programs]
        assert alive(everyone) == everyone
        broker.start()
        wait_until(lambda: all(broker.job(job)["in_use"] == 1 for job in jobs), "all three again")
        for job in jobs:
            broker.ask("DELETE", f"/v1/jobs/{job}")
        assert {job["state"] for job in broker.wait(jobs)} == {"cancelled"}
