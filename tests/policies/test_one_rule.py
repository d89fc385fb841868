"""`allocate` runs the rule that the simulator runs: interpreted for few jobs, compiled for many."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.errors import PolicyError
from malleable.model import paper_workload
from malleable.model.jobs import Jobs
from support import market_oracle, whittle_oracle
from support.examples import examples
from support.strategies import jobs_of, numbers, speedups, workloads

running = importlib.import_module("malleable.policies.base.run_rule")
MARKET = ["wham", "wham-integer", "equi", "greedy-star", "whittle", "whittle:alpha=1"] + [
    f"greedy:weight={weight}" for weight in ("1", "mu", "c", "cmu", "c/x")
]
ANY = ("power", "amdahl", "usl", "rooftop", "linear_power", "table")
SMOOTH = ("power", "amdahl", "usl")


def agree(policy, jobs, cores, *, integer=False):
    """The cores and the price of the rule are those of the vectorised procedure."""
    chosen = Policy.of(policy)
    by_hand = whittle_oracle if policy.startswith("whittle") else market_oracle
    got = chosen.allocate(jobs, cores, integer=integer)
    wanted = by_hand.allocation(chosen, jobs, cores, integer=integer)
    np.testing.assert_allclose(got.cores, wanted.cores, rtol=1e-7, atol=1e-8 * cores)
    assert (got.price is None) == (wanted.price is None), (got, wanted)
    # A second core that helps by rounding alone has a price of about 1e-16.
    assert got.price is None or got.price == pytest.approx(wanted.price, rel=1e-5, abs=1e-13)


def tell_prices(found):
    """Whether widths tell prices apart: not where all that helps is a thousandth of a core."""
    return all(one.peak == 1.0 or one.peak > 1.001 for one in found)


@st.composite
def situations(draw, *kinds, weights):
    """A few jobs and a number of cores: fewer, as many or more."""
    workload = draw(workloads(*kinds, max_classes=3))
    assume(tell_prices(workload.speedups))
    jobs = draw(jobs_of(workload, max_jobs=10, weights=weights))
    cores = draw(st.one_of(st.integers(1, 30), numbers(1.0, 100.0), st.just(max(len(jobs), 1))))
    return jobs, float(cores)


@pytest.mark.parametrize("policy", MARKET)
@pytest.mark.parametrize("weights", [False, True], ids=["class weights", "own weights"])
@settings(max_examples=examples(5))
@given(data=st.data())
def test_cores_and_price(policy, weights, data):
    """Any speedups, weights and number of cores, whole numbers of jobs and cores that just fit included."""
    jobs, cores = data.draw(situations(*ANY, weights=weights))
    if len(jobs):
        agree(policy, jobs, cores)


@pytest.mark.parametrize("policy", MARKET)
@settings(max_examples=examples(5))
@given(data=st.data())
def test_whole_cores(policy, data):
    """The same on whole cores."""
    jobs, cores = data.draw(situations(*SMOOTH, weights=True))
    if len(jobs):
        agree(policy, jobs, cores, integer=True)


@pytest.mark.parametrize("policy", MARKET)
@settings(max_examples=examples(4))
@given(own=st.lists(speedups(*SMOOTH), min_size=1, max_size=6, unique_by=repr), cores=st.integers(1, 20))
def test_own_speedups(policy, own, cores):
    """Jobs that bring their own speedups are classes of their own."""
    assume(tell_prices(own))
    size = len(own)
    remaining, weight = 1.0 + np.arange(size), 1.0 + np.arange(size) % 3
    agree(policy, Jobs.of(paper_workload(), [0] * size, remaining, weight=weight, speedups=own), cores)


@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
@pytest.mark.parametrize("policy", ["wham", "wham-integer", "greedy:weight=c"])
def test_weights_in_any_unit(policy, scale):
    """Jobs may bring weights far from the costs of their classes: the same cores, the price in their unit."""
    workload, costs = paper_workload(), np.array([1.0, 2.0, 3.0, 1.5])
    plain, scaled = (
        Policy.of(policy).allocate(
            Jobs.of(workload, [0, 1, 2, 1], [1.0, 2.0, 3.0, 4.0], weight=costs * by), 16
        )
        for by in (1.0, scale)
    )
    np.testing.assert_allclose(scaled.cores, plain.cores, rtol=1e-9)
    assert scaled.price / scale == pytest.approx(plain.price, rel=1e-9)


def some_jobs(size, seed=0):
    rng = np.random.default_rng(seed)
    return Jobs.of(
        paper_workload(), rng.integers(0, 3, size), rng.exponential(1.0, size), age=rng.random(size)
    )


@pytest.mark.parametrize("policy", ["wham", "greedy:weight=c", "wham-discounted", "whittle", "equi"])
def test_no_memory_of_earlier_calls(policy):
    """The answer to a question does not depend on what was asked before, to the bit."""
    chosen, jobs = Policy.of(policy), some_jobs(12)
    first = chosen.allocate(jobs, 64)
    chosen.allocate(some_jobs(3, 1), 64)
    chosen.allocate(some_jobs(40, 2), 64)
    again = chosen.allocate(jobs, 64)
    assert again.cores.tolist() == first.cores.tolist()
    assert again.price == first.price


@pytest.mark.parametrize("cores", [64, 1000])
def test_compiled_for_many(cores, monkeypatch):
    """Machine code is used beyond the number of jobs that pays for it, with the same numbers to the bit."""
    jobs, wham = some_jobs(300), Policy.of("wham")
    monkeypatch.setattr(running, "_machine_code", {})
    monkeypatch.setattr(running, "LOADING", np.inf)
    interpreted = wham.allocate(jobs, cores)
    assert not running._machine_code
    monkeypatch.setattr(running, "LOADING", 0.0)
    compiled = wham.allocate(jobs, cores)
    assert len(running._machine_code) == 1
    assert compiled.cores.tolist() == interpreted.cores.tolist()
    assert compiled.price == interpreted.price


def test_few_jobs_do_not_load_the_compiler():
    """A process that asks about a few jobs, however often, never imports numba."""
    code = """
import sys
import malleable
rows = [{"id": i, "class": "2", "remaining": 1.0 + i} for i in range(20)]
for policy in ("wham", "wham-integer", "greedy", "greedy-star", "equi", "whittle", "wham-discounted", "srpt"):
    for cores in (8, 64):
        malleable.allocate("paper", rows, cores, policy)
sys.exit("numba" in sys.modules)
"""
    code = code.replace('"2"', repr(paper_workload().class_names[0]))
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_users_rules_run_as_they_are(monkeypatch):
    """A user's function is never compiled by `allocate`, and its proposal is checked there."""
    monkeypatch.setattr(running, "LOADING", 0.0)
    monkeypatch.setattr(running, "_machine_code", {})
    jobs = some_jobs(running.FEW + 1)
    with pytest.raises(PolicyError, match="more than 4 cores"):
        Policy.of(lambda rows, cores: np.full(len(rows), cores)).allocate(jobs, 4)
    assert not running._machine_code
