"""How many cores there are, over time: schedules and failing nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import malleable
from malleable.capacities.failures import BATCH, Failures
from malleable.capacities.schedule import PERIODS, Schedule
from malleable.contracts import Capacity, Distribution
from malleable.errors import MalleableError, ParameterError
from malleable.model import Workload
from malleable.simulation.settings import Settings
from malleable.simulation.task import checked_task, replicated
from support import strategies as gen
from support.examples import examples

HYPEREXPONENTIAL = {"kind": "hyperexponential", "probabilities": [0.9, 0.1], "rates": [1.0, 0.05]}
LAWS = (
    (50.0, 10.0),
    ({"kind": "deterministic", "value": 30.0}, {"kind": "exponential", "mean": 3.0}),
    ({"kind": "erlang", "stages": 3, "mean": 20.0}, HYPEREXPONENTIAL),
)


def path(capacity, cores, batches, seed=0):
    """Cores at the start, and all times and numbers of the first batches; each must follow the one before."""
    source = capacity.changes(cores, seed)
    times, numbers, known = [], [], -1.0
    for _ in range(batches):
        made = source.take()
        if len(made.times):
            assert made.times[0] >= known
            assert np.all(np.diff(made.times) >= 0.0)
            # All that happens up to `known_until` is said, and nothing beyond it.
            assert made.times[-1] <= made.known_until
        assert made.known_until >= known
        known = made.known_until
        times.append(made.times)
        numbers.append(made.cores)
    return source.cores_at_start, np.concatenate(times), np.concatenate(numbers)


def average(start, times, numbers, until):
    """The time average of a step function on [0, until]."""
    inside = times < until
    edges = np.concatenate([[0.0], times[inside], [until]])
    return float(np.diff(edges) @ np.concatenate([[start], numbers[inside]])) / until


@pytest.mark.parametrize(("up", "down"), LAWS)
def test_failures_have_their_mean(up, down):
    """Over a long time the cores there are average n·E[up]/(E[up] + E[down]), by the law of large numbers."""
    made = Failures(nodes=8, up=up, down=down)
    start, times, numbers = path(made, 16.0, 4)
    assert start == 16.0
    # Four standard errors, from the scatter of eight stretches.
    parts = [
        average(
            numbers[a - 1] if a else start,
            times[a:b] - times[a - 1],
            numbers[a:b],
            times[b - 1] - times[a - 1],
        )
        for a, b in itertools.pairwise(np.linspace(1, len(times), 9).astype(int))
    ]
    error = np.std(parts, ddof=1) / np.sqrt(8.0)
    assert average(start, times, numbers, times[-1]) == pytest.approx(made.mean_cores(16.0), abs=4.0 * error)
    assert error < 0.2


def test_failing_nodes_one_by_one():
    """Every change is one node of equal size, down or up again, between no cores and all of them."""
    made = Failures(nodes=4, up=10.0, down=20.0)
    start, times, numbers = path(made, 12.0, 3, seed=5)
    assert len(times) == 3 * BATCH
    assert set(np.abs(np.diff(np.concatenate([[start], numbers])))) == {3.0}
    assert set(numbers) == {0.0, 3.0, 6.0, 9.0, 12.0}


def test_a_node_is_up_and_down_for_times_of_its_laws():
    """With one node, times up and times down alternate; here both are known."""
    two = {"kind": "deterministic", "value": 2.0}
    start, times, numbers = path(
        Failures(nodes=1, up=two, down={"kind": "deterministic", "value": 0.5}), 4.0, 1
    )
    np.testing.assert_allclose(times[:5], [2.0, 2.5, 4.5, 5.0, 7.0])
    assert numbers[:4].tolist() == [0.0, 4.0, 0.0, 4.0]
    assert start == 4.0


def test_seeds():
    """The same seed gives the same failures, another one others; each replication has its own."""
    made = Failures(nodes=4, up=10.0, down=2.0)
    first, again, other = (path(made, 8.0, 1, seed)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.any(first == other)
    task = checked_task(
        gen.one_class({"kind": "power", "exponent": 0.5}).at(8, 0.3),
        8,
        "wham",
        None,
        Settings(jobs=100, replications=3, capacity=made),
    )
    seeds = [one.source.seed for one in replicated(task)]
    assert len({path(made, 8.0, 1, seed)[1][0] for seed in seeds}) == 3


@st.composite
def schedules(draw, *, periodic):
    """Schedules of whole cores, with or without a period."""
    times = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=5)))
    cores = draw(st.lists(st.integers(0, 9), min_size=len(times), max_size=len(times)))
    cores[-1] = max(cores[-1], 1)
    return Schedule(times, cores, draw(st.integers(31, 50)) if periodic else None)


def cores_at(schedule, n, t):
    """The cores there are at time t, read off the schedule."""
    if schedule.period is not None:
        t %= schedule.period
    since = [k for time, k in zip(schedule.times, schedule.cores, strict=True) if time <= t]
    if since:
        return since[-1]
    return n if schedule.period is None else schedule.cores[-1]


@settings(max_examples=examples(24))
@given(schedules(periodic=True), st.integers(0, 2 * PERIODS * 50))
def test_a_periodic_schedule_repeats(schedule, tick):
    """At any time there are as many cores as the schedule says of that time within its period."""
    start, times, numbers = path(schedule, 9.0, 3)
    t = min(tick + 0.5, 2.9 * PERIODS * schedule.period)
    before = np.flatnonzero(times <= t)
    assert (numbers[before[-1]] if len(before) else start) == cores_at(schedule, 9, t)
    assert start == cores_at(schedule, 9, 0.0)
    whole = average(start, times, numbers, PERIODS * schedule.period)
    assert whole == pytest.approx(schedule.mean_cores(9.0), rel=1e-9)


@settings(max_examples=examples(16))
@given(schedules(periodic=False))
def test_a_schedule_without_a_period_ends(schedule):
    """All changes come at once, and are known for ever; the mean is what holds for any length, the most."""
    start, times, numbers = path(schedule, 9.0, 3)
    assert times.tolist() == list(schedule.times)
    assert numbers.tolist() == list(schedule.cores)
    assert schedule.changes(9.0, 0).take().known_until == np.inf
    assert schedule.mean_cores(9.0) == max(start, *numbers)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("schedule:times=0/1,cores=4", "there are 2 times and 1 numbers of cores"),
        ("schedule:times=1/1,cores=4/2", "times[1]: 1 follows 1"),
        ("schedule:times=0/9,cores=4/2,period=9", "times: the time 9 is beyond the period"),
        ("schedule:times=0/1,cores=4/0", "cores: the schedule leaves no cores"),
        ("schedule:times=0/1,cores=0/0,period=3", "cores: the schedule leaves no cores"),
        ("schedule:times=0,cores=1.5", "cores"),
        ("schedule:times=0,cores=-1", "cores"),
        ("schedule:times=-1,cores=1", "times"),
        ("failures:nodes=0,up=1,down=1", "nodes"),
        ("failures:nodes=2,up=-1,down=1", "up"),
        ("failures:nodes=2,up=nan,down=1", "up"),
        ("failures:nodes=2,up=1", "down"),
        ("failures:nodes=2,up=1,down=1,left=3", "left"),
        ("shedule:times=0,cores=1", "schedule"),
    ],
)
def test_capacities_that_make_no_sense(text, problem):
    """Each is refused with a sentence that names the key."""
    with pytest.raises(MalleableError) as caught:
        Capacity.of(text)
    assert problem in caught.value.sentence + caught.value.hint


class Endless(Distribution):
    """A user's law without a mean."""

    def moment(self, order):
        return np.inf if order else 1.0

    def sample(self, rng, size):
        return rng.pareto(0.9, size) + 1.0

    def scaled(self, factor):
        raise NotImplementedError


