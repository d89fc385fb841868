"""Supervisors as real processes, with a real broker: what they keep, signals, and deaths."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from malleable.live.programs.job_folder import JobFolder
from malleable.live.programs.supervisor import CANNOT_START, NOT_NEEDED
from malleable.live.system.process_tree import family, look_up
from support.broker_process import BrokerProcess
from support.living import alive, assert_gone, kill, wait_until
from support.shell import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
HEAVY = ("numba", "scipy", "numpy", "pydantic", "fastapi", "uvicorn", "httpx", "sqlite3")
LOADED = """\
import sys
import malleable.live.programs.supervisor, malleable.live.programs.build_client, malleable.live.broker.remote
print(*sys.modules)
"""

IMPATIENT = """\
import sys
from malleable.live.programs import supervisor
supervisor.NO_BROKER_SECONDS, supervisor.PROBE_SECONDS = 0.2, 0.05
sys.exit(supervisor.main(sys.argv[1:]))
"""
SECOND = """\
import sys
from malleable.live.programs import job_folder, supervisor
job_folder.LOCK_SECONDS = 0.1
sys.exit(supervisor.main(sys.argv[1:]))
"""

DAEMON = """\
# Leaves its parent, its session and its variables, and writes down its process.
setsid sh -c '(env -i sh -c "echo \\$\\$ > {0}.part; mv {0}.part {0}; while :; do :; done" &)'
while [ ! -e {0} ]; do sleep 0.01; done
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker of four cores that are numbers only, so that tests need not wait for CPUs."""
    with BrokerProcess(tmp_path_factory.mktemp("broker"), 4) as made:
        yield made


def memory(pid: int) -> int:
    """Bytes that a process has in memory."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024


def test_it_is_small():
    """A supervisor loads none of what the broker needs: there is one for every program that runs."""
    said = subprocess.run(
        [sys.executable, "-c", LOADED], env=environment(), capture_output=True, text=True, check=True
    )
    assert [name for name in HEAVY if name in said.stdout.split()] == []


def test_without_a_broker_it_waits_no_longer_than_it_must(tmp_path):
    """A supervisor that no broker has let start its program ends, and leaves it to the next broker."""
    folder = JobFolder(tmp_path / "job")
    known = {"job": "1", "ticket": "x", "socket": str(tmp_path / "none"), "job_class": "program"}
    folder.prepare({"command": ["true"], "folder": "/", "environment": {}, **known})
    said = subprocess.run([sys.executable, "-c", IMPATIENT, str(folder.path)], env=environment(), check=False)
    assert said.returncode == NOT_NEEDED
    assert not folder.started
    assert folder.result() is None


def test_outputs_and_codes(broker, tmp_path):
    """Streams, exit codes and signals are kept; times are in order; shell metacharacters are only letters."""
    harm = f"$(touch {tmp_path}/harm); `touch {tmp_path}/harm` > {tmp_path}/harm"
    jobs = [
        broker.submit("sh", "-c", 'pwd; echo "$1 $GREETING"; echo oh >&2; exit 3', "sh", harm,
                      folder=tmp_path, environment={"GREETING": "hello"}),
        broker.submit("sh", "-c", "kill -KILL $$"),
        broker.submit("true"),
        broker.submit("no-such-command"),
    ]  # fmt: skip
    ended = broker.wait(jobs)
    assert [(job["state"], job["exit_code"]) for job in ended] == [
        ("failed", 3), ("failed", -9), ("finished", 0), ("failed", CANNOT_START),
    ]  # fmt: skip
    folder = broker.folder(jobs[0]).path
    assert (folder / "output").read_text() == f"{tmp_path}\n{harm} hello\n"
    assert (folder / "errors").read_text() == "oh\n"
    assert not (tmp_path / "harm").exists()
    assert ended[0]["submitted"] <= ended[0]["started"] <= ended[0]["ended"] + 1.0
    assert "cannot run 'no-such-command'" in ended[3]["reason"]
    assert "no-such-command" in (broker.folder(jobs[3]).path / "errors").read_text()
    wait_until(lambda: not broker.supervisors(), "end of the supervisors")


