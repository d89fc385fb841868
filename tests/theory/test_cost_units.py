"""Units of cost cancel: V* and prices scale with the holding costs, and ratios beyond numbers are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from malleable import simulate
from malleable.contracts import Policy
from malleable.errors import MalleableError, ParameterError
from malleable.model import paper_workload
from malleable.model.jobs import Jobs
from malleable.speedups.power import Power
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

FAR = [1e-300, 1e-160, 1e-90, 1e90, 1e160, 1e300]


def with_costs(costs, cores=64):
    workload = paper_workload(cores)
    classes = zip(workload.classes, costs, strict=True)
    return replace(workload, classes=tuple(replace(one, holding_cost=float(c)) for one, c in classes))


def work_cost(speedup, cost, price):
    """φ(l) = min (c + l·k)/s(k) by the closed forms of the model."""
    if isinstance(speedup, Power):
        k = max(1.0, cost * speedup.exponent / (1.0 - speedup.exponent) / price)
        return (cost + price * k) / k**speedup.exponent
    q = speedup.sequential
    k = max(1.0, math.sqrt(cost * (1.0 - q) / q / price))
    return (cost + price * k) * (q + (1.0 - q) / k)


def dual_value(workload, cores):
    """V* by a search over log l of the concave dual: no code of the library."""

    def gain(log_price):
        price = math.exp(log_price)
        phi = [work_cost(s, c, price) for s, c in zip(workload.speedups, workload.holding_costs, strict=True)]
        return float(workload.loads @ phi) - price * cores

    grid = np.linspace(-300.0, 300.0, 1201)
    best = grid[int(np.argmax([gain(u) for u in grid]))]
    found = minimize_scalar(lambda u: -gain(u), bounds=(best - 1.0, best + 1.0), method="bounded")
    return max(-found.fun, gain(best)) / workload.total_rate


@pytest.mark.parametrize("unit", FAR)
def test_the_bound_scales(unit):
    """V*(a·c) = a·V*(c), and so do the price and the other bounds; the widths stay."""
    costs = paper_workload().holding_costs
    plain, scaled = bound(with_costs(costs), 64), bound(with_costs(costs * unit), 64)
    for name in ("bound", "bound_capped", "bound_integer", "price"):
        assert getattr(scaled, name) / unit == pytest.approx(getattr(plain, name), rel=1e-12)
    np.testing.assert_allclose(scaled.widths, plain.widths, rtol=1e-12)


@pytest.mark.parametrize("unit", FAR)
@pytest.mark.parametrize("policy", ["wham", "wham-integer", "greedy:weight=c", "greedy:weight=cmu"])
def test_allocations_do_not_depend_on_the_unit(unit, policy):
    """The same cores for each job, at a price in the costs' own unit; the simulator's rule agrees."""
    chosen, given = Policy.of(policy), []
    for scale in (1.0, unit):
        workload = with_costs(paper_workload().holding_costs * scale)
        jobs = Jobs.of(workload, [0, 1, 2, 1], [1.0, 2.0, 3.0, 4.0])
        given.append(chosen.allocate(jobs, 16))
    np.testing.assert_allclose(given[1].cores, given[0].cores, rtol=1e-9)
    assert given[1].price / unit == pytest.approx(given[0].price, rel=1e-9)


@pytest.mark.parametrize("unit", FAR)
def test_the_mean_field_scales(unit):
    """Cost, price and correction of the fixed point are in the costs' own unit."""
    costs = paper_workload().holding_costs
    plain, scaled = (
        mean_field(with_costs(c), 64, Policy.of("wham"), starts=0) for c in (costs, costs * unit)
    )
    assert scaled.cost / unit == pytest.approx(plain.cost, rel=1e-9)
    assert scaled.price / unit == pytest.approx(plain.price, rel=1e-9)
    assert scaled.refined.cost / unit == pytest.approx(plain.refined.cost, rel=1e-6)


@pytest.mark.parametrize("costs", [(1e90, 1.0, 1e-90), (1e-20, 1e-60, 1e60), (1.0, 1e120, 1e-70)])
def test_extreme_ratios(costs):
    """Costs that differ by up to 1e200 have the V* that an independent search of the dual finds."""
    workload = with_costs(costs)
    assert bound(workload, 64).bound == pytest.approx(dual_value(workload, 64), rel=1e-8)


def test_ratios_beyond_numbers():
    """1e300 beside 1e-300 is refused by everything that compares costs, naming both."""
    workload = with_costs((1e300, 1.0, 1e-300))
    with pytest.raises(ParameterError, match=r"1e-300 to 1e\+300"):
        bound(workload, 64)
    with pytest.raises(ParameterError, match=r"1e-300 to 1e\+300"):
        Policy.of("wham").allocate(Jobs.of(workload, [0, 2], [1.0, 2.0]), 16)
    with pytest.raises(MalleableError, match=r"1e-300 to 1e\+300"):
        simulate(workload, 64, "wham", jobs=500)


def test_a_simulation_wants_another_unit():
    """The statistics square costs, so that a run with costs of 1e300 is refused with a hint."""
    with pytest.raises(MalleableError, match="no room for a variance") as caught:
        simulate(with_costs((1e300, 1e300, 1e300)), 64, "wham", jobs=500)
    assert "unit" in caught.value.hint
