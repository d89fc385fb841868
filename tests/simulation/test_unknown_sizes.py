"""Sizes that policies are not told: what is left on average, given the work done, takes their place."""

from __future__ import annotations

import numpy as np
import pytest

import malleable
from malleable.contracts import Policy
from malleable.engine.machines import machine
from malleable.engine.residual_table import encode_residuals, expected_remaining
from malleable.errors import ParameterError
from malleable.model import Workload
from malleable.simulation import program
from malleable.sources import Chunk
from support import strategies as gen

POWER = {"kind": "power", "exponent": 0.5}
HYPEREXPONENTIAL = {"kind": "hyperexponential", "probabilities": [0.9, 0.1], "rates": [3.0, 1.0 / 7.0]}


def cmu_departures(cores, classes, sizes, costs, means):
    """Jobs that are all there at 0, one core each to those with the largest c·μ; ties to the earliest."""
    order = sorted(range(len(sizes)), key=lambda j: (-costs[classes[j]] / means[classes[j]], j))
    waiting, running, clock, left = order[:], {}, 0.0, [0.0] * len(sizes)
    while waiting or running:
        while waiting and len(running) < cores:
            j = waiting.pop(0)
            running[j] = clock + sizes[j]
        j = min(running, key=running.get)
        clock = left[j] = running.pop(j)
        if len(waiting) + len(running) <= cores:
            return left, clock  # from here on all are served, and share the cores at one price
    return left, clock


def test_wham_orders_by_c_mu():
    """With exponential sizes the index c/E[left] is c·μ whatever was done, so overload is the cμ rule."""
    costs, means, cores = [1.0, 3.0, 2.0], [1.0, 2.0, 0.5], 2
    rows = [gen.job_class("abc"[i], 0.1, means[i], POWER, costs[i]) for i in range(3)]
    workload = Workload.from_dict({"classes": rows})
    rng = np.random.default_rng(3)
    classes, sizes = np.array([0, 1, 2, 0, 1, 2, 2, 1]), rng.exponential(1.0, 8)
    runner = machine(
        workload,
        cores,
        program(Policy.of("wham"), workload, cores, plain=False),
        interpreted=True,
        log=8,
        sizes_known=False,
    )
    runner.feed(Chunk(np.zeros(8), classes.astype(np.int64), sizes), 0, 8, drain=True)
    expected, until = cmu_departures(cores, classes, sizes, costs, means)
    crowded = [j for j in range(8) if 0.0 < expected[j] <= until]
    assert len(crowded) == 6
    np.testing.assert_allclose(runner.ends[crowded], np.array(expected)[crowded], rtol=1e-12)
    # Told the sizes, WHAM serves in another order.
    known = machine(
        workload, cores, program(Policy.of("wham"), workload, cores, plain=False), interpreted=True, log=8
    )
    known.feed(Chunk(np.zeros(8), classes.astype(np.int64), sizes), 0, 8, drain=True)
    assert not np.allclose(known.ends[crowded], runner.ends[crowded])


def test_blind_srpt_lies_between_fcfs_and_srpt():
    """One class, hyperexponential sizes, one core each: to know sizes helps, to guess from the work done too.

    With a falling hazard rate the job with the least work done has the least left on average, so that blind
    SRPT is least-attained-service, which is better than FCFS and worse than SRPT.
    """
    workload = Workload.from_dict(
        {"classes": [gen.job_class("a", 1.0, 1.0, POWER, 1.0) | {"size": HYPEREXPONENTIAL}]}
    ).at(2, 0.8)
    costs = {
        (name, sizes): malleable.simulate(
            workload, 2, name, jobs=2500, sizes=sizes, interpreted=True, seed=1
        ).cost.mean
        for name, sizes in (("srpt", "known"), ("srpt", "unknown"), ("fcfs", "known"), ("fcfs", "unknown"))
    }
    assert costs["fcfs", "known"] == pytest.approx(costs["fcfs", "unknown"], rel=1e-9)
    assert costs["srpt", "known"] < 0.9 * costs["srpt", "unknown"]
    assert costs["srpt", "unknown"] < 0.9 * costs["fcfs", "known"]


@pytest.mark.parametrize(
    "law",
    [
        {"kind": "exponential", "mean": 2.0},
        HYPEREXPONENTIAL,
        {"kind": "deterministic", "value": 2.0},
        {"kind": "uniform", "low": 1.0, "high": 3.0},
        {"kind": "erlang", "stages": 4, "mean": 2.0},
        {"kind": "pareto", "shape": 3.5, "mean": 2.0},
    ],
)
def test_the_table_is_the_law(law):
    """Between its points, the table is within 1e-4 of E[X − a | X > a]; beyond the last it stays."""
    rows = [gen.job_class("a", 1.0, 1.0, POWER, 1.0) | {"size": law}]
    size = Workload.from_dict({"classes": rows}).classes[0].size
    other = Workload.from_dict({"classes": [gen.job_class("b", 1.0, 3.0, POWER, 1.0)]}).classes[0].size
    table = encode_residuals([other, size])
    ages = np.concatenate([[0.0], np.linspace(0.01, 0.9, 50), size.mean * np.array([1.2, 1.35, 3.3, 50.0])])
    for age, exact in zip(ages, size.mean_remaining(ages), strict=True):
        assert expected_remaining(table, 1, float(age)) == pytest.approx(
            exact, rel=1e-4, abs=1e-3 * size.mean
        )
        assert expected_remaining(table, 0, float(age)) == pytest.approx(3.0)
    last = table[int(table[3]) : int(table[3]) + int(table[4])][-1]
    assert expected_remaining(table, 1, 10.0 * last) == expected_remaining(table, 1, last)


def test_known_or_unknown():
    """Nothing else."""
    with pytest.raises(ParameterError, match="sizes must be known or unknown, got 'maybe'"):
        malleable.simulate("paper", 16, load=0.2, jobs=100, sizes="maybe")
