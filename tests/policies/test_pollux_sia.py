"""Pollux and Sia against the best of all divisions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.engine.compiling import JOB_RULE, compiled
from malleable.engine.rule_interface import AGE, HELD
from malleable.model import Workload
from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows
from malleable.policies.base.asking import allocation
from malleable.policies.pollux import Pollux, fill_by_price
from malleable.policies.sia import Sia
from support import strategies as gen
from support.examples import examples
from support.rivals import PAPER, cores_of, random_jobs, speedups_of


def factor(age, restarts, delta):
    return max(age - restarts * delta, 0.0) / (age + delta)


def pollux_goal(speedups, widths, held, age, delta, n):
    fair = math.ceil(n / len(speedups))
    total = 0.0
    for s, k, before, t in zip(speedups, widths, held, age, strict=True):
        relative = float(s(k)) / float(s(fair))
        if before > 0 and k != before:
            relative *= factor(t, 0, delta)
        total += 1.0 / (relative + 1e-3)
    return (total / len(speedups)) ** -1.0


POLLUX = st.tuples(
    gen.workloads("power", "amdahl", "rooftop", "usl", "table", max_classes=3).flatmap(
        lambda workload: gen.jobs_of(workload, max_jobs=4, min_jobs=1)
    ),
    st.integers(1, 7),
    st.lists(st.integers(0, 4).map(float), min_size=4, max_size=4),
    gen.numbers(0.01, 3.0),
)


def with_held(jobs, held):
    return Jobs.of(jobs.workload, jobs.class_index, jobs.remaining, age=jobs.age, held=held[: len(jobs)])


@settings(max_examples=examples(32))
@given(POLLUX)
def test_pollux(instance):
    """Pollux finds the best of all whole allocations, restarts counted."""
    jobs, n, held, delta = instance
    jobs = with_held(jobs, held)
    speedups = speedups_of(jobs)
    out = cores_of(Pollux(period=1.0, restart=delta), jobs, n)
    best = max(
        pollux_goal(speedups, widths, jobs.held, jobs.age, delta, n)
        for widths in itertools.product(range(n + 1), repeat=len(jobs))
        if sum(widths) <= n
    )
    assert pollux_goal(speedups, out, jobs.held, jobs.age, delta, n) == pytest.approx(best, rel=1e-12)


def test_pollux_by_price_is_close():
    """Where the table would be too large, a price finds nearly the same: within 1 % at 64 cores."""
    for seed in range(20):
        jobs = random_jobs(seed, 15, held=8)
        policy, out = Pollux(), np.zeros(15)
        rows = job_rows(jobs, jobs.class_index)
        fill_by_price(rows, 64, policy.prepare(PAPER, 64.0), out)
        assert out.sum() <= 64
        delta = policy.restarts(PAPER, 64)[0]
        speedups = [PAPER.speedups[i] for i in jobs.class_index[jobs.order]]
        goals = [
            pollux_goal(speedups, widths, rows[:, HELD], rows[:, AGE], delta, 64)
            for widths in (out, cores_of(policy, jobs, 64)[jobs.order])
        ]
        assert goals[1] * 0.99 <= goals[0] <= goals[1] * (1.0 + 1e-12)


def test_pollux_keeps_rather_than_restarts():
    """A young running job keeps its width where a job without cores would be given another."""
    jobs = Jobs.of(PAPER, [1, 1], [1.0, 1.0], age=[0.1, 0.05], held=[3.0, 0.0])
    assert cores_of("pollux:restart=1", jobs, 8).tolist() == [3.0, 5.0]
    assert cores_of("pollux:restart=0", jobs, 8).tolist() == [4.0, 4.0]


def sia_cost(speedups, widths, held, age, delta):
    total = 0
    for s, k, before, t in zip(speedups, widths, held, age, strict=True):
        if k == 0:
            total += 110
            continue
        goodput = float(s(k)) * (factor(t, 0, delta) if before > 0 and k != before else 1.0)
        total += math.floor(100 * goodput**-0.5 + 0.5) if goodput > 0 else 10**9
    return total


@settings(max_examples=examples(32))
@given(POLLUX)
def test_sia(instance):
    """Sia finds the cheapest of all choices of widths 0, 1, 2, 4, …, in whole hundredths."""
    jobs, n, held, delta = instance
    jobs = with_held(jobs, held)
    speedups = speedups_of(jobs)
    out = cores_of(Sia(period=1.0, restart=delta), jobs, n)
    assert set(out.tolist()) <= {0.0, 1.0, 2.0, 4.0}
    best = min(
        sia_cost(speedups, widths, jobs.held, jobs.age, delta)
        for widths in itertools.product((0, 1, 2, 4), repeat=len(jobs))
        if sum(widths) <= n
    )
    assert sia_cost(speedups, out, jobs.held, jobs.age, delta) == best


@pytest.mark.parametrize(
    ("widths", "choices"),
    [
        ("any", {1, 2, 4, 8}),
        ("whole", {1, 2, 4, 8}),
        ([3], {3}),
        ([2, 3, 6], {2, 6}),
        ({"min": 3, "step": 2}, {3, 7}),
    ],
)
def test_sia_chooses_among_allowed_widths(widths, choices):
    """Sia takes the narrowest allowed width, the next at least twice as wide, and so on, and no other."""
    document = PAPER.to_dict()
    for row in document["classes"]:
        row["widths"] = widths
    workload, seen = Workload.from_dict(document), set()
    for count in range(1, 9):
        jobs = Jobs.of(workload, np.zeros(count, dtype=int), np.ones(count))
        for n in range(min(choices), 9):
            out = allocation(Sia(period=1.0), jobs, float(n), 8.0).cores
            assert out.sum() <= n
            seen |= set(out.tolist())
    assert seen - {0.0} == choices


@pytest.mark.parametrize("name", ["pollux", pytest.param("sia", marks=pytest.mark.slow)])
def test_large_instances_go_by_price(name):
    """Many jobs on very many cores take no table, use nearly all cores, and stay within them."""
    policy = Policy.of(name)
    jobs = random_jobs(1, 3000)
    out = np.zeros(3000)
    rows = job_rows(jobs, jobs.class_index)
    compiled(policy.rule, JOB_RULE)(rows, 12000.0, policy.prepare(PAPER, 12000.0), out)
    assert 11900 <= out.sum() <= 12000


def test_timing():
    """Periods are in the workload's own time unless given, and none for the other rules."""
    mean = PAPER.total_load / PAPER.total_rate
    assert Policy.of("pollux").program(PAPER, 8).period == pytest.approx(0.01 * mean)
    assert Policy.of("sia:period=60,restart=30").program(PAPER, 8).period == 60.0
    assert Policy.of("hell").program(PAPER, 8).period == 0.0


def test_restarts_are_those_of_the_classes():
    """A policy reckons with the pause that a class has after a resize, unless it is told another."""
    document = PAPER.to_dict()
    document["classes"][1]["resize"] = {"pause": 0.25}
    paused = Workload.from_dict(document)
    assert Policy.of("pollux").restarts(PAPER, 8) == [0.0, 0.0, 0.0]
    assert Policy.of("pollux").restarts(paused, 8) == [0.0, 0.25, 0.0]
    assert Policy.of("sia:restart=2").restarts(paused, 8) == [2.0, 2.0, 2.0]
