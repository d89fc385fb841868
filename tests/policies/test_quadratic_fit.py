"""The fit of a value function: exact where the value is quadratic, and its drift is that of the chain."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.kernels.count_kernel import Visits, count_kernel, follow
from malleable.policies.improved.count_value import Value
from malleable.policies.improved.count_value_fit import Chain, bellman, blind_wham, drift, fitted
from malleable.theory.class_speeds import class_speeds
from malleable.theory.markov_chain import solve
from support.chains import AMDAHL, POWER, exponential, phases, workload

TWO = workload((1.0, exponential(1.0), POWER, 1.0), (2.0, exponential(0.5), AMDAHL, 3.0))


def value(h: Value, x: np.ndarray, cores: float) -> float:
    u = x * min(1.0, cores / max(x.sum(), 1e-9))
    first = h.linear @ x + 0.5 * x @ h.quadratic @ x
    return first + h.crowded_linear @ u + 0.5 * u @ h.crowded_quadratic @ u


def random_value(rng: np.random.Generator, m: int) -> Value:
    matrices = [part + part.T for part in rng.normal(size=(2, m, m))]
    return Value(rng.normal(size=m), matrices[0], rng.normal(size=m), matrices[1], 1.0)


def test_the_drift_is_that_of_the_chain():
    """c·x + Σ λ_i [h(x + e_i) − h(x)] − Σ r_i [h(x) − h(x − e_i)], in both regimes."""
    rng, m = np.random.default_rng(2), 3
    chain = Chain(5.0, rng.random(m), rng.random(m), rng.random(m), np.ones(m))
    counts = rng.integers(0, 5, (40, m)).astype(float)
    visits = Visits(counts, rng.random((40, m)) * (counts > 0), np.ones(40))
    h = random_value(rng, m)
    for x, rates, found in zip(counts, visits.departures, bellman(chain, visits, h), strict=True):
        expected = chain.holding_costs @ x
        for i, step in enumerate(np.eye(m)):
            expected += chain.arrival_rates[i] * (value(h, x + step, 5.0) - value(h, x, 5.0))
            expected += rates[i] * (value(h, x - step, 5.0) - value(h, x, 5.0))
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert drift(chain, visits, crowded=False).shape == (40, 9)
    assert drift(chain, visits, crowded=True).shape == (40, 18)


def test_one_server():
    """Of M/M/1 the value is x(x + 1)/(2(μ − λ)): the fit finds it, and the cost λ/(μ − λ), to rounding."""
    arrival, service = 0.6, 1.0
    counts = np.arange(30.0)[:, None]
    visits = Visits(counts, service * (counts > 0.0), np.ones(30))
    fit = fitted(Chain(100.0, np.array([arrival]), np.array([service]), np.ones(1), np.ones(1)), visits)
    assert fit.cost == pytest.approx(arrival / (service - arrival), rel=1e-9)
    assert fit.value.quadratic[0, 0] == pytest.approx(1.0 / (service - arrival), rel=1e-9)
    assert fit.value.linear[0] == pytest.approx(0.5 / (service - arrival), rel=1e-9)
    assert fit.rank == fit.unknowns == 3
    assert not fit.crowded


def test_a_direction_never_seen():
    """A class that never appears leaves the equations singular, and the rank says so."""
    counts = np.column_stack([np.arange(30.0), np.zeros(30)])
    visits = Visits(counts, 1.0 * (counts > 0.0), np.ones(30))
    fit = fitted(Chain(100.0, np.array([0.6, 0.0]), np.ones(2), np.ones(2), np.ones(2)), visits)
    assert fit.rank < fit.unknowns


def a_path(events: int, interpreted: bool = False) -> Visits:
    made = TWO.at(6, 0.6)
    rule, table = blind_wham(made, 6.0)
    uniforms = np.random.default_rng(3).random(events)
    given = (6.0, made.rates, 1.0 / made.mean_sizes, uniforms, np.zeros(2))
    if not interpreted:
        return follow(rule, table, *given)
    out = Visits(np.empty((events, 2)), np.empty((events, 2)), np.empty(events))
    count_kernel(rule, 6.0, table.copy(), *given[1:], np.zeros(2), *out)
    return out


def test_paths_have_the_stationary_law_of_size_blind_wham():
    """Mean numbers of jobs over a long path are those of the exact chain, within 2 %."""
    made, path = TWO.at(6, 0.6), a_path(400_000)
    chain = solve(made.rates, phases(made), class_speeds(Policy.of("wham"), made, 6), 60)
    means = path.times @ path.counts / path.times.sum()
    np.testing.assert_allclose(means, chain.jobs, rtol=0.02)


def test_compiled_and_interpreted_paths_are_the_same():
    """Equal numbers make equal paths, to the bit."""
    for one, other in zip(a_path(500), a_path(500, interpreted=True), strict=True):
        assert (one == other).all()


def test_merged_states():
    """Every state once, with all its time: the sums over a path stay what they were."""
    path = a_path(20_000)
    merged = path.merged()
    assert len(merged.times) == len(np.unique(path.counts, axis=0)) < 1000
    np.testing.assert_allclose(merged.times @ merged.counts, path.times @ path.counts, rtol=1e-10)
    np.testing.assert_allclose(merged.times @ merged.departures, path.times @ path.departures, rtol=1e-10)
