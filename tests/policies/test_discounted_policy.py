"""WHAM with a discounted premium: its limits, its units, and what it never does.

Its numbers are checked against a naive twin in `test_wham_discounted`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import Jobs, paper_workload
from malleable.model import Workload
from malleable.paper.experiments.e10b_discounted.discounting import WORKLOADS
from malleable.policies.wham import Wham
from malleable.policies.wham_discounted import WhamDiscounted, outlook
from malleable.theory.relaxed import bound
from support.examples import examples

FOUR = WORKLOADS["four"]
CORES = 12


def four(load=0.8):
    return Workload.from_dict(FOUR).at(CORES, load)


def some_jobs(workload, size, seed):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, len(workload.classes), size)
    sizes = rng.exponential(workload.mean_sizes[classes]) + 1e-6
    return Jobs.of(workload, classes, sizes, age=rng.permutation(size).astype(float))


@settings(max_examples=examples(24))
@given(size=st.integers(1, 40), seed=st.integers(0, 2**32 - 1), load=st.floats(0.05, 0.98))
def test_cores_are_given_out_as_the_model_allows(size, seed, load):
    """No job has part of a core or more cores than there are, and no core is left over while a job waits."""
    workload = four(load)
    cores = WhamDiscounted().allocate(some_jobs(workload, size, seed), CORES).cores
    assert np.all((cores == 0.0) | (cores >= 1.0 - 1e-9))
    assert cores.sum() <= CORES * (1.0 + 1e-9)
    assert cores.sum() == pytest.approx(CORES, rel=1e-6)


@pytest.mark.parametrize("size", [1, 3, 8, 12, 20])
def test_without_a_discount_it_is_wham(size):
    """As α tends to 0 every job gets what WHAM gives it, at a rate of the order of α."""
    workload = four()
    for seed in range(5):
        jobs = some_jobs(workload, size, seed)
        wham = Wham().allocate(jobs, CORES).cores
        assert WhamDiscounted(alpha=1e-9).allocate(jobs, CORES).cores == pytest.approx(wham, abs=1e-5)


def test_it_is_wham_while_nothing_is_short():
    """Below the long-run price there is no premium to discount."""
    workload = paper_workload(1000, 0.25)
    few = some_jobs(workload, 20, 1)
    assert WhamDiscounted().allocate(few, 1000).cores == pytest.approx(
        Wham().allocate(few, 1000).cores, rel=1e-9
    )


def test_it_starves_the_least_valuable_before_cores_run_out():
    """With fewer jobs than cores some state leaves a job of the cheapest class waiting; WHAM leaves none."""
    workload = four()
    waiting = [
        jobs.class_index[WhamDiscounted().allocate(jobs, CORES).cores == 0.0]
        for jobs in (some_jobs(workload, 9, seed) for seed in range(40))
    ]
    found = np.concatenate(waiting)
    assert len(found) > 0
    assert np.bincount(found, minlength=4).argmax() == 0


@pytest.mark.parametrize("factor", [0.01, 60.0])
def test_the_unit_of_time_does_not_matter(factor):
    """In seconds or minutes: the rate changes with the unit, the cores do not."""
    workload = four()
    slower = Workload.from_dict(
        {
            **FOUR,
            "classes": [
                {
                    **c,
                    "size": {"kind": "exponential", "mean": c["size"]["mean"] * factor},
                    "arrivals": {"kind": "poisson", "rate": 1.0 / factor},
                }
                for c in FOUR["classes"]
            ],
        }
    ).at(CORES, 0.8)
    one, other = outlook(workload, CORES), outlook(slower, CORES)
    assert other.discount == pytest.approx(one.discount / factor, rel=1e-6)
    assert other.price == pytest.approx(one.price, rel=1e-6)
    for seed in range(5):
        jobs = some_jobs(workload, 9, seed)
        same = Jobs.of(slower, jobs.class_index, jobs.remaining * factor, age=jobs.age * factor)
        assert WhamDiscounted().allocate(same, CORES).cores == pytest.approx(
            WhamDiscounted().allocate(jobs, CORES).cores, rel=1e-6, abs=1e-9
        )


def test_the_outlook_is_that_of_the_relaxed_problem():
    """The long-run price is the bound's, and the spare cores are those that one-core jobs would leave."""
    workload = four(0.7)
    expected = outlook(workload, CORES)
    assert expected.price == pytest.approx(bound(workload, CORES).price, rel=1e-8)
    assert expected.spare == pytest.approx(0.3 * CORES, rel=1e-9)
    assert expected.discount > 0.0


def test_without_an_outlook_it_is_wham():
    """At a load of 1 or more nothing can be expected, and WHAM remains."""
    assert outlook(four(1.2), CORES).discount == 0.0
    jobs = some_jobs(four(1.2), 9, 3)
    assert WhamDiscounted().allocate(jobs, CORES).cores == pytest.approx(Wham().allocate(jobs, CORES).cores)
