"""`clearing`: the costates of a naive recursion with a reservation price, for each way to guess the order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import Jobs
from malleable.contracts import Policy
from malleable.model import Workload
from malleable.policies.base.asking import job_rows
from malleable.policies.clearing import Clearing
from malleable.policies.rules.market import end_of_market
from malleable.policies.rules.smartfill_rule import KEPT, _costates
from malleable.theory.relaxed import long_run_price
from support import strategies as gen
from support.examples import examples

SPEEDUPS = (
    {"kind": "power", "exponent": 0.5},
    {"kind": "power", "exponent": 0.8},
    {"kind": "amdahl", "sequential": 0.1},
    {"kind": "usl", "contention": 0.05, "coherency": 0.002},
    {"kind": "rooftop", "cores": 3.0},
)
ROWS = [gen.job_class(f"c{i}", 1.0, 1.0, one, 1.0 + i) for i, one in enumerate(SPEEDUPS)]
GRID = np.concatenate([np.linspace(1.0, 12.0, 1101), [0.0]])
ORDERS = (("share", 0.5), ("alone", 0.0), ("alone", 1.0), ("alone", 0.3))


def workload_at(cores):
    return Workload.from_dict({"classes": ROWS}).at(cores, 0.6)


def naive_costates(speedups, costs, cores, order, price):
    """Each costate is the highest over prices l ≥ l0 of min_θ (u + lθ)/s(θ), all on grids of prices and θ.

    u, what the job must be worth, is Σ c + l0·n − l·n − Σ gains of the jobs that finish later; with u below 0
    the job would have to be paid for, and there is no such price.
    """
    widths = GRID[cores >= GRID]
    found, total = np.zeros(len(costs)), price * cores
    for place, job in enumerate(order):
        total += costs[job]
        prices = np.linspace(price, total / cores, 3001)
        left = total - prices * cores
        for other in order[:place]:
            profit = found[other] * speedups[other](widths)[None, :] - prices[:, None] * widths[None, :]
            left -= np.maximum(profit.max(axis=1), 0.0)
        wide = widths[widths >= 1.0]
        worth = (left[:, None] + prices[:, None] * wide[None, :]) / speedups[job](wide)[None, :]
        possible = left >= -1e-12 * total
        found[job] = worth.min(axis=1)[possible].max()
    return found


def finishing(jobs, cores, price, order, power):
    """Jobs from the last to finish to the first, as the two guesses are defined."""
    keys = []
    for i, x, c in zip(jobs.class_index, jobs.remaining, jobs.weight, strict=True):
        speedup = jobs.workload.speedups[i]
        if order == "alone":
            k = min(float(speedup.demand(price, c)), float(speedup.peak), cores)
            keys.append(x / (c**power * float(speedup(k))))
        elif len(jobs) < cores:
            keys.append(x / (np.sqrt(c) * float(speedup(min(cores / len(jobs), cores)))))
        else:
            keys.append(x / c)
    return np.argsort(-np.array(keys), kind="stable")


def some_jobs(cores, size, rng):
    sizes = rng.lognormal(0.0, 1.0, size)
    return Jobs.of(
        workload_at(cores), rng.integers(0, len(ROWS), size), sizes, age=np.arange(size, 0.0, -1.0)
    )


def costates_of(policy, jobs, cores):
    table = policy.program(jobs.workload, cores).table
    rows = job_rows(jobs, jobs.class_index)
    return _costates(rows, table, cores), float(table[end_of_market(table) + KEPT.RESERVATION])


@settings(max_examples=examples(8))
@given(
    seed=st.integers(0, 2**32 - 1),
    cores=st.sampled_from([2.0, 5.0, 12.0]),
    size=st.integers(1, 5),
    factor=st.sampled_from([0.3, 1.0, 3.0]),
    guess=st.sampled_from(ORDERS),
)
def test_costates_are_those_of_a_naive_recursion(seed, cores, size, factor, guess):
    """Orders, prices and costates are as defined, to what the grids of the naive recursion resolve."""
    jobs = some_jobs(cores, size, np.random.default_rng(seed))
    order, power = guess
    found, price = costates_of(Clearing(factor=factor, order=order, power=power), jobs, cores)
    assert price == pytest.approx(factor * long_run_price(jobs.workload, cores))
    finish = finishing(jobs, cores, price, order, power)
    speedups = [jobs.workload.speedups[i] for i in jobs.class_index]
    np.testing.assert_allclose(found, naive_costates(speedups, jobs.weight, cores, finish, price), rtol=4e-3)


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 2**32 - 1), cores=st.sampled_from([2.0, 5.0]), size=st.integers(2, 8))
def test_the_best_order_promises_the_least_cost(seed, cores, size):
    """With `best` Σ costate·x is the least of the guesses, and with more than eight jobs it is `share`'s."""
    rng = np.random.default_rng(seed)
    jobs = some_jobs(cores, size, rng)

    def promised(**options):
        return float(costates_of(Clearing(**options), jobs, cores)[0] @ jobs.remaining)

    every = [promised(), *(promised(order="alone", power=power) for power in (0.0, 0.5, 1.0))]
    assert promised(order="best") == pytest.approx(min(every), rel=1e-7)
    jobs = some_jobs(cores, 9, rng)
    assert promised(order="best") == promised()


def test_without_a_shortage_a_costate_is_whams_index():
    """At a price at which all jobs want their least widths the costates are (c + l0·k_e)/s(k_e)."""
    jobs = some_jobs(30.0, 5, np.random.default_rng(4))
    costates, _ = costates_of(Clearing(price=1e6), jobs, 30.0)
    least = np.array([float(jobs.workload.speedups[i].most_efficient) for i in jobs.class_index])
    np.testing.assert_allclose(costates, (jobs.weight + 1e6 * least) / least, rtol=1e-9)


def test_options_ride_in_the_name():
    """The price factor and the order of finishing can be given where a policy is named."""
    assert Policy.of("clearing:factor=0.3,order=alone,power=1") == Clearing(
        factor=0.3, order="alone", power=1.0
    )
