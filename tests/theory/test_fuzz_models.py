"""Random laws, tables, loads and machines, extreme ones included: numbers that fit together, or our error."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from malleable import simulate
from malleable.contracts import Policy
from malleable.errors import MalleableError
from malleable.model import ConditionWarning, Workload
from malleable.model.jobs import Jobs
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

SEEN = [261, 668, 700, 922, 5919, 6385, 6561, 7126, 7581, 7790, pytest.param(8004, marks=pytest.mark.slow)]
"""Seeds that were errors once."""
POLICIES = ("wham", "wham-integer", "greedy", "greedy:weight=cmu", "equi")


def spread(rng, low, high):
    """A number between the two, by orders of magnitude."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def scale(rng):
    """Mostly ordinary, at times extreme."""
    return spread(rng, 0.1, 10.0) if rng.random() < 0.7 else spread(rng, 1e-200, 1e200)


def law(rng):
    """A law of any kind with parameters over their whole range."""
    mean, shape = scale(rng), spread(rng, 1e-3, 1e3) if rng.random() < 0.5 else spread(rng, 0.3, 5.0)
    p = float(rng.random())
    # Few stages, or more than have a matrix: a mean field of hundreds takes a minute.
    stages = int(spread(rng, 1, 60) if rng.random() < 0.7 else spread(rng, 1001, 2e6))
    return [
        {"kind": "exponential", "mean": mean},
        {"kind": "erlang", "stages": stages, "mean": mean},
        {"kind": "hyperexponential", "probabilities": [p, 1.0 - p], "rates": [1.0 / mean, shape / mean]},
        {"kind": "coxian", "rates": [1.0 / mean, shape / mean], "probabilities": [p]},
        {"kind": "lognormal", "mean": mean, "sigma": shape},
        {"kind": "weibull", "shape": shape, "mean": mean},
        {"kind": "pareto", "shape": 1.0 + shape, "mean": mean},
        {
            "kind": "bounded_pareto",
            "shape": shape,
            "low": mean,
            "high": mean * (1.0 + spread(rng, 1e-3, 1e6)),
        },
        {"kind": "gamma", "shape": shape, "mean": mean},
        {"kind": "uniform", "low": mean * p, "high": mean},
        {"kind": "deterministic", "value": mean},
        {"kind": "empirical", "values": [mean, mean * (1.0 + shape)]},
    ][rng.integers(12)]


def speedup(rng):
    """A speedup of any family; tables of any shape, on few cores and many."""
    steps = rng.integers(1, 7)
    widths = 1.0 + np.cumsum(np.round(np.exp(rng.uniform(0.0, rng.choice([1.5, 8.0]), steps))))
    gains = rng.choice([0.0, 1.0, 3.0], steps) * rng.random(steps)
    speeds = np.cumprod(1.0 + gains)
    return [
        {"kind": "power", "exponent": float(rng.uniform(0.01, 0.99))},
        {"kind": "amdahl", "sequential": spread(rng, 1e-6, 0.99)},
        {"kind": "usl", "contention": float(rng.uniform(0.0, 0.9)), "coherency": spread(rng, 1e-9, 1.0)},
        {"kind": "rooftop", "cores": spread(rng, 1.0, 1e4)},
        {"kind": "linear_power", "cores": spread(rng, 1.0, 1e3), "exponent": float(rng.uniform(0.05, 0.95))},
        {"kind": "table", "cores": [1.0, *widths.tolist()], "speedup": [1.0, *speeds.tolist()]},
    ][min(int(rng.integers(8)), 5)]


def situation(rng):
    """A workload of up to four classes, a number of cores, and a load."""
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": scale(rng)}
            if rng.random() < 0.7
            else {"kind": "renewal", "interval": law(rng)},
            "size": law(rng),
            "speedup": speedup(rng),
            "holding_cost": scale(rng),
        }
        for i in range(rng.integers(1, 5))
    ]
    cores = int(spread(rng, 1, 100)) if rng.random() < 0.7 else int(spread(rng, 1, 1e7))
    load = float(rng.uniform(0.05, 0.95)) if rng.random() < 0.7 else spread(rng, 1e-300, 5.0)
    return rows, cores, load


def check_bound(workload, cores):
    found = bound(workload, cores)
    assert 0.0 < found.bound <= found.bound_capped * (1.0 + 1e-9)
    assert found.bound <= found.bound_integer * (1.0 + 1e-9)
    assert math.isfinite(found.bound_capped)
    assert np.isfinite(found.widths).all()
    assert math.isfinite(found.price)


def check_allocation(workload, cores, rng):
    size = int(rng.integers(1, 9))
    jobs = Jobs.of(workload, rng.integers(0, len(workload.classes), size), [scale(rng) for _ in range(size)])
    for policy in POLICIES:
        for integer in (False, True):
            out = Policy.of(policy).allocate(jobs, cores, integer=integer).cores
            assert np.isfinite(out).all()
            assert (out >= 0.0).all()
            assert out.sum() <= cores * (1.0 + 1e-9)
            assert not integer or (out == np.round(out)).all()


def check_mean_field(workload, cores):
    found = mean_field(workload, cores, Policy.of("wham"), starts=3)
    assert 0.0 < found.cost < math.inf
    assert np.isfinite(found.state).all()
    assert found.cost == pytest.approx(bound(workload, cores).bound, rel=1e-6)


def check_simulation(workload, cores, rng):
    found = simulate(workload, cores, POLICIES[rng.integers(len(POLICIES))], jobs=500)
    # No mean where no job has left, and the interval says so.
    assert 0.0 <= found.cost.mean < math.inf or (math.isnan(found.cost.mean) and found.cost.high == math.inf)


def survives(check, *arguments):
    """Whether the check passes or the library refuses in its own words; anything else is raised."""
    try:
        check(*arguments)
    except MalleableError:
        return False
    return True


def fuzz(seeds):
    done = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows, cores, load = situation(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConditionWarning)
            try:
                workload = Workload.from_dict({"classes": rows}).at(cores, load)
            except MalleableError:
                continue
            try:
                done += survives(check_bound, workload, cores)
                survives(check_allocation, workload, cores, rng)
                survives(check_mean_field, workload, cores)
                survives(check_simulation, workload, cores, rng)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {rows}, cores={cores}, load={load}") from error
    return done


def test_a_few_random_models():
    """Every question gets finite numbers that fit together, or an error of ours; many have an answer."""
    assert fuzz(range(12)) >= 4


@pytest.mark.parametrize("seed", SEEN)
def test_models_that_were_errors(seed):
    """Those that longer searches have found: more cores than there are, or an error of Python's."""
    fuzz([seed])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_random_models(block):
    """The same for a thousand models."""
    fuzz(range(100 + 100 * block, 200 + 100 * block))