def test_means_that_are_infinite():
    """A node that is up for an infinite mean time has no long-run average, whoever wrote the law."""
    with pytest.raises(ParameterError, match="up: the mean time must be positive and finite"):
        Failures(nodes=2, up=Endless(), down=1.0)
    with pytest.raises(ParameterError, match=r"up\.law: pareto has an infinite mean"):
        Failures(nodes=2, up=stats.pareto(0.9), down=1.0)


def test_machines_that_do_not_fit():
    """A schedule above n, and nodes of unequal size, are refused with what to do."""
    with pytest.raises(ParameterError, match="the schedule has 9 cores, the machine 8") as caught:
        Schedule([0], [9]).check_on(8.0)
    assert caught.value.hint == "give the machine the most cores that it ever has"
    with pytest.raises(ParameterError, match="8 cores cannot be divided evenly among 3 nodes") as caught:
        Failures(nodes=3, up=1.0, down=1.0).check_on(8.0)
    assert caught.value.hint == "give another number of nodes"
    Schedule([0], [8]).check_on(8.0)
    Failures(nodes=4, up=1.0, down=1.0).check_on(8.0)


def test_capacities_as_documents():
    """A capacity is read from a table, text or an object, and written as a table."""
    made = Failures(nodes=4, up=10.0, down=2.0)
    assert Capacity.of("failures:nodes=4,up=10,down=2") == made
    assert Capacity.of({"kind": "failures", "nodes": 4, "up": 10, "down": 2}) == made
    assert Capacity.of(made) is made
    assert Capacity.of(made.to_dict()) == made
    assert Capacity.of("schedule:times=3,cores=4") == Schedule([3], [4])
    once = Schedule([0, 2], [4, 2], 5)
    assert Capacity.of(once.to_dict()) == once == Capacity.of("schedule:times=0/2,cores=4/2,period=5")


def test_jobs_that_never_fit_are_refused():
    """A rigid job wider than the most cores that a schedule ever has is an error, for bound and simulate."""
    document = malleable.paper_workload(16, 0.25).to_dict()
    document["classes"][0] |= {"shape": "rigid", "width": 8}
    workload = Workload.from_dict(document)
    for ask in (malleable.bound, malleable.simulate):
        with pytest.raises(ParameterError, match="need at least 8 cores, and there are 4"):
            ask(workload, 16, capacity="schedule:times=0/5,cores=4/2,period=10")


def test_effective_load_is_of_the_cores_there_are():
    """Without the noise of arrivals, the effective load is the utilisation, where cores come and go too."""
    capacity = "schedule:times=0/50,cores=8/4,period=90"
    found = malleable.simulate("paper", 8, "equi", load=0.5, jobs=50_000, capacity=capacity)
    assert found.effective_load == pytest.approx(found.utilisation, rel=0.03)
