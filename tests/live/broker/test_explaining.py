"""A broker explains what it decides, and deciding what it would do changes nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from malleable.live.broker.broker import Broker
from malleable.live.broker.explaining import explained
from malleable.live.core.events import Confirmed, CoresChanged, Finished, Held, Registered
from malleable.live.core.fair_share import Guarantee
from malleable.live.core.scheduler import Scheduler
from malleable.model import paper_workload
from support.broker_server import broker_thread


class Clock:
    """A time that is set."""

    now = 0.0

    def __call__(self):
        return self.now


def made(cores, policy, jobs, **options):
    """A broker with these jobs, which do what they are told; jobs are (name, class, size)."""
    broker = Broker(Scheduler(paper_workload(), cores, policy, **options), clock=Clock())
    for job, job_class, size in jobs:
        join(broker, job, job_class, size=size)
    return broker


def join(broker, job, job_class, **known):
    obey = lambda order: broker.tell(Confirmed(job, order.cores, order.number))  # noqa: E731
    broker.join(Registered(job, job_class, **known), obey)


def targets(broker):
    """What the scheduler has decided."""
    return {job: account.target for job, account in broker.scheduler.ledger.accounts.items()}


def moved(event, before):
    """Widths after an event, as the explanation says."""
    by = {change["id"]: change["cores"] for change in event["changes"]}
    return {job: cores + by.get(job, 0.0) for job, cores in before.items()}


@pytest.mark.parametrize("policy", ["wham", "equi", "greedy:weight=cmu", "srpt", "fcfs"])
def test_what_is_said_comes_true(policy):
    """The scheduler then decides as was said: with a core more or less, and a job less; nothing moved."""
    rng = np.random.default_rng(11)
    for trial in range(6):
        count, cores = int(rng.integers(1, 9)), int(rng.integers(2, 12))
        jobs = [(f"j{j}", f"class-{rng.integers(1, 4)}", float(rng.exponential())) for j in range(count)]
        gone = f"j{trial % count}"
        for event in ("next_core", "lost_core", "departure"):
            broker = made(cores, policy, jobs)
            before, state = targets(broker), broker.state()
            said = explained(broker, gone)
            assert (targets(broker), broker.state()) == (before, state)
            assert said["job"]["cores"] == before[gone]
            change = {"next_core": CoresChanged(cores + 1), "lost_core": CoresChanged(cores - 1)}
            broker.tell(change.get(event, Finished(gone)))
            expected = moved(said[event], before)
            if event == "departure":
                del expected[gone]
            assert targets(broker) == expected, (event, jobs, cores)
            broker.close()


def test_caps_and_holds():
    """A job that takes no more says so; one on hold waits for that reason, one without memory for that."""
    broker = made(8, "wham", [("a", "class-2", 5.0)], memory=10.0)
    join(broker, "b", "class-3", max_cores=2, size=1.0)
    join(broker, "c", "class-3", size=1.0, memory=9.0)
    join(broker, "d", "class-3", size=1.0, memory=9.0)
    capped = explained(broker, "b")["job"]
    assert (capped["cores"], capped["next"]) == (2, None)
    assert explained(broker, "d")["job"]["why"] == "waits because jobs before it have the memory"
    broker.tell(Held("a"))
    assert explained(broker, "a")["job"]["why"] == "waits because it is on hold"
    broker.close()


def test_a_job_behind_its_share():
    """A job that the policy leaves out has its fair share first, once it fell behind, and it says so."""
    clock = Clock()
    scheduler = Scheduler(paper_workload(), 2, "srpt", guarantee=Guarantee(2.0, 0.5, 60.0))
    broker = Broker(scheduler, clock=clock)
    for job, size in (("a", 50.0), ("b", 50.0), ("long", 99.0)):
        join(broker, job, "class-1", size=size)
    assert explained(broker, "long")["job"]["cores"] == 0
    for clock.now in np.arange(0.0, 20.0, 0.25):
        broker.tell(CoresChanged(2))
        said = explained(broker, "long")["job"]
        if said["cores"]:
            break
    assert "fair share" in said["why"]
    assert said["cores"] == targets(broker)["long"]
    broker.close()


def test_over_http():
    """`GET /v1/jobs/ID/explain` is plain JSON; a job that is not there is 404."""
    with broker_thread() as broker, broker.http() as http:
        broker.broker.join(Registered("a", "class-1"), lambda _order: None)
        found = http.get("/v1/jobs/a/explain")
        assert found.status_code == 200
        document = found.json()
        assert document["job"]["id"] == "a"
        assert {"policy", "cores", "price", "words", "job", "next_core", "lost_core", "departure"} == set(
            document
        )
        assert json.dumps(document, allow_nan=False)
        assert http.get("/v1/jobs/b/explain").status_code == 404
