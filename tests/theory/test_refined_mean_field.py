"""The 1/n correction reproduces known coefficients, exact costs and variances, and knows its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from malleable.contracts import Policy
from malleable.model import JobClass, Workload, paper_workload
from malleable.theory.fluid import Fluid
from malleable.theory.refined_mean_field import fluctuations, noise, refine
from support.examples import examples
from support.fluid_cases import situations

BASE = 112 / 15


def refined(policy, workload, cores):
    fluid = Fluid(workload, Policy.of(policy), cores)
    return refine(fluid, fluid.fixed_point())


def one_class(speedup, arrivals=None, size=None):
    arrivals = arrivals or {"kind": "poisson", "rate": 2.0}
    size = size or {"kind": "exponential", "rate": 1.0}
    return Workload("single", (JobClass("only", arrivals, size, speedup),))


def with_intervals(law):
    """The paper's workload at load .25 on BASE cores, with renewal arrivals of the same rates."""
    classes = [
        JobClass(
            c.name,
            {"kind": "renewal", "interval": law(1.0 / c.arrivals.rate)},
            c.size,
            c.speedup,
            c.holding_cost,
        )
        for c in paper_workload().classes
    ]
    return Workload("renewal", tuple(classes)).at(BASE, 0.25)


@pytest.mark.parametrize(
    ("policy", "limit", "coefficient"),
    [("wham", 0.1578484984, 1.425163), ("greedy", 0.1596026, 1.40346), ("equi", 0.1766143, 0.99923)],
)
def test_paper_coefficients(policy, limit, coefficient):
    """cost(n) ≈ limit + coefficient/n on the paper's workload at load .25."""
    result = refined(policy, paper_workload(64), 64)
    assert result.coefficient == pytest.approx(coefficient, abs=6e-6)
    assert result.cost == pytest.approx(limit + coefficient / 64, abs=2e-7)
    assert result.applies
    assert result.reason == ""


def balanced(mean, scv):
    """A hyperexponential law with the given mean and squared coefficient of variation, balanced means."""
    p = 0.5 * (1 + np.sqrt((scv - 1) / (scv + 1)))
    return {
        "kind": "hyperexponential",
        "probabilities": [p, 1 - p],
        "rates": [2 * p / mean, 2 * (1 - p) / mean],
    }


@pytest.mark.parametrize(
    ("scv", "law"),
    [
        (0.0, lambda mean: {"kind": "deterministic", "value": mean}),
        (0.25, lambda mean: {"kind": "erlang", "stages": 4, "mean": mean}),
        (1.0, lambda mean: {"kind": "exponential", "mean": mean}),
        (4.0, lambda mean: balanced(mean, 4.0)),
    ],
)
def test_burstier_arrivals_cost_more(scv, law):
    """The coefficient is linear in the SCV of inter-arrival times: .944270 + .480893·SCV."""
    assert refined("wham", with_intervals(law), BASE).coefficient == pytest.approx(
        0.944270 + 0.480893 * scv, abs=2e-6
    )


@pytest.mark.parametrize(
    ("policy", "exact"), [("wham", 0.1695505), ("greedy", 0.1711420), ("equi", 0.1845563)]
)
def test_prediction_against_the_exact_chain(policy, exact):
    """At 128 cores the prediction is within half a percent of the exact cost, the limit alone 4 % off."""
    result = refined(policy, paper_workload(128), 128)
    assert result.cost == pytest.approx(exact, rel=5e-3)
    assert result.cost - result.coefficient / 128 < exact * 0.96


@settings(max_examples=examples(6))
@given(situation=situations())
def test_coefficient_does_not_depend_on_the_cores(situation):
    """At fixed load the coefficient is the same at n and 3n cores."""
    workload, cores = situation
    for policy in ("wham", "equi", "greedy"):
        small, large = refined(policy, workload, cores), refined(policy, workload.scaled(3.0), 3.0 * cores)
        assert large.coefficient == pytest.approx(small.coefficient, rel=1e-6, abs=1e-9)


@settings(max_examples=examples(6))
@given(situation=situations())
def test_covariance_is_one(situation):
    """W solves its equation and is positive definite; jobs that change phase add no noise to their class."""
    fluid = Fluid(situation[0], Policy.of("wham"), situation[1])
    point = fluid.fixed_point()
    W, _ = fluctuations(fluid, point)
    A, Q = fluid.jacobian(point.state), noise(fluid, point)
    np.testing.assert_allclose(A @ W + W @ A.T, -Q, atol=1e-8 * np.abs(Q).max())
    assert np.linalg.eigvalsh(W).min() > 0.0
    # With Poisson arrivals, the count of a class scatters by its arrivals and as many departures.
    np.testing.assert_allclose(np.diag(fluid.by_class(fluid.by_class(Q).T)), 2 * situation[0].rates)


