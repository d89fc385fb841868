"""Weights of jobs, moderate or extreme: only their ratios matter, and none buys cores that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.errors import ParameterError
from malleable.model import Workload
from malleable.model.jobs import Jobs

CORES = 8.0


def two_jobs(costs, means, remaining=(1.0, 1.0), weights=None):
    classes = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": 1.0},
            "size": {"kind": "exponential", "mean": mean},
            "speedup": {"kind": "power", "exponent": 0.5},
            "holding_cost": cost,
        }
        for i, (cost, mean) in enumerate(zip(costs, means, strict=True))
    ]
    return Jobs.of(Workload.from_dict({"classes": classes}), np.arange(2), remaining, weight=weights)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("scale", [1e-290, 1e-150, 1e150, 1e290])
@pytest.mark.parametrize("weight", ["mu", "cmu"])
def test_only_ratios_of_weights_matter(weight, scale, integer):
    """Sizes in any unit give the same widths: for weights 2 and 1 and s(k) = √k four cores to one.

    The price, ½·w/√k where widths are real, comes in that unit as well.
    """
    greedy = Policy.of(f"greedy:weight={weight}")
    found = greedy.allocate(two_jobs([1.0, 1.0], [scale, 2.0 * scale]), CORES, integer=integer)
    assert found.cores.tolist() == pytest.approx([6.0, 2.0] if integer else [6.4, 1.6], rel=1e-9)
    if not integer:
        assert found.price * scale == pytest.approx(0.5 / 6.4**0.5, rel=1e-9)


def test_own_weights_in_their_own_unit():
    """Weights that jobs bring count with the rates of their classes, however extreme both are."""
    jobs = two_jobs([1.0, 1.0], [1e120, 1e120], weights=[2e-120, 1e-120])
    found = Policy.of("greedy:weight=cmu").allocate(jobs, CORES)
    assert found.cores.tolist() == pytest.approx([6.4, 1.6], rel=1e-9)


@pytest.mark.parametrize("integer", [False, True])
def test_prices_beyond_all_numbers(integer):
    """A job about to end may be worth more than the highest price that is looked at: it gets all cores."""
    jobs = two_jobs([1e90, 1e90], [1.0, 1.0], remaining=(1e-200, 1e-199))
    found = Policy.of("greedy:weight=c/x").allocate(jobs, CORES, integer=integer)
    assert found.cores.tolist() == [CORES, 0.0]


@pytest.mark.parametrize("means", [(1e-196, 1e30), (1e-300, 1e300)])
@pytest.mark.parametrize("weight", ["mu", "cmu"])
def test_weights_that_cannot_be_compared(weight, means):
    """Rates that are further apart than numbers reach are an error, not a division of cores."""
    jobs = two_jobs([1.0, 1.0], means)
    with pytest.raises(ParameterError, match="cannot be compared"):
        Policy.of(f"greedy:weight={weight}").allocate(jobs, CORES)