def test_what_programs_leave(broker):
    """One that prints nothing leaves no file, another one what it has printed; both stay known."""
    silent, loud = broker.submit("sh", "-c", "exit 3"), broker.submit("echo", "hello")
    for job in broker.wait([silent, loud]):
        assert job["cpu_seconds"] > 0.0
        assert job["command"]
    wait_until(lambda: not broker.folder(silent).path.exists(), "the end of its folder")
    wait_until(lambda: broker.folder(loud).is_tidy, "a tidy folder")
    left = {path.name: path.read_text() for path in broker.folder(loud).path.iterdir()}
    assert left == {"output": "hello\n", "started": ""}
    assert [broker.job(job)["exit_code"] for job in (silent, loud)] == [3, 0]


def test_memory_of_a_supervisor(broker):
    """It takes less than 60 MB while its program runs (28 MB were measured), in a session of its own."""
    job = broker.submit("sleep", "600")
    wait_until(lambda: broker.job(job)["state"] == "running", "the start")
    found = broker.folder(job).supervisor().process()
    assert memory(found.pid) < 60e6
    assert found.session == found.pid
    broker.ask("DELETE", f"/v1/jobs/{job}")
    assert broker.wait([job])[0]["state"] == "cancelled"


def test_cancelling(broker, tmp_path):
    """Through the broker, or by SIGTERM to the supervisor: all that the program started ends."""
    jobs = [broker.submit("sh", "-c", "sleep 600 & sleep 600") for _ in range(2)]
    for job in jobs:
        wait_until(lambda job=job: broker.job(job)["state"] == "running", "the start")
        wait_until(lambda job=job: len(family(broker.folder(job).program().pid)) == 3, "its processes")
    pids = [pid for job in jobs for pid in family(broker.folder(job).program().pid)]
    broker.ask("DELETE", f"/v1/jobs/{jobs[0]}")
    os.kill(broker.folder(jobs[1]).supervisor().pid, signal.SIGTERM)
    ended = broker.wait(jobs)
    assert [job["state"] for job in ended] == ["cancelled"] * 2
    assert {job["exit_code"] for job in ended} <= {-15, 128 + 15}  # a shell may see its child's end first
    assert alive(pids) == []


@pytest.fixture
def submit_with_daemon(broker, tmp_path):
    """Submit a shell's command that leaves a daemon behind; the job, and the daemon's process."""
    started = []

    def submit(text):
        place = tmp_path / f"daemon-{len(started)}"
        job = broker.submit("sh", "-c", DAEMON.format(place) + text)
        wait_until(place.exists, "the daemon")
        started.append(int(place.read_text()))
        return job, started[-1]

    yield submit
    for pid in alive(started):
        kill(pid)


def test_a_daemon_ends_with_its_program(broker, submit_with_daemon):
    """A process that has left parent, session and variables ends when its program ends or is cancelled."""
    job, pid = submit_with_daemon("exit 0")
    assert broker.wait([job])[0]["state"] == "finished"
    assert alive([pid]) == []
    job, pid = submit_with_daemon("sleep 600")
    broker.ask("DELETE", f"/v1/jobs/{job}")
    assert broker.wait([job])[0]["state"] == "cancelled"
    assert alive([pid]) == []


def test_a_daemon_pauses_with_its_program(broker, submit_with_daemon):
    """It is stopped and continued like the rest; its CPU time counts; dead ones do not pile up."""
    job, pid = submit_with_daemon("sleep 600")
    wait_until(lambda: broker.job(job)["cpu_seconds"] > 0.2, "its CPU time")
    broker.ask("PATCH", "/v1/machine", {"cores": 0})
    wait_until(lambda: look_up(pid).state == "T", "the pause")
    broker.ask("PATCH", "/v1/machine", {"cores": 4})
    wait_until(lambda: look_up(pid).state == "R", "going on")
    kill(pid)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "that it is waited for")
    broker.ask("DELETE", f"/v1/jobs/{job}")
    assert broker.wait([job])[0]["cpu_seconds"] > 0.2


