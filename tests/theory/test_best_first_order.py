"""The best possible 1/n coefficient: against exact optima, against WHAM's own, and where it is not known."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.model import Workload, paper_workload
from malleable.theory.best_first_order import best_first_order, hamiltonian, job_values, riccati
from malleable.theory.class_speeds import class_speeds
from malleable.theory.fluid import Fluid
from malleable.theory.markov_chain import solve
from malleable.theory.meanfield import mean_field
from malleable.theory.optimal_policy import optimum
from malleable.theory.refined_mean_field import linearise, refine
from support.chains import AMDAHL, POWER, exponential, paper_exponential, phases, workload

TWO_WEIGHTS = workload((1.0, exponential(1.0), POWER, 0.4), (1.0, exponential(1.0), POWER, 3.0))
TWO_SHAPES = workload((1.0, exponential(1.0), POWER, 1.0), (2.0, exponential(0.5), AMDAHL, 2.0))


def first_order(made: Workload, cores: float, load: float):
    described = made.at(cores, load)
    fluid = Fluid(described, Policy.of("wham"), cores)
    point = fluid.fixed_point()
    linear = linearise(fluid, point)
    refined = refine(fluid, point, linear)
    return fluid, point, linear, refined, best_first_order(fluid, point, linear, refined)


@pytest.mark.parametrize(
    ("made", "load"),
    [(paper_exponential(), 0.25), (paper_exponential(2), 0.3), (TWO_WEIGHTS, 0.7), (TWO_SHAPES, 0.4)],
)
def test_the_two_forms_of_whams_coefficient(made, load):
    """WHAM's coefficient from the value side equals the refined mean field's, which comes from the noise."""
    *_, refined, found = first_order(made, 64, load)
    assert found.wham == pytest.approx(refined.coefficient, rel=1e-11)
    assert found.best <= found.wham * (1.0 + 1e-12)


def test_burstier_arrivals():
    """With renewal arrivals the two forms agree as well, so the noise of arrivals is in both."""
    rows = TWO_SHAPES.to_dict()["classes"]
    for row in rows:
        row["arrivals"] = {
            "kind": "renewal",
            "interval": {"kind": "hyperexponential", "probabilities": [0.5, 0.5], "rates": [0.6, 3.0]},
        }
    *_, refined, found = first_order(Workload.from_dict({"name": "bursts", "classes": rows}), 64, 0.4)
    assert found.wham == pytest.approx(refined.coefficient, rel=1e-11)


def test_values_of_jobs():
    """p* is the gradient of WHAM's value, −A⁻ᵀ c: holding costs, and rent for its cores."""
    fluid, point, linear, *_ = first_order(paper_exponential(), 64, 0.25)
    gradient = -np.linalg.solve(linear.matrix.T, fluid.workload.holding_costs)
    np.testing.assert_allclose(job_values(fluid, point), gradient, rtol=1e-12)


def test_the_riccati_matrix_solves_its_equation_and_stabilises():
    """The residual is rounding, and the fluid steered by P returns to the fixed point."""
    fluid, point, linear, _, found = first_order(paper_exponential(), 64, 0.25)
    H, P = hamiltonian(fluid, point), found.riccati
    residual = H.xx + H.px.T @ P + P @ H.px + P @ H.pp @ P
    assert np.abs(residual).max() < 1e-11 * np.abs(H.xx).max()
    assert np.linalg.eigvals(H.px + H.pp @ P).real.max() < 0.0
    np.testing.assert_allclose(riccati(H, np.ones(3)), P, rtol=1e-6)
    assert linear.unit.shape == (3,)


def test_a_stuck_class_leaves_nothing_to_choose():
    """Two classes, one far inside its least width: WHAM's term is the best possible."""
    *_, found = first_order(TWO_WEIGHTS, 64, 0.7)
    assert found.applies
    assert found.excess == pytest.approx(0.0, abs=1e-9)


def limit_of(coefficients, sizes):
    """Richardson's extrapolation of (cost − V*)·n, whose next term is proportional to 1/√n or 1/n."""
    (first, second), (small, large) = coefficients, sizes
    return (second * large - first * small) / (large - small)


def test_one_class_is_optimal():
    """One class has nothing to divide unequally: WHAM is optimal, and both coefficients are the same."""
    single = workload((1.0, exponential(1.0), POWER, 1.0))
    *_, found = first_order(single, 64, 0.4)
    assert found.excess == pytest.approx(0.0, abs=1e-9)


def measured(made, load, sizes):
    """(cost − V*)·n of the optimum and of size-blind WHAM, from exact chains."""
    best, wham = [], []
    for cores in sizes:
        described = made.at(cores, load)
        point = first_order(made, cores, load)[1]
        value, jobs = point.cost, point.jobs.sum()
        top = int(25 + jobs + 9.0 * np.sqrt(jobs))
        best.append((optimum(described, cores, top, widths="real").cost - value) * cores)
        speeds = class_speeds(Policy.of("wham"), described, cores)
        chain = solve(described.rates, phases(described), speeds, top)
        wham.append((chain.cost(described.holding_costs) - value) * cores)
    return limit_of(best, sizes), limit_of(wham, sizes)


def test_small_chains():
    """Exact chains on 48 and 96 cores extrapolate to both coefficients within 3 %."""
    *_, found = first_order(TWO_SHAPES, 96, 0.3)
    best, wham = measured(TWO_SHAPES, 0.3, (48, 96))
    assert best == pytest.approx(found.best, rel=0.03)
    assert wham == pytest.approx(found.wham, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "load", "sizes"),
    [
        (TWO_SHAPES, 0.3, (256, 512)),
        (TWO_SHAPES, 0.5, (256, 512)),
        (TWO_WEIGHTS, 0.3, (256, 512)),
        (TWO_WEIGHTS, 0.75, (128, 256)),
    ],
)
def test_large_chains(made, load, sizes):
    """Exact chains on 128 to 512 cores extrapolate to both coefficients within 1 %, and tell them apart."""
    *_, found = first_order(made, 512, load)
    best, wham = measured(made, load, sizes)
    assert best == pytest.approx(found.best, rel=0.01)
    assert wham == pytest.approx(found.wham, rel=0.01)
    assert wham / best - 1.0 == pytest.approx(found.excess, abs=0.004)


@pytest.mark.parametrize(
    ("made", "cores", "policy", "reason"),
    [
        (paper_workload(64), 64, "wham", "known only for exponential sizes; class-2 is hyperexponential"),
        (paper_exponential().at(64, 0.25), 64, "equi", "this policy has another"),
        (TWO_WEIGHTS.at(64, 0.5), 64, "wham", "kink"),
        (TWO_WEIGHTS.at(64, 0.999), 64, "wham", "jobs outnumber cores"),
        (
            workload((1.0, exponential(1.0), {"kind": "rooftop", "cores": 4}, 1.0)).at(64, 0.5),
            64,
            "wham",
            "the price does not move",
        ),
    ],
)
def test_where_it_does_not_apply(made, cores, policy, reason):
    """It says in words why it is not known, or not to be trusted at these cores."""
    found = mean_field(made, cores, Policy.of(policy), starts=0).first_order
    assert not found.applies
    assert reason in found.reason
    assert set(found.to_dict()) == {"best", "wham", "excess", "applies", "reason"}
