"""The cost so far is what jobs have cost, and its bound is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from malleable.live.broker.cost_so_far import CostSoFar
from malleable.live.core.events import Confirmed, CoresChanged, Finished, Registered, WeightChanged, Withdrawn
from malleable.live.core.scheduler import Scheduler
from malleable.live.core.virtual import VirtualMachine
from malleable.model import Workload, paper_workload
from malleable.sources import Chunk, Drawn
from malleable.speedups.power import Power


def watched(cores=4, policy="equi"):
    scheduler = Scheduler(paper_workload(), cores, policy)
    cost = CostSoFar(scheduler)
    return scheduler, cost, cost.watching(scheduler.handle)


def test_weight_times_time():
    """Every job costs its weight while it is there, and the cost per job counts those still present."""
    _, cost, handle = watched()
    handle(Registered("a", "class-1", weight=2.0), 1.0)
    handle(Registered("b", "class-2", weight=3.0), 2.0)
    handle(WeightChanged("b", 5.0), 4.0)
    handle(Finished("a"), 6.0)
    document = cost.document(cost.account(7.0))
    assert cost.area == pytest.approx(2.0 * 5.0 + 3.0 * 2.0 + 5.0 * 3.0)
    assert document["so_far"] == pytest.approx(cost.area / 2)
    assert document["rate"] == pytest.approx(cost.area / 7.0)
    assert document["jobs"] == 2


def test_nothing_is_known_at_first():
    """There is no cost per job before the first job, and no bound before the first work."""
    _, cost, handle = watched()
    assert cost.document(cost.account(3.0)) == {"so_far": None, "bound": None, "rate": 0.0, "jobs": 0}
    handle(Registered("a", "class-1"), 3.0)
    assert cost.document(cost.account(5.0))["bound"] is None


def test_a_job_without_work_is_no_job():
    """What withdraws counts neither among the jobs that came nor among those that ended."""
    scheduler, cost, handle = watched()
    handle(Registered("idle", "class-1"), 0.0)
    handle(Confirmed("idle", 4, 1), 0.0)
    handle(Withdrawn("idle"), 1.0)
    alone = cost.document(cost.account(1.0))
    assert (alone["jobs"], alone["so_far"], alone["bound"]) == (0, None, None)
    assert not any(scheduler.ended.values())
    handle(Registered("a", "class-1"), 1.0)
    handle(Finished("a"), 3.0)
    assert cost.document(cost.account(3.0))["jobs"] == 1
    assert scheduler.ended["finished"] == 1


def test_what_is_refused_does_not_count():
    """An event that the scheduler refuses changes neither jobs nor work."""
    scheduler, cost, handle = watched()
    handle(Registered("a", "class-1"), 0.0)
    handle(Registered("a", "class-1"), 1.0)
    assert scheduler.refused
    handle(Finished("b"), 2.0)
    assert scheduler.refused
    assert cost.document(cost.account(4.0))["jobs"] == 1
    assert cost.area == pytest.approx(4.0)


def test_one_job_alone_attains_its_bound():
    """A job that had all cores for all of its life could not have cost less."""
    _, cost, handle = watched(4)
    handle(Registered("a", "class-2"), 0.0)
    handle(Confirmed("a", 4, 1), 0.0)
    handle(Finished("a"), 3.0)
    assert cost.account(0.0).bound() == pytest.approx(cost.area, rel=1e-6)
    handle(CoresChanged(2), 8.0)
    assert cost.account(0.0).bound() == pytest.approx(cost.area, rel=1e-6)


@pytest.mark.parametrize(
    ("policy", "load"),
    [
        pytest.param(policy, load, marks=() if one else pytest.mark.slow)
        for policy, load, one in (
            *(("wham", 0.95, True), ("srpt", 0.3, True), ("wham", 0.3, False), ("srpt", 0.95, False)),
            *((policy, load, False) for policy in ("equi", "greedy") for load in (0.3, 0.95)),
        )
    ],
)
def test_a_bound_at_every_moment(policy, load):
    """Whatever the policy and the weights, the cost is never below the bound, and WHAM comes near to it."""
    workload = paper_workload().at(8, load)
    jobs = Chunk(*(part[:160] for part in Drawn(7).stream(workload).take()[:3]))
    weights = np.random.default_rng(1).choice([0.5, 1.0, 4.0], 160)
    scheduler = Scheduler(workload, 8, policy)
    cost = CostSoFar(scheduler)
    ratios, inner = [], cost.watching(scheduler.handle)

    def handle(event, now):
        actions = inner(event, now)
        if cost.arrivals % 40 == 0 and cost.area:
            ratios.append((cost.account(0.0).bound() or 0.0) / cost.area)
        return actions

    VirtualMachine(scheduler, workload, handle=handle).departures(jobs._replace(weights=weights))
    assert len(ratios) > 5
    assert 0.0 < max(ratios) <= 1.0 + 1e-6
    if policy == "wham":
        assert ratios[-1] > 0.7


def test_many_weights():
    """More weights than are told apart make the bound lower, and leave it one."""
    _, cost, handle = watched(4)
    for j in range(100):
        handle(Registered(f"{j}", "class-2", weight=1.0 + 0.01 * j), 2.0 * j)
        handle(Confirmed(f"{j}", 4, 1), 2.0 * j)
        handle(Finished(f"{j}"), 2.0 * j + 1.0)
    assert 0.8 * cost.area < cost.account(0.0).bound() < cost.area


def test_life_before_does_not_count():
    """A job that is counted again after a restart brings neither the work nor the cost of its life before."""
    _, cost, handle = watched(4)
    handle(Registered("a", "class-2", cores=4, age=100.0, work_done=50.0), 0.0)
    handle(Finished("a"), 2.0)
    assert cost.area == pytest.approx(2.0 * 2.0)
    assert cost.account(0.0).bound() == pytest.approx(cost.area, rel=1e-6)


@pytest.mark.parametrize("exponent", [0.1, 0.95])
def test_a_bound_though_beliefs_are_wrong_and_change(exponent):
    """Jobs whose true speedup is another, from which the scheduler learns: the bound stays below the cost."""
    workload = paper_workload().at(8, 0.3)
    true = Workload("true", tuple(replace(c, speedup=Power(exponent)) for c in workload.classes))
    jobs = Chunk(*(part[:30] for part in Drawn(7).stream(workload).take()[:3]))
    scheduler = Scheduler(workload, 8, "wham")
    cost = CostSoFar(scheduler)
    ratios, inner = [], cost.watching(scheduler.handle)

    def handle(event, now):
        actions = inner(event, now)
        if isinstance(event, Finished):
            ratios.append(cost.account(now).bound() / cost.area)
        return actions

    VirtualMachine(scheduler, true, handle=handle, report=0.01, unit=0.002).departures(jobs)
    assert scheduler.beliefs.learner(0) is not None
    assert len(ratios) == 30
    assert max(ratios) <= 1.0 + 1e-6
