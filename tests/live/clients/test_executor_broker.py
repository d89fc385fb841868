"""Executors that share the broker of the machine, which is a process of its own and may die."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from malleable.live import Executor
from support import pool_units as units
from support.broker_process import BrokerProcess
from support.living import assert_gone, children, running, wait_until
from support.shell import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
TESTS = Path(__file__).parents[2]
SCRIPT = """
import sys
from pathlib import Path
from malleable.live import Executor
from support import pool_units as units
folder = Path(sys.argv[1])
with Executor("script") as executor:
    print(sum(executor.map(units.held, [folder] * 6, range(6))))
"""


@pytest.fixture
def broker(tmp_path, monkeypatch):
    with BrokerProcess(tmp_path, cores=4) as made:
        monkeypatch.delenv("MALLEABLE_BROKER")
        monkeypatch.setenv("MALLEABLE_HOME", str(made.home))
        yield made


@pytest.fixture
def folder(tmp_path):
    """Where held units look for leave to end."""
    made = tmp_path / "units"
    made.mkdir()
    return made


def jobs(broker):
    """The jobs of a broker: class, and cores in use."""
    found = broker.ask("GET", "/v1/status")["jobs"]
    return sorted((job["class"], job["in_use"]) for job in found)


def script(folder):
    there = {**environment(), "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}
    return running(sys.executable, "-c", SCRIPT, str(folder), env=there)


def test_scripts_share_the_broker_of_the_machine(broker, folder):
    """Without any configuration, two processes divide its cores; when one has no unit left it leaves."""
    with Executor("here") as executor, script(folder) as process:
        wait_until(lambda: units.running(folder) == 4, "units of the script")
        naps = [executor.submit(units.nap, 0.02) for _ in range(200)]
        wait_until(lambda: jobs(broker) == [("here", 0), ("script", 4)], "a job that waits")
        for number in (0, 1, 4, 5):  # those in hand, and those begun instead if its order has not come yet
            (folder / f"go-{number}").touch()
        wait_until(lambda: jobs(broker) == [("here", 2), ("script", 2)], "two cores each")
        assert executor.width == 2
        (folder / "go").touch()
        assert process.communicate(timeout=60) == ("15\n", "")
        wait_until(lambda: executor.width == 4, "all cores")
        assert [nap.result() for nap in naps] == [0.02] * 200
        wait_until(lambda: jobs(broker) == [], "the end of the job")


def test_a_killed_script_returns_its_cores(broker, folder):
    """The end of a client's connection frees its cores, and another Executor has them."""
    with script(folder) as process:
        wait_until(lambda: jobs(broker) == [("script", 4)], "the script's cores")
        with Executor("here") as executor:
            nap = executor.submit(units.nap, 0.01)
            wait_until(lambda: executor.width == 0 and len(jobs(broker)) == 2, "a job that waits")
            (server,) = children(process.pid)
            started = [server, *children(server)]
            process.send_signal(signal.SIGKILL)
            assert nap.result(60) == 0.01
            assert executor.width == 4
            assert_gone(started)


def test_a_broker_that_dies_stops_nobody(broker, folder):
    """Killed in the middle of a job, which keeps its cores; the next broker counts it, with the same ones."""
    with Executor("here") as executor:
        futures = [executor.submit(units.nap_square, i) for i in range(100)]
        futures += [executor.submit(units.held, folder, i) for i in range(6)]
        wait_until(lambda: units.running(folder) == 4, "units in hand")
        broker.kill()
        assert executor.width == 4
        (folder / "go-0").touch()
        wait_until((folder / "started-4").exists, "a unit that starts without a broker")
        broker.start()
        wait_until(lambda: jobs(broker) == [("here", 4)], "a job counted again")
        (folder / "go").touch()
        found = [future.result() for future in futures]
    assert found == [*(x * x for x in range(100)), *range(6)]
    wait_until(lambda: jobs(broker) == [], "the end of the job")


def test_without_a_broker_each_process_has_its_own(broker):
    """An Executor that finds no broker any more at its next unit goes on with that of its own process."""
    with Executor("here") as executor:
        assert executor.submit(units.square, 2).result() == 4
        wait_until(lambda: jobs(broker) == [], "an idle Executor that leaves")
        broker.kill()
        assert executor.submit(units.square, 3).result() == 9
        assert executor.width > 0


def test_units_with_executors_of_their_own(broker):
    """All cores are held by units that wait for jobs of theirs; these have the unit's core, and end."""
    with Executor("here") as executor:
        found = list(executor.map(units.nested_square, range(4)))
        assert {name for name, _ in jobs(broker)} <= {"here"}
    assert found == [(x * x, 1) for x in range(4)]
