"""The machine of equal sharing beside the real one is exact as far as it goes, and goes as far as it can."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.engine.run import departures
from malleable.live.broker.equal_sharing import EFFORT, EqualSharing, SharingMachine, equal_shares
from malleable.live.core.events import (
    Cancelled,
    Confirmed,
    CoresChanged,
    Finished,
    Progressed,
    Registered,
    WeightChanged,
    Withdrawn,
)
from malleable.live.core.scheduler import Scheduler
from malleable.live.core.virtual import VirtualMachine
from malleable.model import Workload, paper_workload
from malleable.sources import Chunk


def watched(cores=4, policy="wham", workload=None):
    scheduler = Scheduler(workload or paper_workload(), cores, policy)
    sharing = EqualSharing(scheduler)
    return scheduler, sharing, sharing.watching(scheduler.handle)


def to_the_end(sharing):
    """Look until the virtual clock does not move any more."""
    moment, before = sharing.moment(), -1.0
    while before < sharing.comparison.until:
        before = sharing.comparison.until
        sharing.advance(moment)
    return sharing.comparison


def drawn(rng, count, span):
    return Chunk(
        np.sort(rng.uniform(0.0, span, count)), rng.integers(0, 3, count), rng.exponential(0.5, count)
    )


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_simulator_where_weights_are_equal(seed):
    """Once all jobs are done, the cost of equal sharing is that of EQUI in the simulator on the same jobs."""
    paper, jobs = paper_workload(), drawn(np.random.default_rng(seed), 40, 6.0)
    workload = Workload("equal", tuple(replace(c, holding_cost=1.0) for c in paper.classes))
    scheduler, sharing, handle = watched(8, "wham", workload)
    ends = VirtualMachine(scheduler, workload, handle=handle).departures(jobs)
    found = to_the_end(sharing)
    policy = Policy.of("equi")
    alone = departures(workload, 8, policy.program(workload, 8), jobs)
    assert found.until == pytest.approx(ends.max())
    late = np.minimum(alone, found.until)
    assert found.shared == pytest.approx(float((late - jobs.times).sum()), rel=1e-9)
    assert found.cost == pytest.approx(float((ends - jobs.times).sum()), rel=1e-9)
    assert found.jobs == 40


def euler(jobs, cores, speeds, step=1e-4):
    """The area of weighted equal sharing, by small steps: (arrival, class, size, weight) of each job."""
    left = [size for _, _, size, _ in jobs]
    now, area = 0.0, 0.0
    while any(x > 0.0 for x in left):
        here = [j for j, job in enumerate(jobs) if job[0] <= now and left[j] > 0.0]
        total = sum(jobs[j][3] for j in here)
        area += total * step
        for j in here:
            k = cores * jobs[j][3] / total
            left[j] -= step * (k if k <= 1.0 else float(speeds[jobs[j][1]](k)))
        now += step
    return area


def test_weights_and_parts_of_cores():
    """Unequal weights, and shares below one core: the area is that of a naive integration in small steps."""
    speeds = paper_workload().speedups
    jobs = [(0.0, 0, 1.0, 5.0), (0.1, 1, 2.0, 1.0), (0.2, 2, 0.7, 0.5), (0.9, 1, 0.3, 2.0)]
    _, sharing, handle = watched(2)
    for j, (at, i, size, weight) in enumerate(jobs):
        handle(Registered(str(j), f"class-{i + 1}", weight, work_done=0.0, size=size), at)
    for j in range(len(jobs)):  # ended long ago on the real machine, having done just their sizes
        sharing._scheduler.table.columns[11:13, sharing._scheduler.table.row_of[str(j)]] = [jobs[j][2], 0.0]
        handle(Finished(str(j)), 50.0)
    assert to_the_end(sharing).shared == pytest.approx(euler(jobs, 2, speeds), rel=1e-3)


def test_stops_where_a_job_may_be_larger_than_what_is_known():
    """A job that has done nothing stops the virtual clock at its arrival; its progress lets it go on."""
    scheduler, sharing, handle = watched(1, "fcfs")
    handle(Registered("a", "class-1"), 1.0)
    handle(Confirmed("a", 1, 1), 1.0)
    handle(Registered("b", "class-1"), 3.0)
    scheduler.handle(CoresChanged(1), 9.0)  # time passes: a works, b waits
    stuck = to_the_end(sharing)
    assert stuck.until == pytest.approx(3.0)
    assert (stuck.cost, stuck.shared) == (pytest.approx(2.0), pytest.approx(2.0))
    handle(Finished("a"), 9.0)
    handle(Confirmed("b", 1, 1), 9.0)
    handle(Finished("b"), 11.0)
    found = to_the_end(sharing)
    assert found.until == pytest.approx(11.0)
    assert found.cost == pytest.approx(8.0 + 8.0)
    # Each has half a core from 3 on: b ends at 7 after two units of work, a at 11.
    assert found.shared == pytest.approx(10.0 + 4.0)


def test_changes_count_on_both_machines():
    """A new weight, fewer cores, a cancelled job and one that withdraws are the same on both machines."""
    _, sharing, handle = watched(4, "equi")
    handle(Registered("a", "class-1", 1.0), 0.0)
    handle(Confirmed("a", 4, 1), 0.0)
    handle(WeightChanged("a", 3.0), 1.0)
    handle(CoresChanged(2), 2.0)
    handle(Confirmed("a", 2, 2), 2.0)
    handle(Registered("idle", "class-1"), 2.0)
    handle(Withdrawn("idle"), 2.0)
    handle(Cancelled("a"), 4.0)
    found = to_the_end(sharing)
    assert found.cost == pytest.approx(1.0 + 3.0 * 3.0)
    assert found.shared == pytest.approx(found.cost)
    assert found.jobs == 1


def test_a_job_beyond_the_limit_starts_the_comparison_anew(monkeypatch):
    """With too many jobs to follow, nothing is compared until the machine is empty; then it goes on."""
    monkeypatch.setattr("malleable.live.broker.equal_sharing.MOST_JOBS", 3)
    _, sharing, handle = watched(1, "fcfs")
    for j in range(5):
        handle(Registered(str(j), "class-1"), 0.0)
    before = to_the_end(sharing)
    for j in range(5):
        handle(Finished(str(j)), 1.0 + j)
    handle(Registered("later", "class-1"), 10.0)
    handle(Confirmed("later", 1, 1), 10.0)
    handle(Finished("later"), 12.0)
    found = to_the_end(sharing)
    assert found.until == pytest.approx(12.0)
    assert found.shared - before.shared == pytest.approx(2.0)
    assert found.cost - before.cost == pytest.approx(2.0)


@given(
    st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.5, 20.0)), min_size=1, max_size=8),
    st.floats(0.1, 50.0),
)
def test_shares_are_in_proportion_and_within_limits(jobs, cores):
    """All cores are given out unless all jobs have their limits; below these, cores per weight are equal."""
    weights, most = np.array(jobs).T
    shares = equal_shares(weights, most, cores)
    assert (shares <= most * (1.0 + 1e-12)).all()
    assert shares.sum() == pytest.approx(min(cores, most.sum()))
    below = shares < most * (1.0 - 1e-9)
    if below.any():
        per_weight = shares[below] / weights[below]
        assert np.allclose(per_weight, per_weight[0])
        assert (shares[~below] / weights[~below] <= per_weight[0] * (1.0 + 1e-9)).all()


def test_a_class_that_was_forgotten():
    """A job on the virtual machine works as its class did, though another has taken the place of that."""
    paper = paper_workload()
    scheduler, sharing, handle = watched(8, "equi", paper)
    handle(Registered("a", "class-3"), 0.0)
    handle(Finished("a"), 1.0)
    scheduler.jobs.replace_class(2, replace(paper.classes[0], name="another"))
    sharing._apply(sharing._coming.popleft())
    speeds = sharing._machine.speeds(scheduler.beliefs.workload)
    assert speeds == pytest.approx([float(paper.speedups[2](8.0))])


def test_no_jobs_cost_nothing():
    """An empty machine only lets time pass."""
    machine = SharingMachine(4)
    assert machine.run(5.0, np.zeros(0), paper_workload()) == []
    assert (machine.clock, machine.area) == (5.0, 0.0)
    assert EFFORT > 0


def test_the_document_says_how_far_it_goes():
    """Status shows what was saved, over how many jobs and until when; nothing before the first job."""
    _, sharing, handle = watched(2)
    nothing = sharing.document(sharing.moment())
    assert (nothing["saved"], nothing["equal_sharing"], nothing["compared"]) == (None, None, 0)
    assert sharing.moment() is None  # too early to look again
    sharing._next_look = 0.0
    handle(Registered("a", "class-2"), 0.0)
    handle(Confirmed("a", 2, 1), 0.0)
    handle(Progressed("a", 1.0), 2.0)
    found = sharing.document(sharing.moment())
    assert found["compared_until"] == pytest.approx(2.0)
    assert found["saved"] == pytest.approx(0.0)
