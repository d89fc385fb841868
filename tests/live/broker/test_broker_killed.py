"""A broker that is killed while programs run: each starts once, ends once, with its output and exit code."""

from __future__ import annotations

import random
import sqlite3
import sys
import threading
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Self

import pytest

from malleable.live.broker.state import Store
from malleable.live.programs.job_folder import HeldCores, JobFolder
from support.broker_process import ENDED, BrokerProcess
from support.living import wait_until

if TYPE_CHECKING:
    from pathlib import Path

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


class Samples:
    """How many cores are held by all programs together, looked up in their folders all the time."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker, self.most, self.taken = broker, 0, 0
        self._ended: set[Path] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _take(self) -> None:
        while not self._over.wait(0.01):
            # What was held before and is still held, unchanged, was held at the moment in between.
            first, second = self._held(), self._held()
            self.most = max(
                self.most, sum(held.cores for job, held in first.items() if second.get(job) == held)
            )
            self.taken += 1

    def _held(self) -> dict[str, HeldCores]:
        """What each program holds that has not ended, also not while it was looked at."""
        found = {}
        for path in set((self.broker.state / "jobs").glob("*")) - self._ended:
            held = JobFolder(path).held()
            if JobFolder(path).result() is None:
                found[path.name] = held
            else:
                self._ended.add(path)
        return found


def weather(folder, kills: int, programs: int, cores: int) -> None:
    """Kill the broker so many times during so many programs, and see that all is well in the end."""
    runs = folder / "runs"
    runs.mkdir()
    with BrokerProcess(folder, cores) as broker, Samples(broker) as samples:
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
    assert samples.taken > 0
    assert samples.most <= cores


def test_a_broker_that_is_killed(tmp_path):
    """Two kills during eight programs: each ends once, as it should; no core is used twice at a time."""
    weather(tmp_path, kills=2, programs=8, cores=4)


@pytest.mark.slow
def test_a_broker_that_is_killed_a_hundred_times(tmp_path):
    """The same with a hundred kills during three hundred programs."""
    weather(tmp_path, kills=100, programs=300, cores=4)
