"""Executors that come, work, idle and leave while the number of cores changes and workers are killed."""

from __future__ import annotations

import random
import sys
import threading
import time

import pytest

from malleable.live import Executor
from malleable.live.core.events import CoresChanged
from support import pool_units as units
from support.embedded_brokers import embedded_broker, jobs_of
from support.living import children, fork_servers, kill, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux"),
    pytest.mark.slow,
]
SECONDS = 15.0


class User(threading.Thread):
    """Someone who uses Executors in all the ways there are, and checks every outcome."""

    def __init__(self, seed, end):
        super().__init__()
        self.rng, self.end = random.Random(seed), end
        self.wrong, self.units, self.intervals = [], 0, []

    def run(self):
        try:
            while time.monotonic() < self.end:
                with Executor(self.rng.choice("ab"), weight=self.rng.uniform(0.5, 5.0)) as executor:
                    for _ in range(self.rng.randrange(1, 6)):
                        self.burst(executor)
        except Exception as error:  # noqa: BLE001 - reported by the test
            self.wrong.append(repr(error))

    def burst(self, executor):
        count = self.rng.randrange(1, 60)
        if self.rng.random() < 0.5:
            found = list(executor.map(units.square, range(count)))
            self.check(found, [x * x for x in range(count)])
        else:
            futures = [executor.submit(units.interval, self.rng.uniform(0.0, 0.01)) for _ in range(count)]
            cancelled = [future for future in futures if self.rng.random() < 0.1 and future.cancel()]
            self.intervals += [future.result() for future in futures if future not in cancelled]
        self.units += count
        time.sleep(self.rng.choice([0.0, 0.0, 0.05, 0.1, 0.15]))

    def check(self, found, wanted):
        if found != wanted:
            self.wrong.append(f"{found} instead of {wanted}")


@pytest.mark.parametrize("policy", ["equi", "wham"])
def test_users_of_all_kinds(policy):
    """No outcome is lost or wrong, no core is given twice, and in the end the broker has all of them."""
    rng, most = random.Random(policy), 4
    end = time.monotonic() + SECONDS
    with embedded_broker(most, policy) as broker:
        users = [User(seed, end) for seed in range(4)]
        for user in users:
            user.start()
        while time.monotonic() < end:
            time.sleep(0.05)
            broker.tell(CoresChanged(rng.choice([1, 2, 3, most, most])))
            assert sum(account["granted"] for account in jobs_of(broker).values()) <= most
            workers = [worker for server in fork_servers() for worker in children(server)]
            if workers and rng.random() < 0.1:
                kill(rng.choice(workers))
        broker.tell(CoresChanged(most))
        for user in users:
            user.join(120.0)
        assert [user.is_alive() for user in users] == [False] * 4
        assert [wrong for user in users for wrong in user.wrong] == []
        wait_until(lambda: not jobs_of(broker), "the end of all jobs")
        assert broker.state()["granted"] == 0
        assert most_at_once([each for user in users for each in user.intervals]) <= most
    assert min(user.units for user in users) > 0


def most_at_once(intervals):
    """How many of the intervals overlap at most."""
    edges = sorted([(start, 1) for start, _ in intervals] + [(end, -1) for _, end in intervals])
    under_way = most = 0
    for _, step in edges:
        under_way += step
        most = max(most, under_way)
    return most
