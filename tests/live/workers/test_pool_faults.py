"""A pool whose workers are killed, one by one or all at once, and whose parent is killed."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
from pathlib import Path

import pytest

from malleable.errors import ExecutionError
from malleable.live.workers import BrokenUnitError, Pool
from malleable.live.workers.fork_server import _Server
from support import pool_units as units
from support.living import assert_gone, children, fork_servers, kill, running, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
TESTS = Path(__file__).parents[2]
PARENT = """
import sys
from pathlib import Path
from malleable.live.workers import Pool
from support.pool_units import note_pid
pool = Pool(2)
for _ in range(2):
    pool.submit(note_pid, Path(sys.argv[1]), 600.0)
pool.shutdown()
"""
INTERRUPTED = """
import sys
from pathlib import Path
from malleable.live.workers import Pool
from support.pool_units import note_pid
pool = Pool(1)
unit = pool.submit(note_pid, Path(sys.argv[1]), 1.0)
try:
    pool.shutdown()
except KeyboardInterrupt:
    print("interrupted,", unit.result())
"""


def server() -> int:
    """The fork server of the only pool of this process."""
    (found,) = fork_servers()
    return found


@pytest.mark.parametrize("deaths", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_workers_killed_during_a_map(deaths):
    """However often workers are killed, all outcomes come, in order."""
    rng = random.Random(deaths)
    found, killed = [], 0
    with Pool(2) as pool:
        outcomes = pool.map(units.nap_square, range(deaths * 30))
        for outcome in outcomes:
            found.append(outcome)
            # A unit may be run three times again: kill now and then, not always the same one.
            if len(found) % 25 == 0 and killed < deaths and (workers := children(server())):
                kill(rng.choice(workers))
                killed += 1
    assert killed == deaths
    assert found == [x * x for x in range(deaths * 30)]


def test_a_unit_that_kills_its_worker(tmp_path):
    """It is run again three times; the fourth death fails it by name, and fails nothing else."""
    (tmp_path / "thrice").mkdir()
    (tmp_path / "always").mkdir()
    with Pool(2) as pool:
        others = [pool.submit(units.square, i) for i in range(50)]
        thrice = pool.submit(units.die, tmp_path / "thrice", 3)
        always = pool.submit(units.die, tmp_path / "always", 99)
        others += [pool.submit(units.square, i) for i in range(50)]
        assert thrice.result() == 4
        with pytest.raises(BrokenUnitError, match=r"unit 51 \(die\) was run 4 times: .* SIGKILL each time"):
            always.result()
        assert [future.result() for future in others] == [i * i for i in [*range(50), *range(50)]]
    assert len(list((tmp_path / "always").iterdir())) == 4


def test_the_innocent_of_a_batch_do_not_pay(tmp_path):
    """A unit that kills its worker fails alone, though small units shared a message with it."""
    with Pool(1) as pool:
        list(pool.map(units.die_if, [False] * 100))
        futures = [pool.submit(units.die_if, i == 7) for i in range(30)]
        for i, future in enumerate(futures):
            if i == 7:
                with pytest.raises(BrokenUnitError, match="die_if"):
                    future.result()
            else:
                assert future.result() is False


def test_the_fork_server_killed():
    """Its workers die with it; another one is started, and all outcomes come."""
    with Pool(2) as pool:
        outcomes = pool.map(units.nap_square, range(60))
        found = [next(outcomes) for _ in range(10)]
        first = server()
        os.kill(first, signal.SIGKILL)
        found += outcomes
        assert server() != first
    assert found == [x * x for x in range(60)]


def test_idle_workers_killed():
    """Workers that die while they have nothing to do are replaced when there is something."""
    with Pool(2) as pool:
        pids = {future.result() for future in [pool.submit(units.nap_pid, 0.1) for _ in range(2)]}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert_gone(list(pids))
        assert list(pool.map(units.square, range(20))) == [x * x for x in range(20)]


def test_no_orphans_when_the_parent_is_killed(tmp_path):
    """SIGKILL of the process that made the pool ends its workers in the midst of their units."""
    with running(sys.executable, "-c", PARENT, str(tmp_path), cwd=TESTS) as parent:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "two units")
        workers = [int(file.name.removeprefix("pid-")) for file in tmp_path.iterdir()]
        processes = [*children(parent.pid), *workers]
        parent.kill()
        assert_gone(processes)


def test_ctrl_c_reaches_the_parent_alone(tmp_path):
    """Ctrl-C goes to all processes of a terminal; it interrupts the parent, and workers go on."""
    with running(sys.executable, "-c", INTERRUPTED, str(tmp_path), cwd=TESTS) as parent:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 1, "a unit")
        workers = [int(file.name.removeprefix("pid-")) for file in tmp_path.iterdir()]
        processes = [*children(parent.pid), *workers]
        os.killpg(parent.pid, signal.SIGINT)
        out, complaints = parent.communicate(timeout=30)
        assert (out, complaints, parent.returncode) == ("interrupted, None\n", "", 0)
        assert_gone(processes)


def test_no_worker_can_be_started(monkeypatch):
    """Where no process can be started, units fail with one line, and so does each later one."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with Pool(2) as pool:
        for _ in range(2):
            with pytest.raises(ExecutionError, match="cannot start worker processes: No such file"):
                pool.submit(units.square, 2).result(60)


def test_an_outcome_that_cannot_be_read():
    """An outcome that can be pickled but not unpickled is an error of its own future."""
    with Pool(1) as pool:
        with pytest.raises(ExecutionError, match="the result of Sealed cannot be read: sealed"):
            pool.submit(units.Sealed).result()
        assert pool.submit(units.square, 5).result() == 25


def test_a_failure_of_the_pool_itself(caplog):
    """A bug in the pool's thread fails all units, rather than leave their callers waiting."""
    with Pool(1) as pool:
        assert pool.submit(units.square, 5).result() == 25
        pool._manager._retire = lambda: 1 / 0
        with pytest.raises(ExecutionError, match="the pool failed: division by zero"):
            pool.submit(units.nap, 0.1).result(60)
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(units.square, 5)
    assert "the thread of a pool failed" in caplog.text


def test_a_forked_process_has_no_pool():
    """A pool says so in a process that was forked from its owner, and goes on in the owner."""
    with Pool(1) as pool:
        assert pool.submit(units.square, 2).result() == 4
        pid = os.fork()
        if pid == 0:
            try:
                pool.submit(units.square, 3)
            except ExecutionError as error:
                os._exit(42 if "belongs to the process that made it" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
        assert pool.submit(units.square, 4).result() == 16


def test_a_worker_that_is_stopped_holds_up_no_other(tmp_path):
    """While one worker is stopped, the others go on."""
    with Pool(2) as pool:
        stopped = pool.submit(units.note_pid, tmp_path, 0.3)
        wait_until(lambda: len(list(tmp_path.iterdir())) == 1, "its pid")
        pid = int(next(tmp_path.iterdir()).name.removeprefix("pid-"))
        os.kill(pid, signal.SIGSTOP)
        try:
            assert list(pool.map(units.square, range(50))) == [x * x for x in range(50)]
            assert not stopped.done()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert stopped.result() is None


def test_a_pool_that_ends_without_reading_a_report():
    """The fork server takes that for the end; closing a socket with unread reports resets the other side."""
    server = object.__new__(_Server)
    server.control, pool = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with server.control:
        server.report(b"S", 1, os.getpid())
        pool.close()
        assert not server.obey()
