"""WHAM with hysteresis: WHAM where moves are free, still where they cost too much, legal in between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import malleable
from malleable.contracts import Policy
from malleable.engine.machines import machine
from malleable.model import Workload
from malleable.model.jobs import Jobs
from malleable.simulation import program
from support import random_jobs, situations
from support import strategies as gen
from support.examples import examples

KINDS = ("power", "amdahl", "usl", "rooftop", "linear_power")
WIDTHS = st.one_of(
    st.sampled_from(["any", "whole", "powers-of-two"]),
    st.sets(st.integers(1, 6), min_size=1, max_size=3).map(sorted),
)


def with_keys(workload, keys):
    """The same workload with more keys for each class."""
    document = workload.to_dict()
    for row, own in zip(document["classes"], keys, strict=True):
        row.update(own)
    return Workload.from_dict(document)


def holding(jobs, workload, held):
    """The same jobs of another workload, with cores that they hold."""
    return Jobs.of(workload, jobs.class_index, jobs.remaining, age=jobs.age, held=held)


@st.composite
def machines(draw, *, free):
    """Jobs that may run anywhere or on some widths, cores, and what a resize costs."""
    jobs, cores = draw(situations.situations(*KINDS, weights=False, max_jobs=8))
    cores = max(float(round(cores)), 6.0)
    keys = []
    for _ in jobs.workload.classes:
        own = {"widths": draw(WIDTHS)}
        if not free:
            own["resize"] = {"pause": draw(gen.numbers(0.001, 5.0)), "work": draw(gen.numbers(0.001, 1.0))}
        keys.append(own)
    workload = with_keys(jobs.workload, keys)
    held, left = np.zeros(len(jobs)), cores
    for j, i in enumerate(jobs.class_index):
        allowed = workload.job_types[i].widths_on(cores)
        k = draw(st.floats(1.0, 4.0) if allowed is None else st.sampled_from(allowed.tolist()))
        if draw(st.booleans()) and k <= left:
            held[j] = k
            left -= k
    return holding(jobs, workload, held), cores


@settings(max_examples=examples(16))
@given(machines(free=True), st.booleans())
def test_wham_where_moves_are_free(situation, integer):
    """The very same cores and price as WHAM, whatever the widths and whatever jobs hold."""
    jobs, cores = situation
    steady, wham = (
        malleable.allocate(jobs.workload, jobs, cores, name, integer=integer)
        for name in ("wham-steady", "wham")
    )
    assert np.array_equal(steady.cores, wham.cores)
    assert steady.price == wham.price


@pytest.mark.parametrize("widths", ["any", "whole", "powers-of-two"])
def test_departures_where_moves_are_free(widths):
    """Every job leaves at the very same time as under WHAM."""
    for seed in range(4):
        one = random_jobs.instance(seed, 60, most_cores=16)
        workload = with_keys(one.workload, [{"widths": widths}] * len(one.workload.classes))
        left = []
        for name in ("wham-steady", "wham"):
            made = program(Policy.of(name), workload, one.cores)
            runner = machine(workload, one.cores, made, interpreted=True, log=60)
            runner.feed(one.jobs, 0, 60, drain=True)
            left.append(runner.ends)
        assert np.array_equal(*left)


@settings(max_examples=examples(32))
@given(machines(free=False))
def test_allowed_widths_within_the_cores(situation):
    """Never more than n cores in all, and every job served has a width that it may have."""
    jobs, cores = situation
    out = Policy.of("wham-steady").allocate(jobs, cores).cores
    assert out.sum() <= cores + 1e-9
    assert np.all((out == 0.0) | (out >= 1.0))
    for k, i in zip(out, jobs.class_index, strict=True):
        allowed = jobs.workload.job_types[i].widths_on(cores)
        assert k == 0.0 or allowed is None or k in allowed
    assert len(jobs) == 0 or out.any()


def test_newcomers_wait_from_the_start_or_not_at_all():
    """One that was given a core while others moved is not sent back when the market is cleared again.

    It was, and its core was given away a second time.
    """
    rows = [
        gen.job_class(name, 1.0, 1.0, {"kind": "power", "exponent": 0.5}, cost)
        | {"resize": {"pause": 1.0, "work": 1.0}}
        for name, cost in (("a", 1.0), ("b", 7.4))
    ]
    jobs = Jobs.of(
        Workload.from_dict({"classes": rows}), ["a", "a", "a", "a", "b"], [0.13, 0.18, 0.24, 0.33, 0.46],
        age=[0.0, 1.0, 2.0, 3.0, 4.0], held=[0.0, 0.0, 2.0, 1.5, 0.0],
    )  # fmt: skip
    out = Policy.of("wham-steady").allocate(jobs, 6.0).cores
    assert out.tolist() == [1.0, 1.0, 1.0, 1.5, 1.0]


@settings(max_examples=examples(16))
@given(machines(free=False))
def test_no_move_that_costs_for_ever(situation):
    """Jobs that all run, with room for all, and would stand still for 1e9 after a move stay."""
    jobs, cores = situation
    narrow = all(float(one.speedup.most_efficient) == 1.0 for one in jobs.workload.job_types)
    assume(narrow and len(jobs) <= cores and all(one.widths.least == 1 for one in jobs.workload.job_types))
    pause = [{"resize": {"pause": 1e9}} for _ in jobs.workload.classes]
    workload = with_keys(jobs.workload, pause)
    runs = np.flatnonzero(jobs.held > 0.0)
    if len(runs):
        present = replace(jobs, workload=workload).only(runs)
        assert np.array_equal(Policy.of("wham-steady").allocate(present, cores).cores, present.held)


@pytest.mark.parametrize("cores", range(6, 13))
@pytest.mark.parametrize("widths", ["any", "whole", [1, 2, 3, 4]])
def test_no_core_waits_for_a_job_that_it_does_not_suffice_for(widths, cores):
    """Where one job's next width is too wide for what is left, newcomers get what WHAM gives them."""
    rows = [
        gen.job_class(name, 0.1, 1.0, {"kind": "power", "exponent": 0.5}, 1.0)
        | {"widths": own, "resize": {"pause": 0.1}}
        for name, own in (("a", [1, 8]), ("b", widths))
    ]
    workload = Workload.from_dict({"classes": rows})
    jobs = Jobs.of(workload, ["a", "b"], [1.0, 1.0])
    steady, wham = (malleable.allocate(workload, jobs, cores, name).cores for name in ("wham-steady", "wham"))
    np.testing.assert_allclose(steady, wham, rtol=1e-9)


def test_equal_jobs_take_turns():
    """Of equal newcomers that want one step more than there is, the earliest have it."""
    workload = with_keys(
        gen.one_class({"kind": "power", "exponent": 0.5}), [{"widths": [1, 2], "resize": {"pause": 0.1}}]
    )
    jobs = Jobs.of(workload, [0, 0, 0], [1.0, 1.0, 1.0], age=[1.0, 3.0, 2.0])
    assert malleable.allocate(workload, jobs, 5, "wham-steady").cores.tolist() == [1.0, 2.0, 2.0]


@pytest.mark.slow
def test_fewer_resizes_than_wham():
    """Where a resize costs a tenth of a job, hysteresis resizes less and costs less than WHAM."""
    workload = with_keys(
        gen.one_class({"kind": "amdahl", "sequential": 0.1}), [{"resize": {"pause": 0.1}}]
    ).at(8, 0.5)
    steady, wham = (malleable.simulate(workload, 8, name, jobs=20_000) for name in ("wham-steady", "wham"))
    assert steady.classes[0].resizes < wham.classes[0].resizes
    assert steady.cost.high < wham.cost.low
