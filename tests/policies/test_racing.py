"""Races of policies on the same jobs: who stays, who wins, and how long they take."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.model import Workload
from malleable.policies.base.asking import simulated
from malleable.policies.base.paired_trial import PairedRun, relative
from malleable.policies.base.racing import BATCHES, EVENT, EVENT_PER_JOB, FEWEST, MOST, STAGES, jobs_for, race
from malleable.sources import stream
from support import strategies as gen

ROWS = [
    gen.job_class("cheap", 1.0, 1.0, {"kind": "amdahl", "sequential": 0.05}, 0.3),
    gen.job_class("dear", 1.0, 1.0, {"kind": "amdahl", "sequential": 0.05}, 3.0),
]
MACHINE = Workload.from_dict({"classes": ROWS}).at(4, 0.6)
FIRST = 1_600


def programs(*names):
    return [simulated(Policy.of(name), MACHINE, 4.0, plain=True) for name in names]


def test_the_better_policy_wins_as_a_long_run_says():
    """The order of a race is that of costs on other and more jobs, and its differences are theirs."""
    entrants = programs("wham", "clearing", "wham-discounted", "equi")
    found = race(MACHINE, 4.0, entrants, FIRST, 1)
    run = PairedRun(MACHINE, 4.0, entrants, stream(MACHINE, 2, 4_000), sizes_known=True)
    run.extend(4_000, 16)
    true = [relative(costs, run.costs[0]) for costs in run.costs]
    assert found.order[0] == int(np.argmin([one.difference for one in true])) == 1
    for trial, other in zip(found.trials, true, strict=True):
        assert abs(trial.difference - other.difference) <= 5.0 * np.hypot(trial.error, other.error) + 1e-12


def test_who_is_behind_leaves_and_the_yardstick_stays():
    """Of five policies EQUI and GREEDY leave, one after each of two stages; the yardstick runs to the end."""
    names = ("wham", "greedy", "clearing", "smartfill", "equi", "wham-discounted")
    found = race(MACHINE, 4.0, programs(*names), FIRST, 3)
    assert {found.jobs[1], found.jobs[4]} == {FIRST, 3 * FIRST}
    assert found.jobs[0] == found.jobs[2] == found.jobs[3] == found.jobs[5] == STAGES[-1] * FIRST
    assert found.order.index(0) < found.order.index(1)


def test_a_twin_of_the_yardstick_does_not_win():
    """Differences of 0 have errors of 0, and do not make a policy the winner."""
    found = race(MACHINE, 4.0, programs("wham", "wham"), FIRST, 4)
    assert found.order[0] == 0
    assert found.trials[1] == (0.0, 0.0)


def test_a_race_has_one_answer():
    """The same question has the same answer, to the bit."""
    entrants = programs("wham", "clearing", "smartfill")
    assert race(MACHINE, 4.0, entrants, FIRST, 5) == race(MACHINE, 4.0, entrants, FIRST, 5)


@pytest.mark.parametrize(("seconds", "racing", "present"), [(1.0, 6, 3.0), (0.3, 4, 20.0), (2.0, 8, 60.0)])
def test_jobs_fit_the_time(seconds, racing, present):
    """Runs of all stages take the time asked for, at the cost of an event that is assumed, within limits."""
    first = jobs_for(seconds, racing, present)
    assert first % BATCHES == 0
    assert FEWEST - BATCHES < first <= MOST
    stays = [racing, min(racing, 4), 3]
    runs = first * sum(n * (b - a) for n, a, b in zip(stays, (0, *STAGES), STAGES, strict=False))
    if FEWEST < first < MOST - BATCHES:
        assert runs * (EVENT + EVENT_PER_JOB * present) == pytest.approx(seconds, rel=0.02)
