"""The least cost of a batch: heSRPT's formula, an independent optimiser, and every policy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from malleable import catalog
from malleable.contracts import Policy
from malleable.engine.run import departures
from malleable.errors import ParameterError, UnsupportedError
from malleable.model import Workload
from malleable.paper.experiments.e10b_discounted.discounting import WORKLOADS
from malleable.policies.hesrpt import shares, total_weighted_flow
from malleable.simulation import program
from malleable.sources import Chunk
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from malleable.speedups.table import Table
from malleable.speedups.usl import Usl
from malleable.theory.clearing import Batch, clearing, least_cost
from support.examples import examples


@pytest.mark.parametrize("exponent", [0.2, 0.5, 0.8])
def test_one_power_law_is_hesrpt(exponent):
    """Cost and widths are heSRPT's closed form, on so many cores that no job has less than one."""
    sizes, cores = np.array([5.0, 3.0, 2.0, 0.5]), 4000.0
    found = clearing(Batch.of([Power(exponent)] * 4, np.ones(4), sizes, cores), range(4))
    assert found.bound == pytest.approx(total_weighted_flow(sizes, np.ones(4), exponent, cores), rel=1e-9)
    np.testing.assert_allclose(found.steps[-1].widths, cores * shares(np.ones(4), exponent), rtol=1e-6)
    assert found.completions is not None
    assert found.completions.sum() == pytest.approx(found.bound, rel=1e-6)


def test_one_core_is_smiths_rule():
    """On one core the best order is by c/x, and the cost that of serving one job after the other."""
    costs, sizes = np.array([1.0, 3.0, 0.5]), np.array([1.0, 2.0, 0.1])
    found = least_cost(Batch.of([Power(0.5)] * 3, costs, sizes, 1.0))
    first = np.argsort(sizes / costs)
    assert found.order == tuple(first[::-1])
    assert found.bound == pytest.approx(costs[first] @ np.cumsum(sizes[first]))


def optimum_of_order(batch: Batch, order: tuple[int, ...]) -> float:
    """The least cost if jobs finish in this order, by sequential quadratic programming from several starts.

    The variables are the lengths of the stages and the core-time of each job in each stage: a convex problem.
    """
    size = len(order)
    pairs = [(i, k) for k in range(size) for i in range(k + 1)]
    rates = np.cumsum(batch.costs[list(order)])

    def work(z):
        done = np.zeros(size)
        for (i, k), used in zip(pairs, z[size:], strict=True):
            span = max(z[k], 1e-12)
            done[i] += span * float(batch.speedups[order[i]](max(used, 0.0) / span))
        return done / batch.sizes[list(order)] - 1.0

    def room(z):
        used = np.bincount([k for _, k in pairs], z[size:])
        return batch.cores * z[:size] - used

    best = np.inf
    for scale in (0.1, 0.3, 1.0, 3.0):  # from some starts it ends at none that is allowed
        spans = scale * batch.sizes.max() * np.linspace(0.5, 1.0, size)
        start = np.concatenate([spans, [spans[k] * batch.cores / (k + 1) for _, k in pairs]])
        found = minimize(
            lambda z: rates @ z[:size], start, method="SLSQP", bounds=[(0.0, None)] * len(start),
            constraints=[{"type": "ineq", "fun": work}, {"type": "ineq", "fun": room}],
            options={"maxiter": 300, "ftol": 1e-11},
        )  # fmt: skip
        if work(found.x).min() > -1e-7 and room(found.x).min() > -1e-7:
            best = min(best, float(found.fun))
    return best


DIFFERENT = [
    ([Power(0.4), Amdahl(0.2)], [1.0, 2.0], [1.0, 0.7], 6.0),
    ([Power(0.9), Power(0.3)], [0.5, 3.0], [0.5, 2.0], 3.0),
    ([Amdahl(0.1), Usl(0.05, 0.001)], [1.0, 1.0], [2.0, 0.3], 8.0),
    pytest.param(
        *([Power(0.5), Amdahl(0.3), Power(0.8)], [1.0, 2.0, 0.6], [1.5, 0.6, 0.9], 8.0),
        marks=pytest.mark.slow,
    ),
    pytest.param(
        *([Amdahl(0.4), Power(0.25), Usl(0.1, 0.002)], [3.0, 1.0, 1.0], [0.4, 1.0, 0.5], 5.0),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("speedups", "costs", "sizes", "cores"), DIFFERENT)
def test_different_speedups_against_brute_force(speedups, costs, sizes, cores):
    """The least bound over all orders is what an optimiser finds over all orders and widths, and attained.

    For every single order the bound is at most the optimum of the order, and equal where it is attained.
    """
    batch = Batch.of(speedups, costs, sizes, cores)
    best = np.inf
    for order in permutations(range(len(sizes))):
        found, brute = clearing(batch, order), optimum_of_order(batch, order)
        best = min(best, brute)
        assert found.bound <= brute * (1.0 + 1e-5)
        if found.completions is not None and np.isfinite(brute):
            assert found.bound == pytest.approx(brute, rel=1e-4)
    found = least_cost(batch)
    assert found.bound == pytest.approx(best, rel=1e-5)
    assert found.completions is not None
    assert batch.costs @ found.completions == pytest.approx(found.bound, rel=1e-6)


FOUR = Workload.from_dict(WORKLOADS["four"]).at(12, 0.7)
QUICK = {"wham_fitted": "wham-fitted:moments=1000"}
PLANLESS = {"fw_cam", "fw_cam_repaired", "fixed_width"}
"""Policies that have no plan for few cores."""


@pytest.mark.parametrize("kind", sorted(set(catalog.kinds("policies")) - PLANLESS))
def test_no_policy_costs_less_on_a_batch(kind):
    """Jobs that all arrive at time 0, replayed under every policy, cost at least the bound."""
    policy, cores = Policy.of(QUICK.get(kind, kind)), 6
    ran = program(policy, FOUR.at(cores, 0.7), cores)

    @settings(max_examples=examples(4))
    @given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.05, 3.0)), min_size=1, max_size=3))
    def check(jobs):
        classes, sizes = np.array([i for i, _ in jobs]), np.array([x for _, x in jobs])
        costs = FOUR.holding_costs[classes]
        batch = Batch.of([FOUR.speedups[i] for i in classes], costs, sizes, cores)
        done = departures(FOUR, cores, ran, Chunk(np.zeros(len(sizes)), classes, sizes), interpreted=True)
        assert costs @ done >= least_cost(batch).bound * (1.0 - 1e-7)

    check()


def test_what_the_theory_does_not_cover_is_refused():
    """Dents, orders that are none, too many jobs, and numbers that are not positive say what is wrong."""
    with pytest.raises(UnsupportedError, match="not concave"):
        Batch.of([Table([1, 2, 3], [1, 1, 2])], [1.0], [1.0], 4.0)
    with pytest.raises(ParameterError, match="positive"):
        Batch.of([Power(0.5)], [0.0], [1.0], 4.0)
    with pytest.raises(ParameterError, match="for each"):
        Batch.of([Power(0.5)], [1.0, 2.0], [1.0], 4.0)
    batch = Batch.of([Power(0.5)] * 9, np.ones(9), np.ones(9), 4.0)
    with pytest.raises(ParameterError, match="too many"):
        least_cost(batch)
    with pytest.raises(ParameterError, match="not an order"):
        clearing(batch, [0, 0, 1])
