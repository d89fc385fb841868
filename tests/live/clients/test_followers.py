"""What every follower keeps to: it does what the last order says, and answers what is true.

A case is a job that is given orders here; how many cores it uses is seen from outside, and not asked of it.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import threading
import time

import pytest

from malleable.live.clients.follower import Follower
from malleable.live.clients.stay import Stay
from malleable.live.core.ledger import Ledger
from malleable.live.core.orders import Order
from malleable.live.programs.build_client import BuildClient
from malleable.live.programs.job_folder import JobFolder
from malleable.live.programs.program_client import Command, ProgramClient
from malleable.live.workers import Pool
from support import pool_units as units
from support.living import is_paused, wait_until
from support.seats import Seat, driven

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool and /proc are Linux's")
CPUS = tuple(sorted(os.sched_getaffinity(0)))
HELD = (
    "#!/bin/sh\ntouch started-$1\nwhile [ ! -e go ] && [ ! -e go-$1 ]; do sleep 0.01; done\ntouch ended-$1\n"
)


class Watched(Seat):
    """A seat that looks, at every answer, at how many cores are in use."""

    def __init__(self, in_use) -> None:
        super().__init__()
        self._in_use, self.untrue = in_use, []
        self.allowed = lambda cores, _number: cores

    def confirm(self, cores, number):
        allowed, in_use = self.allowed(cores, number), self._in_use()
        if in_use > allowed:
            self.untrue.append((cores, number, in_use))
        super().confirm(cores, number)


class Throttle(Follower):
    """A thing elsewhere that is asked to change, and does so later: as an array of tasks does."""

    def __init__(self, each=1) -> None:
        super().__init__(each)
        self.wanted = self.running = 0

    def set_width(self, width):
        self.wanted = width

    def pass_time(self):
        if self.running != self.wanted:
            self.running += 1 if self.running < self.wanted else -1
        self.in_force(max(self.running, self.wanted))


class Case:
    """A job under test: `obey` an order, `relax` lets a piece of its work end, `in_use` is what one sees."""

    def __init__(self, follower, in_use, relax, most=4, cpus=(), least=0) -> None:
        self.follower, self.in_use, self.relax, self.least = follower, in_use, relax, least
        self.most, self.cpus, self.seat = most, cpus, Watched(in_use)

    def order(self, cores, number):
        self.follower.obey(Order("1", cores, number, self.cpus[:cores]))

    def settled(self, cores, number):
        """Whether an order is carried out; if not, time passes."""
        if self.seat.confirmed[-1:] == [(cores, number)]:
            return True
        self.relax()
        return False


def end_one(folder):
    started = {path.name.partition("-")[2] for path in folder.glob("started-*")}
    for name in sorted(started - {path.name.partition("-")[2] for path in folder.glob("ended-*")})[:1]:
        (folder / f"go-{name}").touch()


@pytest.fixture
def throttle():
    follower = Throttle()
    case = Case(follower, lambda: follower.running, follower.pass_time)
    follower.sit(case.seat)
    return case


@pytest.fixture
def pool(tmp_path):
    with Pool(0, on_width=lambda k: stay.in_force(k)) as workers:  # noqa: PLW0108 - made below
        stay = Stay(workers, 1, None, workers.cancel_waiting)
        for i in range(300):
            workers.submit(units.held, tmp_path, i)
        case = Case(stay, lambda: units.running(tmp_path), lambda: end_one(tmp_path))
        stay.sit(case.seat)
        yield case
        workers.kill_workers()


def followed(client, case):
    """A client that has a thread of its own."""
    with driven(client, case.seat):
        yield case


@pytest.fixture
def program(tmp_path):
    job = JobFolder(tmp_path / "job")
    job.prepare({})
    client = ProgramClient(Command(["sleep", "600"], tmp_path), job)

    def in_use():
        name = job.program()
        if name is None or name.process() is None or is_paused(name.pid):
            return 0
        return len(os.sched_getaffinity(name.pid))

    yield from followed(client, Case(client, in_use, lambda: None, len(CPUS), CPUS))


@pytest.fixture
def build(tmp_path):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    job = JobFolder(tmp_path / "job")
    job.prepare({})
    (tmp_path / "held").write_text(HELD)
    targets = " ".join(f"t{i}" for i in range(300))
    (tmp_path / "Makefile").write_text(f"all: {targets}\nt%: ; @sh held $*\n")
    client = BuildClient(Command(["make"], tmp_path, {"PATH": os.environ["PATH"]}), job)

    def in_use():
        name = job.program()
        stopped = name is None or name.process() is None or is_paused(name.pid)
        return 0 if stopped else units.running(tmp_path)

    yield from followed(client, Case(client, in_use, lambda: end_one(tmp_path), least=1))


@pytest.fixture(params=["throttle", "pool", "program", "build"])
def case(request):
    return request.getfixturevalue(request.param)


def test_it_uses_what_the_last_order_allows(case):
    """Answers come to the last order, are never below what is in use, and nothing exceeds the order then."""
    rng, number = random.Random(2), 0
    for _ in range(10):
        cores, number = rng.randrange(case.most + 1), number + 1
        case.order(cores, number)
        wait_until(lambda cores=cores, number=number: case.settled(cores, number), f"order {number}: {cores}")
        assert case.in_use() <= cores
    assert not case.seat.untrue
    numbers = [number for _, number in case.seat.confirmed]
    assert numbers == sorted(numbers)


def test_what_is_in_use_is_granted_however_orders_change(case):
    """Orders that wait for no answer: after each answer the ledger counts at least what is in use.

    The build is not paused: its commands go on together after a pause, whatever its width is then.
    """
    rng, ledger, lock = random.Random(5), Ledger(case.most), threading.Lock()
    ledger.open("1", 0)

    def granted(cores, number):
        with lock:
            assert not ledger.complaint("1", cores, number)
            ledger.confirm("1", cores, number)
            return ledger.accounts["1"].granted

    case.seat.allowed = granted
    for _ in range(60):
        with lock:
            orders = ledger.retarget({"1": rng.choice([case.least, 1, 1, 2, case.most])})
        for order in orders:
            case.order(order.cores, order.number)
        case.relax()
        time.sleep(rng.choice([0.0, 0.0, 0.002, 0.01, 0.03]))
    assert len(case.seat.confirmed) > 1
    assert not case.seat.untrue


def test_an_order_that_was_overtaken_is_dropped(case):
    """Of two orders that pass each other the later one counts, and the earlier one is never answered."""
    case.order(case.most, 1)
    wait_until(lambda: case.settled(case.most, 1), "the first order")
    case.order(1, 3)
    case.order(case.most, 2)
    wait_until(lambda: case.settled(1, 3), "the last order")
    assert case.in_use() <= 1
    case.order(0, 4)
    wait_until(lambda: case.settled(0, 4), "a pause")
    assert 2 not in {number for _, number in case.seat.confirmed}
    assert not case.seat.untrue


def test_the_same_order_again_is_answered_again(case):
    """A broker that counts a job anew repeats its last order, with CPUs perhaps, and waits for an answer."""
    case.order(1, 1)
    wait_until(lambda: case.settled(1, 1), "the order")
    case.seat.confirmed.clear()
    case.order(1, 1)
    wait_until(lambda: case.settled(1, 1), "an answer")


def test_orders_from_many_threads(throttle):
    """However they arrive, the one with the highest number is in force in the end."""
    orders = [(random.Random(i).randrange(5), i) for i in range(200)]
    shuffled = random.Random(3).sample(orders, len(orders))
    threads = [
        threading.Thread(target=lambda part: [throttle.order(*each) for each in part], args=(shuffled[i::4],))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: throttle.settled(*orders[-1]), "the last order")
    assert throttle.follower.wanted == orders[-1][0]


def test_who_has_left_obeys_no_longer(throttle):
    """After `leave` the width is 0, orders are not obeyed or answered; `end` says how it ended."""
    throttle.order(2, 1)
    wait_until(lambda: throttle.settled(2, 1), "the order")
    throttle.follower.leave()
    throttle.order(4, 2)
    throttle.follower.pass_time()
    throttle.follower.end("finished")
    assert throttle.follower.wanted == throttle.follower.cores == 0
    assert throttle.seat.confirmed[-1] == (2, 1)
    assert throttle.seat.endings == ["finished"]


def test_units_of_several_cores():
    """Where a unit takes two cores, five make two units; cores are given back two at a time."""
    follower, seat = Throttle(each=2), Seat()
    follower.sit(seat)
    follower.obey(Order("1", 5, 1))
    assert follower.wanted == 2
    follower.in_force(2)
    follower.obey(Order("1", 2, 2))
    follower.in_force(2)
    follower.in_force(1)
    assert seat.confirmed == [(5, 1), (4, 2), (2, 2)]
