"""No job falls far behind its weighted equal share, whatever the policy and whoever else comes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from malleable.errors import ParameterError
from malleable.live.core.events import Confirmed, Held, Progressed, Registered, Resumed
from malleable.live.core.fair_share import Guarantee
from malleable.live.core.scheduler import Scheduler
from support.equal_shares import Machine

POLICIES = ("clearing", "srpt", "wham", "fcfs", "smartfill", "greedy:weight=c/x")
PROMISED = 3.0
"""Quanta by which a job may be behind."""

sizes = st.one_of(st.floats(0.01, 0.3), st.floats(0.3, 10.0))
weights = st.sampled_from([0.05, 0.3, 1.0, 1.0, 3.0, 20.0])
gaps = st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.5, 2.0])
streams = st.lists(st.tuples(gaps, st.integers(0, 2), sizes, weights), min_size=1, max_size=25)


def arrivals(jobs):
    """Times instead of gaps."""
    now, out = 0.0, []
    for gap, index, size, weight in jobs:
        now += gap
        out.append((now, index, size, weight))
    return out


def keeps_its_promise(jobs, cores, policy, known):
    machine = Machine(cores, policy, known=known).run(arrivals(jobs))
    assert len(machine.ended) == len(jobs)
    assert machine.worst <= PROMISED


any_stream = given(streams, st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from(POLICIES), st.booleans())
quietly = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=60, deadline=None, suppress_health_check=quietly)
@any_stream
def test_every_job_keeps_up_with_half_of_its_share(jobs, cores, policy, known):
    """R ≥ F/2 − 3 quanta for every job at every moment, F being reckoned apart; and every job ends."""
    keeps_its_promise(jobs, cores, policy, known)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=quietly)
@any_stream
def test_every_job_keeps_up_with_half_of_its_share_on_many_streams(jobs, cores, policy, known):
    """The same on ten thousand streams."""
    keeps_its_promise(jobs, cores, policy, known)


def swarm(count, gap, size, weight):
    """A long light job, and behind it a stream of newcomers that keeps one core busy."""
    return [(0.0, 0, 5.0, 1.0), *((0.04 + gap * k, 0, size, weight) for k in range(count))]


def test_a_job_behind_a_stream_of_newcomers_keeps_its_share():
    """A job of 5 and 300 newcomers at load 1: never 3 quanta behind, without a guarantee more than 10.

    It cannot end early: what it is given makes newcomers queue, and its equal share shrinks as they do.
    """
    stream = swarm(300, 0.1, 0.0999, 1.0)
    assert Machine(1, "srpt", known=True).run(stream).worst <= PROMISED
    assert Machine(1, "srpt", guarantee=Guarantee(1e9, 0.1, 1e9), known=True).run(stream).worst > 10.0


@pytest.mark.slow
def test_a_program_paused_behind_4100_newcomers_ends():
    """The case of the issue: it ran .04 s, and 4,100 newcomers follow at load .9; it ends by 100."""
    stream = swarm(4100, 0.1, 0.09, 1.0)
    machine = Machine(1, "clearing", guarantee=Guarantee(quantum=0.5)).run(stream)
    assert machine.worst <= PROMISED
    assert machine.ended["0"] < 100.0


def waits(policy, guarantee):
    """The longest time that the first of two jobs is without a core; the second matters a thousand times."""
    machine = Machine(1, policy, guarantee=guarantee)
    seen = []
    tell = machine.tell

    def told(event):
        tell(event)
        if "0" in machine.jobs:
            seen.append((machine.now, machine.jobs["0"].cores))

    machine.tell = told
    machine.run([(0.0, 0, 2.0, 1.0), (0.1, 0, 200.0, 1000.0)])
    longest, since = 0.0, None
    for now, cores in seen:
        if cores:
            longest, since = max(longest, now - (now if since is None else since)), None
        elif since is None:
            since = now
    return longest


def test_no_pause_is_longer_than_the_longest():
    """A job of a thousandth of the weights gets a quantum every 10 units of time, not every 1,000."""
    assert waits("fcfs", Guarantee(quantum=0.5, longest_pause=10.0)) <= 10.6
    assert waits("clearing", Guarantee(quantum=0.5, longest_pause=10.0)) <= 10.6
    assert waits("clearing", Guarantee(quantum=0.5, longest_pause=1e9)) > 50.0


def registered(scheduler, *names, now=0.0):
    for name in names:
        carry_out(scheduler, scheduler.handle(Registered(name, "etl"), now), now)


def carry_out(scheduler, actions, now):
    """All jobs do at once what they are asked; the cores of each."""
    while actions:
        action = actions.pop(0)
        actions += scheduler.handle(Confirmed(action.job, action.cores, action.number), now)
    return {name: account.in_use for name, account in scheduler.ledger.accounts.items()}


def test_a_job_on_hold_has_no_cores_until_it_is_resumed():
    """Held, it has none, nor a share, though the machine is idle; resumed, it has all that there is."""
    scheduler = Scheduler(None, 2, "clearing", guarantee=Guarantee())
    registered(scheduler, "a")
    assert carry_out(scheduler, scheduler.handle(Held("a"), 1.0), 1.0) == {"a": 0}
    registered(scheduler, "b", now=2.0)
    scheduler.handle(Progressed("b", 1.0), 400.0)
    assert scheduler.ledger.accounts["a"].in_use == 0
    assert carry_out(scheduler, scheduler.handle(Held("b"), 400.0), 400.0) == {"a": 0, "b": 0}
    assert scheduler.wake_at is None
    assert carry_out(scheduler, scheduler.handle(Resumed("a"), 401.0), 401.0) == {"a": 2, "b": 0}
    assert scheduler.handle(Held("nobody"), 402.0) == []
    assert scheduler.refused == "there is no job 'nobody'"


@pytest.mark.parametrize("given", [{"kappa": 1.5}, {"quantum": 0.0}, {"longest_pause": -1.0}])
def test_a_guarantee_that_cannot_be_kept_is_refused(given):
    """κ below 2, and times that are not positive, are errors of one line."""
    with pytest.raises(ParameterError, match="must be"):
        Guarantee(**given)
