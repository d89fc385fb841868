"""Without a broker paused programs go on: in the order of their submission, as cores are free, never all."""

from __future__ import annotations

import os
import sys
import time

import pytest

from malleable.errors import ExecutionError
from malleable.live.broker.broker_lock import alone, holder, without_broker
from malleable.live.programs import turns
from malleable.live.programs.job_folder import HeldCores, JobFolder, ProcessName
from malleable.live.programs.turns import CLIENTS, Share, Turn, living_clients, note_machine
from malleable.live.system.whole_files import read_document, write_document
from support.broker_process import BrokerProcess
from support.living import is_paused, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
STEPS = 'while [ ! -e "$0/go-$1" ]; do echo step >> "$0/$1"; sleep 0.05; done'
"""A program that is seen to go on, until it is let go."""


class Machine:
    """Programs of a state folder whose broker is gone, each with a supervisor, on a clock of the test's."""

    def __init__(self, folder, monkeypatch, cores, cpus=()):
        self.folder, self.now, self.alive = folder, 0.0, {}
        note_machine(folder, cores, cpus)
        monkeypatch.setattr(turns.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(JobFolder, "supervisor", lambda job: self.alive.get(job.path.name))

    def program(self, number, cores=0, cpus=()):
        """A program that was started, and may be using so many cores; its turn."""
        made = JobFolder(self.folder / "jobs" / str(number))
        made.prepare({"ticket": "x"})
        made.mark_started()
        self.alive[str(number)] = ProcessName.of(os.getpid())
        self.hold(number, cores, cpus)
        return Turn(made, self.folder / "home")

    def hold(self, number, cores, cpus=()):
        JobFolder(self.folder / "jobs" / str(number)).note_held(HeldCores(cores, cpus))

    def ask(self, turn, wanted=1):
        """Ask for a turn, and note what came of it as a supervisor does."""
        with turn.taken(wanted) as share:
            if share is not None:
                self.hold(turn._folder.path.name, share.cores, share.cpus)
        return share

    def alone(self, *turns_of):
        """Let so much time pass without a broker that programs may go on."""
        for turn in turns_of:
            assert self.ask(turn) is None
        self.now += turns.ALONE_SECONDS


@pytest.fixture
def make(tmp_path, monkeypatch):
    return lambda cores, cpus=(): Machine(tmp_path, monkeypatch, cores, cpus)


def test_the_first_goes_on_as_soon_as_a_core_is_free(make):
    """Of three paused programs the first goes on when another ends, the second when that does."""
    machine = make(1)
    machine.program(1, cores=1)
    second, third, tenth = machine.program(2), machine.program(3), machine.program(10)
    machine.alone(second, third, tenth)
    assert [machine.ask(each) for each in (tenth, third, second)] == [None, None, None]
    del machine.alive["1"]
    assert [machine.ask(each) for each in (tenth, third, second)] == [None, None, Share(1, ())]
    assert [machine.ask(each) for each in (tenth, third)] == [None, None]
    del machine.alive["2"]
    assert [machine.ask(each) for each in (tenth, third)] == [None, Share(1, ())]


def test_it_is_as_wide_as_before_on_cpus_that_are_free(make):
    """With two of five CPUs in use, one that had four goes on with the other three."""
    machine = make(5, (0, 2, 4, 6, 8))
    machine.program(1, cores=2, cpus=(2, 6))
    second, third = machine.program(2), machine.program(3)
    machine.alone(second, third)
    assert machine.ask(second, wanted=4) == Share(3, (0, 4, 8))
    assert machine.ask(third) is None


def test_where_no_core_becomes_free_one_a_minute_goes_on(make):
    """Programs that run for ever do not stop others for ever: one more shares the cores after each minute."""
    machine = make(1, (5,))
    machine.program(1, cores=1, cpus=(5,))
    second, third = machine.program(2), machine.program(3)
    machine.alone(second, third)
    went_on = {}
    for now in range(300):
        machine.now = float(now)
        for number, turn in ((3, third), (2, second)):
            share = None if number in went_on else machine.ask(turn, wanted=4)
            if share is not None:
                assert share == Share(1, (5,))
                went_on[number] = now
    first, later = went_on[2], went_on[3]
    assert 60 <= first <= 70
    assert 60 <= later - first <= 61


def test_one_that_cannot_go_on_does_not_hold_up_the_others(make):
    """The second program goes on after two minutes though the first never takes its turn."""
    machine = make(1)
    machine.program(1)
    second = machine.program(2)
    machine.alone(second)
    assert machine.ask(second) is None
    machine.now += 119.0
    assert machine.ask(second) is None
    machine.now += 2.0
    assert machine.ask(second) == Share(1, ())


def test_no_program_goes_on_beside_a_broker(make, tmp_path):
    """While a broker holds the folder nothing happens, and the time without one begins anew with its end."""
    machine = make(4)
    turn = machine.program(1)
    machine.alone(turn)
    with alone(tmp_path):
        assert machine.ask(turn) is None
    machine.alone(turn)
    machine.now -= 1.0
    assert machine.ask(turn) is None
    machine.now += 1.0
    assert machine.ask(turn) == Share(1, ())


def test_clients_keep_their_cores(make, tmp_path):
    """What the Executors of the last broker hold is not free while their processes live."""
    machine = make(3, (0, 1, 2))
    mine, gone = ProcessName.of(os.getpid()), ProcessName(1, 1, "another boot")
    (tmp_path / "home").mkdir()
    write_document(tmp_path / "home" / CLIENTS, {"a": [1, [1], mine], "b": [2, [0, 2], gone]})
    turn = machine.program(7)
    machine.alone(turn)
    assert machine.ask(turn, wanted=3) == Share(2, (0, 2))
    record = read_document(tmp_path / "home" / CLIENTS)
    assert list(living_clients(record)) == [("a", 1, [1])]
    for nonsense in (None, [], {"a": 3}, {"a": [1, 2]}, {"a": ["x", [], None]}):
        assert list(living_clients(nonsense)) == []


def test_the_lock_says_whether_a_broker_runs(tmp_path, monkeypatch):
    """Who looks does not keep a broker from starting; who takes a turn does, until it is over."""
    monkeypatch.setattr("malleable.live.broker.broker_lock.LOOK_SECONDS", 0.05)
    assert holder(tmp_path) is None
    with alone(tmp_path):
        assert holder(tmp_path) == f"process {os.getpid()}"
        with without_broker(tmp_path) as none:
            assert not none
    assert holder(tmp_path) is None
    with without_broker(tmp_path) as none:
        assert none
        assert holder(tmp_path) is None
        with pytest.raises(ExecutionError, match="runs already"), alone(tmp_path):
            pass
    with alone(tmp_path):
        pass


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_paused_program_goes_on_without_its_broker(tmp_path, end):
    """On one core a short program pauses a long one; the broker goes; the long one ends, and is counted."""
    with BrokerProcess(tmp_path, 1, policy="wham") as broker:
        long = broker.submit("sh", "-c", STEPS, str(tmp_path), "long", size=1000.0)
        wait_until((tmp_path / "long").exists, "the start of the long program")
        short = broker.submit("sh", "-c", STEPS, str(tmp_path), "short", size=1.0, weight=100.0)
        wait_until((tmp_path / "short").exists, "the start of the short program")
        program = broker.folder(long).program()
        wait_until(lambda: is_paused(program.pid), "the pause")
        getattr(broker, end)()
        steps = (tmp_path / "long").stat().st_size
        time.sleep(0.2)
        assert (tmp_path / "long").stat().st_size == steps
        (tmp_path / "go-short").touch()
        wait_until(lambda: (tmp_path / "long").stat().st_size > steps, "the long program")
        assert broker.folder(long).held().cores == 1
        broker.start()
        wait_until(lambda: broker.job(short)["state"] == "finished", "the end of the short program")
        assert broker.job(long)["state"] == "running"
        (tmp_path / "go-long").touch()
        assert [job["state"] for job in broker.wait([long])] == ["finished"]
