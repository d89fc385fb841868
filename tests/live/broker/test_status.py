"""The status document: complete, plain, and true of the scheduler."""

from __future__ import annotations

import json

import pytest

from malleable.live.broker.broker import Broker
from malleable.live.broker.status import status
from malleable.live.core.events import Confirmed, Finished, Progressed, Registered, WeightChanged
from malleable.live.core.scheduler import Scheduler
from malleable.live.system.cpus import CpuSets
from malleable.model import paper_workload

KEYS = {
    *("cores", "policy", "price", "time", "draining", "problem", "granted", "cost", "ended", "classes"),
    *("jobs", "uptime", "present", "waiting"),
}
JOB_KEYS = {
    *(
        "id",
        "class",
        "state",
        "granted",
        "in_use",
        "max_cores",
        "target",
        "progress",
        "weight",
        "age",
        "remaining",
        "remaining_estimated",
    ),
    *("units", "units_done", "cpus", "kind", "command", "speed"),
    *("on_hold", "over_share", "promised_share"),
}


class Clock:
    """A time that is set."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def broker(clock):
    cpus = CpuSets({0, 1, 2, 3}, all_threads=True)
    made = Broker(Scheduler(paper_workload(), 4, "greedy:weight=cmu"), cpus, clock=clock)
    yield made
    made.close()


def join(broker, job, job_class="class-2", **known):
    """A job that does at once what it is told."""
    obey = lambda order: broker.tell(Confirmed(job, order.cores, order.number))  # noqa: E731
    broker.join(Registered(job, job_class, **known), obey)


def test_an_idle_machine(broker):
    """Without jobs everything is there, and what is not known is null."""
    found = status(broker)
    assert set(found) == KEYS
    assert (found["cores"], found["granted"], found["jobs"]) == (4, 0, [])
    assert found["policy"] == "greedy:weight=cmu"
    assert found["price"] is None
    assert found["cost"]["so_far"] is None
    assert [one["name"] for one in found["classes"]] == ["class-1", "class-2", "class-3"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_jobs_as_they_are(broker, clock):
    """Widths, CPUs, progress, age and remaining work are those of the scheduler, in order of arrival."""
    join(broker, "a", units=10.0, size=6.0)
    clock.now = 2.0
    broker.tell(Progressed("a", 4.0))
    join(broker, "b", "class-3", weight=7.0)
    found = status(broker, {"b": {"kind": "program", "command": ["make", "-k"]}}, draining=True)
    a, b = found["jobs"]
    assert set(a) == set(b) == JOB_KEYS
    assert (a["id"], a["class"], a["units"], a["units_done"], a["progress"]) == ("a", "class-2", 10, 4, 0.4)
    assert (a["age"], b["age"], b["weight"]) == (2.0, 0.0, 7.0)
    assert a["remaining"] == pytest.approx(3.6)
    assert a["granted"] + b["granted"] == found["granted"] == 4
    assert [len(a["cpus"]), len(b["cpus"])] == [a["granted"], b["granted"]]
    assert b["progress"] is None
    assert (a["kind"], a["command"]) == ("client", None)
    assert (b["kind"], b["command"]) == ("program", ["make", "-k"])
    assert found["draining"]
    assert json.dumps(found, allow_nan=False)


def test_queued_running_paused(broker):
    """A job that never had cores is queued; one that had some and has none is paused."""
    for job in "abcde":
        join(broker, job, size=1.0)
    assert [job["state"] for job in status(broker)["jobs"]].count("queued") == 1
    running = next(job["id"] for job in status(broker)["jobs"] if job["state"] == "running")
    for job in status(broker)["jobs"]:
        broker.tell(WeightChanged(job["id"], 1.0 if job["id"] == running else 100.0))
    states = {job["id"]: job["state"] for job in status(broker)["jobs"]}
    assert states.pop(running) == "paused"
    assert set(states.values()) == {"running"}
    for job in "abcde":
        broker.tell(Finished(job))
    assert status(broker)["ended"]["finished"] == 5


def test_a_long_queue_is_cut(broker):
    """Of many jobs those with cores are listed, then those that came first, and all are counted."""
    for number in range(20):
        join(broker, f"{number}", size=20.0 - number)
    found, short = status(broker), status(broker, most=6)
    assert (found["present"], found["waiting"]) == (short["present"], short["waiting"]) == (20, 16)
    assert len(found["jobs"]) == 20
    running = {job["id"] for job in found["jobs"] if job["granted"]}
    assert len(running) == 4
    listed = [job["id"] for job in short["jobs"]]
    assert len(listed) == 6
    assert running <= set(listed)
    assert listed == sorted(listed, key=int)
    assert set(listed) - running == set([job["id"] for job in found["jobs"] if not job["granted"]][:2])


def test_learned_speedups_have_points(broker, clock):
    """What jobs show at several widths stands beside the speedup that was learned from it."""
    assert all(one["points"] == [] for one in status(broker)["classes"])
    join(broker, "a", units=1000.0)
    done = 0.0
    for round_ in range(12):
        wide = round_ % 2 == 0
        if wide and round_:
            broker.tell(Finished("b"))
        elif not wide:
            join(broker, "b", weight=1.0)
        cores = next(job["in_use"] for job in status(broker)["jobs"] if job["id"] == "a")
        for _ in range(3):
            clock.now += 10.0
            done += 10.0 * cores**0.9
            broker.tell(Progressed("a", done))
    learned = next(one for one in status(broker)["classes"] if one["name"] == "class-2")
    seen = {point["cores"]: point["speedup"] for point in learned["points"]}
    assert len(seen) >= 2
    low, high = min(seen), max(seen)
    assert seen[high] / seen[low] == pytest.approx((high / low) ** 0.9, rel=0.05)
    widths = learned["speedup"]["cores"]
    assert widths == [1, 2, 3, 4]
    assert learned["speedup"]["values"][0] == 1.0


def test_wide_machines_have_short_curves():
    """Curves of a machine with ten million cores stay short, rise, and end at all cores."""
    broker = Broker(Scheduler(paper_workload(), 10_000_000, "equi"))
    try:
        widths = status(broker)["classes"][0]["speedup"]["cores"]
    finally:
        broker.close()
    assert len(widths) < 100
    assert widths == sorted(set(widths))
    assert (widths[0], widths[-1]) == (1, 10_000_000)