def test_a_supervisor_that_is_killed(broker):
    """Its program is lost, and killed with all that it started: its cores are another's from then on."""
    job = broker.submit("sh", "-c", "sleep 600 & sleep 600")
    wait_until(lambda: broker.job(job)["in_use"] > 0, "the start")
    wait_until(lambda: len(family(broker.folder(job).program().pid)) == 3, "its processes")
    pids = sorted(family(broker.folder(job).program().pid))
    os.kill(broker.folder(job).supervisor().pid, signal.SIGKILL)
    (ended,) = broker.wait([job])
    assert (ended["state"], ended["exit_code"], ended["granted"]) == ("lost", None, 0)
    assert_gone(pids)


def test_a_second_supervisor_is_not_needed(broker, tmp_path):
    """Started by hand beside the first, or after the end, it leaves the program alone."""
    job = broker.submit(
        "sh", "-c", f"echo x >> {tmp_path}/ran; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done"
    )
    wait_until((tmp_path / "ran").exists, "the start")
    again = [sys.executable, "-c", SECOND, str(broker.folder(job).path)]
    assert subprocess.run(again, env=environment(), check=False).returncode == NOT_NEEDED
    (tmp_path / "go").touch()
    assert broker.wait([job])[0]["state"] == "finished"
    wait_until(lambda: not broker.supervisors(), "end of the supervisor")
    assert subprocess.run(again, env=environment(), check=False).returncode == NOT_NEEDED
    assert (tmp_path / "ran").read_text() == "x\n"


def test_it_outlives_the_broker(broker, tmp_path):
    """A program keeps its process, its cores and its supervisor while brokers come and go, and follows."""
    job = broker.submit("sleep", "600", units=10.0)
    wait_until(lambda: broker.job(job)["in_use"] == 4, "the start")
    supervisor, program = broker.folder(job).supervisor(), broker.folder(job).program()
    broker.kill()
    assert program.process().state != "T"
    assert broker.folder(job).held().cores == 4
    broker.start()
    assert broker.job(job)["granted"] == 4
    other = broker.submit("sleep", "600")
    wait_until(lambda: broker.job(job)["in_use"] == 2 == broker.job(other)["in_use"], "both with two cores")
    assert (broker.folder(job).supervisor(), broker.folder(job).program()) == (supervisor, program)
    for each in (job, other):
        broker.ask("DELETE", f"/v1/jobs/{each}")
    assert {found["state"] for found in broker.wait([job, other])} == {"cancelled"}
    assert look_up(program.pid) is None


def test_it_ends_while_there_is_no_broker(broker, tmp_path):
    """The next broker finds the result; a program that was queued is started by it."""
    job = broker.submit("sh", "-c", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; exit 5")
    wait_until(lambda: broker.job(job)["in_use"] > 0, "the start")
    broker.kill()
    (tmp_path / "go").touch()
    wait_until(lambda: broker.folder(job).result() is not None, "the result")
    broker.start()
    assert [(found["state"], found["exit_code"]) for found in broker.wait([job])] == [("failed", 5)]


def test_a_folder_that_was_removed(broker, tmp_path):
    """A supervisor whose folder is gone ends with its program, which is lost, and not started again."""
    job = broker.submit("sh", "-c", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    wait_until(lambda: broker.job(job)["in_use"] > 0, "the start")
    supervisor = broker.folder(job).supervisor()
    shutil.rmtree(broker.folder(job).path)
    (tmp_path / "go").touch()
    assert_gone([supervisor.pid])
    (ended,) = broker.wait([job])
    assert (ended["state"], ended["exit_code"]) == ("lost", None)


def test_progress_reaches_the_broker(broker, tmp_path):
    """What the program reports is seen by everyone."""
    text = f'echo 3/4 > "$MALLEABLE_PROGRESS"; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done'
    job = broker.submit("sh", "-c", text)
    wait_until(lambda: broker.job(job)["progress"] == 0.75, "the progress")
    (tmp_path / "go").touch()
    assert broker.wait([job])[0]["state"] == "finished"
