"""Cores by the mean worth of each job's work, over what may be left of all jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.live.core.estimates import OUTCOMES, possible_work, remaining_work
from malleable.live.core.events import Confirmed, Registered
from malleable.live.core.expected_values import divide_by_value
from malleable.live.core.learned_sizes import LearnedSizes
from malleable.live.core.scheduler import Scheduler
from malleable.model import paper_workload
from malleable.model.jobs import Jobs

WORKLOAD = paper_workload(cores=16)
sizes = st.lists(st.floats(0.01, 10.0), min_size=2, max_size=12)


def jobs_of(remaining, classes=None, weight=None):
    index = [j % 2 for j in range(len(remaining))] if classes is None else classes
    return Jobs.of(WORKLOAD, index, remaining, weight=weight)


@settings(max_examples=40, deadline=None)
@given(sizes, st.integers(4, 16), st.sampled_from([0.0, 0.05, 0.3]))
def test_known_sizes_give_what_clearing_gives(remaining, cores, price):
    """Outcomes that are all alike: the widths and the price are those of the policy itself."""
    policy, jobs = Policy.of(f"clearing:price={price}"), jobs_of(remaining)
    outcomes = np.repeat(np.array(remaining)[None, :], 3, axis=0)
    found = divide_by_value(policy, jobs, outcomes, float(cores), float(cores))
    alone = policy.allocate(jobs, float(cores), integer=True)
    assert found.cores.tolist() == alone.cores.tolist()
    assert found.price == (alone.price if alone.price is None else pytest.approx(alone.price))


@settings(max_examples=40, deadline=None)
@given(sizes, st.integers(1, 16), st.integers(0, 2**32 - 1))
def test_no_more_cores_are_given_than_there_are(remaining, cores, seed):
    """Whatever the outcomes: whole cores, none below 0, at most so many in all."""
    jobs = jobs_of(remaining)
    outcomes = np.random.default_rng(seed).exponential(1.0, (OUTCOMES, len(remaining))) * remaining
    policy = Policy.of("clearing:price=0.1")
    found = divide_by_value(policy, jobs, outcomes, float(cores), 16.0).cores
    assert (found >= 0.0).all()
    assert found.sum() <= cores
    assert (found == np.floor(found)).all()


def test_jobs_of_which_either_may_end_first_share_the_cores():
    """Two jobs alike, each the shorter one in half of the outcomes: 8 cores each. In one order: not so."""
    policy, jobs = Policy.of("clearing:price=0"), jobs_of([1.0, 1.1], classes=[0, 0])
    both = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert divide_by_value(policy, jobs, both, 16.0, 16.0).cores.tolist() == [8.0, 8.0]
    one = divide_by_value(policy, jobs, both[:1], 16.0, 16.0).cores
    assert one[0] > 9.0 > one[1]


def registered(*names, cores=4, **declared):
    scheduler = Scheduler(None, cores, "clearing")
    for name in names:
        actions = scheduler.handle(Registered(name, "etl", **declared), scheduler.now)
        while actions:
            action = actions.pop()
            told = Confirmed(action.job, action.cores, action.number)
            actions += scheduler.handle(told, scheduler.now)
    return scheduler


def outcomes_of(scheduler):
    sizes = scheduler.beliefs.sizes
    remaining_work(scheduler.table, scheduler.table.rows(), scheduler.now, sizes)  # looks at who is there
    return possible_work(scheduler.table, scheduler.table.rows(), scheduler.now, sizes)


def test_outcomes_of_a_job_stay_while_others_come():
    """Which outcomes a job stands for depends on its number alone; other jobs add columns."""
    few, more = outcomes_of(registered("a", "b")), outcomes_of(registered("a", "b", "c"))
    assert few.shape == (OUTCOMES, 2)
    np.testing.assert_array_equal(more[:, :2], few)


def test_outcomes_are_quantiles_of_what_is_believed():
    """After 400 exponential jobs the outcomes at age 0 and at age 5 are quantiles .1, .3 … .9 of the law."""
    learned = LearnedSizes([None])
    for size in np.random.default_rng(1).exponential(10.0, 400):
        learned.end(0, size, finished=True)
    chance = np.arange(0.1, 1.0, 0.2)
    for done in (0.0, 5.0):
        found = learned.possible(0, np.full(5, done), chance)
        np.testing.assert_allclose(found, -10.0 * np.log1p(-chance), rtol=0.3, atol=0.5)


@pytest.mark.parametrize("done", [0.0, 1e-9, 1.0, 1e9, 1e14])
def test_outcomes_of_an_unseen_class_have_no_scale(done):
    """Nothing known: what is left is in proportion to what was done, as of a Pareto law of index 2."""
    chance, start = np.array([0.1, 0.5, 0.9]), max(done, 2.0**-20)
    found = LearnedSizes([None]).possible(0, np.full(3, done), chance)
    np.testing.assert_allclose(found, start / np.sqrt(1.0 - chance) - done, rtol=1e-6)


def test_a_declared_size_is_one_outcome():
    """What is known has no outcomes; after jobs that broke their word some lines are the declared size."""
    scheduler = registered("a", "b", size=7.0)
    assert outcomes_of(scheduler) is None
    for _ in range(3):
        scheduler.beliefs.sizes.seen[1].compare(7.0, 70.0)
    lines = outcomes_of(scheduler)
    assert lines.shape == (OUTCOMES, 2)
    assert 0 < (lines == 7.0).sum() < lines.size