def test_infinite_servers_are_exact():
    """Rooftops with cores to spare are M/G/∞: Poisson counts, no shift of the mean, coefficient 0."""
    size = {"kind": "hyperexponential", "probabilities": [0.3, 0.7], "rates": [0.5, 4.0]}
    fluid = Fluid(one_class({"kind": "rooftop", "cores": 2.0}, size=size), Policy.of("wham"), 50.0)
    point = fluid.fixed_point()
    W, shift = fluctuations(fluid, point)
    np.testing.assert_allclose(W, np.diag(point.state), atol=1e-12)
    np.testing.assert_allclose(shift, 0.0, atol=1e-12)
    result = refine(fluid, point)
    assert result.coefficient == pytest.approx(0.0, abs=1e-9)
    assert result.applies


def test_equi_single_class_in_closed_form():
    """EQUI, one exponential class, s = k^p: ż = λ − n^p z^{1−p} gives W = z/(1−p) and V = p/(2(1−p))."""
    p = 0.5
    fluid = Fluid(one_class({"kind": "power", "exponent": p}), Policy.of("equi"), 20.0)
    point = fluid.fixed_point()
    W, shift = fluctuations(fluid, point)
    assert W[0, 0] == pytest.approx(point.jobs[0] / (1 - p))
    assert shift[0] == pytest.approx(p / (2 * (1 - p)))


@pytest.mark.parametrize("load", [0.5510, 0.5516, 0.5522])
def test_kink_is_named(load):
    """Near load .5516 class 1 reaches one core, a kink of WHAM's demand: the result says so."""
    result = refined("wham", paper_workload(1000, load), 1000)
    assert not result.applies
    assert "'class-1'" in result.reason
    assert "kink" in result.reason


def test_kink_is_where_class_1_reaches_one_core():
    """The coefficient jumps between loads .551 and .552, and away from the kink the correction applies."""
    below, above = (refined("wham", paper_workload(1e5, load), 1e5) for load in (0.54, 0.56))
    assert below.applies
    assert above.applies
    near = [refined("wham", paper_workload(1e5, load), 1e5).coefficient for load in (0.5515, 0.5517)]
    assert near[1] - near[0] > 0.04


def test_overload_is_named():
    """At high load on few cores jobs often outnumber cores, and the correction is not to be trusted."""
    result = refined("wham", paper_workload(16, 0.95), 16)
    assert not result.applies
    assert "outnumber" in result.reason
    assert result.overload > 0.01


def test_cores_that_run_short_at_times():
    """Jobs at their peak that together use nearly all cores are at a kink: the price is about to leave 0."""
    peaked = {"kind": "usl", "contention": 0.5, "coherency": 0.05}
    result = refined("wham", one_class(peaked, arrivals={"kind": "poisson", "rate": 20.0}), 50.0)
    assert not result.applies
    assert "too few" in result.reason


def test_tables_are_smooth_on_an_edge_and_kinked_at_a_corner():
    """A table class in the middle of an edge has a correction; next to a corner it is flagged."""
    table = {"kind": "table", "cores": [1, 4], "speedup": [1.0, 2.0]}
    workload = one_class(table).scaled(1000.0)
    # Σ load·k/s(k) = n: at k = 2.5, s = 1.5.
    middle = refined("wham", workload, 2000 * 2.5 / 1.5)
    assert middle.applies
    corner = refined("wham", workload, 2000 * 3.999 / (1 + 2.999 / 3))
    assert not corner.applies
    assert "corner" in corner.reason


def test_arrivals_without_variance_have_no_correction():
    """Inter-arrival times of infinite variance: no coefficient, and the class is named."""
    arrivals = {"kind": "renewal", "interval": {"kind": "pareto", "shape": 1.5, "mean": 1.0}}
    with pytest.warns(UserWarning, match="second moment"):
        workload = one_class({"kind": "power", "exponent": 0.5}, arrivals=arrivals)
    result = refined("wham", workload, 8.0)
    assert result.coefficient is None
    assert result.cost is None
    assert "'only'" in result.reason
    assert result.to_dict()["applies"] is False
