"""Executors whose workers are killed, whose process is interrupted, forked, or over before they are."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from malleable.live import Executor
from malleable.live.workers import BrokenUnitError
from support import pool_units as units
from support.embedded_brokers import embedded_broker, jobs_of
from support.living import alive, assert_gone, children, fork_servers, kill, running, wait_until
from support.shell import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
TESTS = Path(__file__).parents[2]
HEAD = """
import os, sys, time
from pathlib import Path
from malleable.live import Executor
from support import pool_units as units
folder = Path(sys.argv[1])
"""
WITH = """
with Executor() as executor:
    futures = [executor.submit(units.note_pid, folder, 600.0) for _ in range(100)]
    futures[0].result()
"""
WITHOUT = """
executor = Executor()
outcomes = executor.map(units.note_pid, [folder] * 100, [600.0] * 100)
next(outcomes)
"""
UNFINISHED = """
one, two = Executor("a"), Executor("b", weight=5.0)
for i in range(6):
    for name, executor in (("one", one), ("two", two)):
        executor.submit(units.note_pid, folder / name, 0.05)
        executor.submit((folder / name / str(i)).touch)
print("over")
"""
PAUSED = """
from malleable.live.broker import embedded
from malleable.live.core.events import CoresChanged
executor = Executor()
embedded.current().broker.tell(CoresChanged(0))
future = executor.submit((folder / "ran").touch)
future.add_done_callback(lambda future: print("cancelled:", future.cancelled()))
"""
FORKED = """
import warnings
warnings.simplefilter("ignore")  # of forking beside threads, which is what this is about
executor = Executor()
print(executor.submit(pow, 2, 2).result(), flush=True)
child = os.fork()
if child == 0:
    try:
        executor.submit(pow, 2, 3)
    except Exception as error:
        print(error)
    with Executor() as own:
        print(own.submit(pow, 2, 3).result())
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(executor.submit(pow, 2, 4).result())
"""


CARELESS = """
from malleable.live import Executor

def square(x):
    return x * x

with Executor() as executor:
    print(executor.submit(square, 3).result())
"""


def there():
    return {**environment(), "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}


def run(script, folder):
    """Run a script to its end, within a generous time; its status and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script, str(folder)],
        env=there(),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("deaths", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_workers_killed_during_a_map(deaths):
    """However often workers are killed, all outcomes come, in order, and the broker loses no core."""
    rng = random.Random(deaths)
    found, killed = [], 0
    with embedded_broker(2) as broker:
        with Executor() as executor:
            for outcome in executor.map(units.nap_square, range(deaths * 30)):
                found.append(outcome)
                (server,) = fork_servers()
                # A unit may be run three times again: kill now and then, not always the same one.
                if len(found) % 25 == 0 and killed < deaths and (workers := children(server)):
                    kill(rng.choice(workers))
                    killed += 1
        assert killed == deaths
        assert found == [x * x for x in range(deaths * 30)]
        wait_until(lambda: not jobs_of(broker), "the end of the job")
        assert broker.state()["granted"] == 0


def test_a_unit_that_always_kills_its_worker(tmp_path):
    """It fails by its name after the fourth death; the others are done."""
    with embedded_broker(2), Executor() as executor:
        always = executor.submit(units.die, tmp_path, 99)
        others = [executor.submit(units.square, i) for i in range(50)]
        with pytest.raises(BrokenUnitError, match=r"unit 0 \(die\) was run 4 times"):
            always.result()
        assert [future.result() for future in others] == [i * i for i in range(50)]


@pytest.mark.parametrize("script", [WITH, WITHOUT], ids=["with", "without"])
def test_ctrl_c_ends_everything(script, tmp_path):
    """Ctrl-C at units of ten minutes: the script ends as any other does, and nothing of it is left."""
    with running(sys.executable, "-c", HEAD + script, str(tmp_path), env=there()) as process:
        wait_until(lambda: list(tmp_path.glob("pid-*")), "a unit")
        (server,) = children(process.pid)
        started = [server, *children(server)]
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGINT, err
        assert err.rstrip().endswith("KeyboardInterrupt")
        assert_gone(started)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_script_leaves_nothing(signum, tmp_path):
    """A script that is killed takes its workers with it."""
    with running(sys.executable, "-c", HEAD + WITH, str(tmp_path), env=there()) as process:
        wait_until(lambda: list(tmp_path.glob("pid-*")), "a unit")
        (server,) = children(process.pid)
        started = [server, *children(server)]
        assert alive(started)
        os.kill(process.pid, signum)
        process.wait(60)
        assert_gone(started)


def test_units_are_finished_when_python_ends(tmp_path):
    """A script that does not shut its two Executors down ends when all their units are done."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert run(UNFINISHED, tmp_path) == (0, ["over"], "")
    for name in ("one", "two"):
        assert {file.name for file in (tmp_path / name).glob("?")} == set("012345")


def test_a_paused_executor_does_not_keep_python_from_ending(tmp_path):
    """Units that could only run when others give cores back are cancelled at the end of the script."""
    assert run(PAUSED, tmp_path) == (0, ["cancelled: True"], "")
    assert not (tmp_path / "ran").exists()


def test_a_forked_process_makes_its_own(tmp_path):
    """In a forked process the parent's Executor says what is wrong, a new one works, and both end."""
    status, out, err = run(FORKED, tmp_path)
    assert (status, err) == (0, "")
    assert out[0] == "4"
    assert "belongs to the process that made it (make" in out[1]
    assert out[2:] == ["8", "16"]


def test_a_module_that_starts_an_executor_when_imported(tmp_path, monkeypatch):
    """Workers that import it start one, too; that ends soon, with an error that says what to do."""
    (tmp_path / "careless.py").write_text(CARELESS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    status, _, err = run("import careless", tmp_path)
    assert status == 1
    assert "nested more than 2 deep (does a module start one when it is imported? put that under" in err
