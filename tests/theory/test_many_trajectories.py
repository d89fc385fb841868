"""Many trajectories at once: the same as one by one with a general integrator, whatever the market does."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.errors import MalleableError
from malleable.model import Workload, paper_workload
from malleable.theory import attractor
from malleable.theory.fluid import Fluid
from malleable.theory.meanfield import mean_field
from malleable.theory.refined_mean_field import linearise
from support import strategies as gen

TABLE = {"kind": "table", "cores": [1.0, 2.0, 4.0, 8.0], "speedup": [1.0, 1.8, 3.0, 4.0]}
PHASES = [
    {"kind": "erlang", "stages": 12, "mean": 1.0},
    {"kind": "hyperexponential", "probabilities": [0.4, 0.6], "rates": [0.5, 3.0]},
    {"kind": "exponential", "mean": 2.0},
]


def mixed(speedups, load=0.6, cores=16, costs=(1.0, 2.0, 0.5)):
    """Three classes with one to three phases each."""
    rows = [
        {**gen.job_class(f"c{i}", 1.0, 1.0, speedup, cost), "size": size}
        for i, (speedup, cost, size) in enumerate(zip(speedups, costs, PHASES, strict=True))
    ]
    return Workload.from_dict({"classes": rows}).at(cores, load)


SMOOTH = mixed([{"kind": "power", "exponent": 0.5}, {"kind": "amdahl", "sequential": 0.2}, TABLE])
JUMPS = mixed([TABLE, TABLE, {"kind": "rooftop", "cores": 3.0}])


# GREEDY with unequal weights on tables is left out: it slides along jumps of its field, as does SciPy's path.
CASES = [
    *(("wham", "smooth"), ("wham", "jumps"), ("greedy", "paper"), ("equi", "paper")),
    *(
        pytest.param(policy, name, marks=pytest.mark.slow)
        for policy, name in (
            *(("wham", "paper"), ("greedy", "jumps"), ("equi", "jumps"), ("greedy:weight=c", "paper")),
            *(("greedy", "smooth"), ("equi", "smooth"), ("greedy:weight=c", "smooth")),
        )
    ),
]
WORKLOADS = {"smooth": SMOOTH, "jumps": JUMPS, "paper": paper_workload(16, 0.7)}


@pytest.mark.parametrize(("policy", "name"), CASES)
def test_as_one_by_one(policy, name, monkeypatch):
    """After a while every trajectory is where SciPy's integrator takes it, to a few times the accuracy."""
    fluid = Fluid(WORKLOADS[name], Policy.of(policy), 16)
    try:
        point = fluid.fixed_point()
    except MalleableError:
        pytest.skip("the policy starves a class")
    starts = np.array(list(attractor._starts(fluid, point.state, 2, 1)))
    ends, _ = attractor._followed(fluid, starts, point, 1.0)
    monkeypatch.setattr(attractor, "ACCURACY", 1e-9)
    for start, end in zip(starts, ends, strict=True):
        alone = attractor.trajectory(fluid, start, [0.0, 1.0]).state[-1]
        assert np.abs(end - alone).max() <= 2e-5 * np.abs(end).max()


def test_overload_on_the_way_is_seen():
    """A system full of slow jobs is overrun before it empties: seen at every step, as in a fine sample."""
    workload = paper_workload(16, 0.9)
    fluid = Fluid(workload, Policy.of("wham"), 16)
    point = fluid.fixed_point()
    slow = int(np.argmax(workload.mean_sizes))
    start = 15.999 * np.eye(len(fluid.owner))[int(np.argmax(fluid.owner == slow))]
    path = attractor.trajectory(fluid, start, np.linspace(0.0, 3.0, 2000))
    _, outside = attractor._followed(fluid, start[None], point, 3.0)
    assert bool(outside[0]) == path.left_domain


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_eigenvalues_from_the_schur_form(workload):
    """Eigenvalues, pairs included, are those that LAPACK finds in the matrix itself."""
    fluid = Fluid(workload, Policy.of("wham"), 16)
    linear = linearise(fluid, fluid.fixed_point())
    found, wanted = (
        np.sort_complex(np.round(v, 8)) for v in (linear.eigenvalues, np.linalg.eigvals(linear.matrix))
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def test_progress_counts_every_start():
    """`progress` is told 1, 2, … up to the number of starts."""
    told = []
    mean_field(paper_workload(16, 0.5), 16, Policy.of("wham"), starts=7, progress=lambda *x: told.append(x))
    assert told == [(i, 7) for i in range(1, 8)]


@pytest.mark.slow
def test_a_thousand_classes_and_a_thousand_starts():
    """Both are a matter of seconds: the work is counted in steps for all, not in equations for each."""
    rng = np.random.default_rng(0)
    rows = [
        gen.job_class(f"c{i}", 1.0, rng.uniform(0.3, 3.0), {"kind": "power", "exponent": p}, 1.0)
        for i, p in enumerate(rng.uniform(0.1, 0.9, 200))
    ]
    many = Workload.from_dict({"classes": rows}).at(2000, 0.5)
    assert mean_field(many, 2000, Policy.of("wham"), starts=25).attractor.converged == 25
    found = mean_field(paper_workload(64, 0.5), 64, Policy.of("wham"), starts=1000).attractor
    assert found.converged == 1000
