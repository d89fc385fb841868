"""Numbers at the limits of floats: units cancel, and what cannot be computed is said in a sentence."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from malleable import simulate
from malleable.contracts import Distribution, Policy
from malleable.errors import MalleableError, UnsupportedError
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.theory.decision_process import phases
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound
from support import strategies as gen

LAWS = [
    {"kind": "exponential", "mean": 1.0},
    {"kind": "hyperexponential", "probabilities": [0.5, 0.5], "rates": [0.5, 2.0]},
    {"kind": "erlang", "stages": 3, "mean": 1.0},
    {"kind": "coxian", "rates": [2.0, 1.0], "probabilities": [0.5]},
    {"kind": "lognormal", "mean": 1.0, "sigma": 0.8},
    {"kind": "weibull", "shape": 0.7, "mean": 1.0},
    {"kind": "pareto", "shape": 4.5, "mean": 1.0},
    {"kind": "bounded_pareto", "shape": 1.5, "low": 0.5, "high": 9.0},
    {"kind": "gamma", "shape": 0.5, "mean": 1.0},
    {"kind": "uniform", "low": 0.0, "high": 2.0},
    {"kind": "deterministic", "value": 1.0},
    {"kind": "empirical", "values": [0.5, 1.0, 3.0]},
    {"kind": "scipy", "law": "invgauss", "parameters": {"mu": 1.0}},
]


@pytest.mark.parametrize("document", LAWS, ids=lambda document: document["kind"])
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e170, 1e300])
def test_moments_beyond_the_floats(document, unit):
    """In any unit of time moments are 0 or infinite at worst, never an error, and the SCV is what it was."""
    law = Distribution.of(document)
    scaled = law.scaled(unit)
    assert scaled.mean == pytest.approx(law.mean * unit)
    assert scaled.moment(2) == pytest.approx(law.moment(2) * unit * unit)
    assert scaled.moment(3) == pytest.approx(law.moment(3) * unit * unit * unit)
    assert scaled.scv == pytest.approx(law.scv, abs=1e-9)


def one_class(size):
    row = gen.job_class("only", 1.0, 1.0, {"kind": "power", "exponent": 0.5}, 1.0)
    return Workload.from_dict({"classes": [{**row, "size": size}]})


def test_units_of_time_break_no_condition():
    """A moment that is too large for a float is not an infinite moment: no warning about the proofs."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_class({"kind": "exponential", "mean": 1e200}).at(16, 0.5)
        paper_workload(64, 1e-300)


def test_hardly_any_arrivals():
    """At load 1e-300 there is a bound; a simulation and a mean field are refused with a reason."""
    workload = paper_workload(64, 1e-300)
    # All that is left on infinitely many cores is the sequential part of the Amdahl class.
    left = [getattr(s, "sequential", 0.0) for s in workload.speedups]
    limit = workload.rates * workload.mean_sizes * workload.holding_costs @ left / workload.total_rate
    assert bound(workload, 64).bound == pytest.approx(limit, rel=1e-9)
    with pytest.raises(UnsupportedError, match="digits of a clock"):
        simulate(workload, 64, "wham", jobs=1000)
    with pytest.raises(UnsupportedError, match="no limit of many"):
        mean_field(workload, 64, Policy.of("wham"))


def test_an_erlang_with_a_million_stages():
    """It is nearly deterministic and runs like that; what needs its matrix is refused, with a hint."""
    made = {size: one_class(document).at(16, 0.5) for size, document in ERLANG.items()}
    costs = {size: simulate(workload, 16, "wham", jobs=2000).cost.mean for size, workload in made.items()}
    assert costs["erlang"] == pytest.approx(costs["fixed"], rel=1e-2)
    assert bound(made["erlang"], 16).bound == pytest.approx(bound(made["fixed"], 16).bound, rel=1e-12)
    cores = Policy.of("wham").allocate(Jobs.of(made["erlang"], [0, 0], [1.0, 2.0]), 16).cores
    assert cores.tolist() == pytest.approx([8.0, 8.0])
    with pytest.raises(UnsupportedError, match="1000000 phases") as caught:
        mean_field(made["erlang"], 16, Policy.of("wham"))
    assert "1000" in caught.value.hint
    with pytest.raises(MalleableError, match="1000000 phases"):
        phases(made["erlang"].classes[0])


ERLANG = {
    "erlang": {"kind": "erlang", "stages": 1_000_000, "mean": 1.0},
    "fixed": {"kind": "deterministic", "value": 1.0},
}


def test_a_weibull_without_numbers():
    """A shape whose Γ(1 + 1/k) has no logarithm is refused; a larger one has infinite moments."""
    with pytest.raises(MalleableError, match="shape"):
        Distribution.of({"kind": "weibull", "shape": 1e-307, "mean": 1.0})
    law = Distribution.of({"kind": "weibull", "shape": 1e-300, "mean": 1.0})
    assert (law.mean, law.moment(2)) == (1.0, math.inf)
    assert np.isfinite(law.sample(np.random.default_rng(1), 100)).all()
