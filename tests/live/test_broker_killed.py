"""A broker that is killed while programs run: each starts once, ends once, with its output and exit code."""

from __future__ import annotations

import random
import sqlite3
import sys
import threading
import time
from http.client import HTTPException

import pytest

from malleable.live.state import Store
from support.broker_process import ENDED, BrokerProcess
from support.living import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
PROGRAM = 'echo "begun $1" >> "$2/$1.runs"; echo "out $1"; echo "err $1" >&2; sleep "$3"; exit $4'
"""Notes that it runs, prints to both streams, and ends with a code of its own."""


class Storm:
    """Programs that are submitted while the broker is killed and started again, over and over."""

    def __init__(self, broker: BrokerProcess, folder, seed=1):
        self.broker, self.folder, self.random = broker, folder, random.Random(seed)
        self.accepted: dict[str, int] = {}
        """The number that each accepted program was given."""
        self.attempts = 0

    def submit(self, programs: int) -> None:
        """Submit so many; one that got no answer may have been accepted or not, and is not counted."""
        while len(self.accepted) < programs:
            self.attempts += 1
            number = self.attempts
            words = [str(number), str(self.folder), f"{self.random.uniform(0.0, 0.4):.2f}", str(number % 5)]
            try:
                job = self.broker.submit("sh", "-c", PROGRAM, "sh", *words, folder=self.folder)
            except (OSError, HTTPException):
                time.sleep(0.05)
                continue
            self.accepted[job] = number

    def check(self) -> None:
        """Every program of the store has ended once, and its number says how."""
        with Store(self.broker.state) as store:
            assert store.integrity() == []
            found = {job.job: job for job in store.jobs()}
        assert self.accepted.keys() <= found.keys()
        for name, job in found.items():
            number = int(job.request.command[4])
            assert self.accepted.get(name, number) == number
            code = number % 5
            assert (job.state, job.exit_code) == ("failed" if code else "finished", code), job
            folder = self.broker.folder(name).path
            assert (folder / "output").read_text() == f"out {number}\n"
            assert (folder / "errors").read_text() == f"err {number}\n"
            assert (self.folder / f"{number}.runs").read_text() == f"begun {number}\n"


def counts(broker: BrokerProcess) -> tuple[int, int]:
    """How many programs there are, and how many have ended, as the database says."""
    connection = sqlite3.connect(f"file:{broker.state}/jobs.sqlite?mode=ro", uri=True)
    try:
        states = [state for (state,) in connection.execute("SELECT state FROM jobs")]
    finally:
        connection.close()
    return len(states), sum(state in ENDED for state in states)


def weather(folder, kills: int, programs: int, cores: int) -> None:
    """Kill the broker so many times during so many programs, and see that all is well in the end."""
    runs = folder / "runs"
    runs.mkdir()
    with BrokerProcess(folder, cores) as broker:
        storm = Storm(broker, runs)
        submitting = threading.Thread(target=storm.submit, args=(programs,))
        submitting.start()
        try:
            for kill in range(kills):
                due = (kill + 0.5) / kills * programs
                wait_until(lambda due=due: counts(broker)[1] >= due, f"{due} programs", 300.0)
                broker.kill()
                with Store(broker.state) as store:
                    assert store.integrity() == []
                broker.start()
                time.sleep(storm.random.uniform(0.0, 0.3))
        finally:
            submitting.join(300.0)
        wait_until(lambda: counts(broker)[0] == counts(broker)[1], "end of all programs", 300.0)
        wait_until(lambda: not broker.supervisors(), "end of all supervisors")
        broker.stop()
        storm.check()


def test_a_broker_that_is_killed(tmp_path):
    """Three kills during twelve programs: each ends once, as it should, and the database is sound."""
    weather(tmp_path, kills=3, programs=12, cores=4)


@pytest.mark.slow
def test_a_broker_that_is_killed_a_hundred_times(tmp_path):
    """The same with a hundred kills during three hundred programs."""
    weather(tmp_path, kills=100, programs=300, cores=4)
