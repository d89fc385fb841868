"""The broker: orders reach clients, CPUs move with cores, and ticks come by themselves."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malleable.live.broker.broker import Broker, RefusedError
from malleable.live.core.events import Confirmed, CoresChanged, Finished, Lost, Registered
from malleable.live.core.scheduler import Scheduler
from malleable.live.system.cpus import CpuSets
from malleable.model import paper_workload


class Client:
    """A job that does at once what it is told, and remembers it."""

    def __init__(self, broker, job, **known):
        self.broker, self.job, self.orders = broker, job, []
        cpus = known.pop("cpus", ())
        broker.join(Registered(job, "class-1", **known), self.obey, cpus=cpus)

    def obey(self, order):
        self.orders.append(order)
        self.broker.tell(Confirmed(self.job, order.cores, order.number))


@pytest.fixture
def broker():
    made = Broker(Scheduler(paper_workload(), 4, "equi"), CpuSets({0, 1, 2, 3}, all_threads=True))
    yield made
    made.close()


def test_orders_reach_the_clients(broker):
    """The first job has all cores until a second one comes, then both have half, on CPUs of their own."""
    one = Client(broker, "one")
    assert [(order.cores, order.cpus) for order in one.orders] == [(4, (0, 1, 2, 3))]
    two = Client(broker, "two")
    assert one.orders[-1].cores == two.orders[-1].cores == 2
    assert {*broker.cpus_of("one")} | {*broker.cpus_of("two")} == {0, 1, 2, 3}
    broker.tell(Lost("two"))
    assert one.orders[-1].cores == 4
    assert len(broker.cpus_of("one")) == 4


def test_a_job_that_was_running_keeps_its_cpus(broker):
    """A job that is counted again names its CPUs; those taken by then are replaced, and it is told."""
    first = Client(broker, "first", cores=2, cpus=(1, 3))
    assert first.orders[-1].cpus == (1, 3)
    second = Client(broker, "second", cores=2, cpus=(3, 2))
    assert set(second.orders[-1].cpus) == {0, 2}


def test_what_makes_no_sense_is_refused(broker):
    """A name taken, a job that is not there, more cores than CPUs: errors that change nothing."""
    Client(broker, "one")
    before = broker.state()["jobs"]
    for wrong in (
        lambda: Client(broker, "one"),
        lambda: broker.tell(Finished("two")),
        lambda: broker.tell(CoresChanged(5)),
        lambda: broker.cancel("two"),
    ):
        with pytest.raises(RefusedError):
            wrong()
    assert broker.state()["jobs"].keys() == before.keys()
    assert broker.cpus_of("one") == (0, 1, 2, 3)


def test_ticks_come_by_themselves():
    """A policy that decides in rounds is asked in time, without any event."""
    served = threading.Event()
    made = Broker(Scheduler(paper_workload(), 4, "pollux:period=0.05"))
    try:
        made.join(Registered("a", "class-1"), lambda _order: served.set())
        assert served.wait(60.0)
    finally:
        made.close()


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(1, 4)), max_size=30))
def test_cpus_follow_the_ledger(steps):
    """Whoever joins, leaves and gives back in parts: CPUs are disjoint, and as many as cores were granted."""
    cpus = CpuSets(range(6), all_threads=True)
    made = Broker(Scheduler(paper_workload(), 6, "equi"), cpus)
    waiting = {}
    try:
        for job, here, cores in steps:
            if job not in made.state()["jobs"]:
                made.join(Registered(job, "class-2"), lambda order: waiting.__setitem__(order.job, order))
            elif here and job in waiting:
                order = waiting[job]
                granted = made.state()["jobs"][job]["granted"]
                made.tell(Confirmed(job, max(order.cores, min(cores, granted)), order.number))
            else:
                made.tell(Finished(job))
                waiting.pop(job, None)
            jobs = made.state()["jobs"]
            held = [made.cpus_of(each) for each in jobs]
            assert [len(each) for each in held] == [account["granted"] for account in jobs.values()]
            assert len({cpu for each in held for cpu in each}) == sum(map(len, held)) <= 6
            assert cpus.free == set(range(6)) - {cpu for each in held for cpu in each}
    finally:
        made.close()


def test_too_many_cores_name_the_option():
    """Who asks for more cores than there are CPUs is told of `--no-bind`."""
    cpus = CpuSets()
    with pytest.raises(RefusedError, match="CPUs to grant") as error:
        Broker(Scheduler(paper_workload(), cpus.total + 1, "equi"), cpus)
    assert "--no-bind" in error.value.hint
