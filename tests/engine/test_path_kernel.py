"""The path of a rule that value functions are fitted to: the jobs of the simulator, at random moments."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - as in the machines
from malleable.engine.kernels import path_kernel as P  # noqa: N812 - ditto
from malleable.engine.machines import machine
from malleable.engine.rule_interface import COLUMNS
from malleable.engine.speedup_table import encode
from malleable.model import Workload
from malleable.paper.experiments.e10b_discounted.discounting import WORKLOADS
from malleable.sources import stream

CORES = 12.0
FOUR = Workload.from_dict(WORKLOADS["four"]).at(12, 0.7)
ENCODED = encode(FOUR.speedups, widest=CORES)


def srpt():
    return Policy.of("srpt").program(FOUR, CORES)


def test_time_averages_are_those_of_the_simulator():
    """Weighted by the intervals, jobs present and cores in use are what the simulator has on the same jobs.

    Numbers present do not change within an interval, so they agree to rounding.
    """
    jobs = stream(FOUR, 3, 2000).take()
    found = P.path(srpt(), ENCODED, FOUR.holding_costs, CORES, jobs, np.random.default_rng(1).random(8000))
    simulated = machine(FOUR, CORES, srpt())
    simulated.feed(jobs, 0, jobs.size)
    assert found.durations.sum() == pytest.approx(jobs.times[-1])
    for i in range(4):
        held = found.durations[found.moments[found.classes == i]].sum()
        assert held == pytest.approx(simulated.sums[K.AREA, i], rel=1e-9)
    assert (found.remaining >= 0.0).all()
    assert set(np.unique(found.speeds)) <= {0.0, 1.0}


def test_interpreted_is_compiled():
    """The kernel gives the same bits when it is run as Python."""
    jobs, draws = stream(FOUR, 4, 200).take(), np.random.default_rng(2).random(500)
    found = P.path(srpt(), ENCODED, FOUR.holding_costs, CORES, jobs, draws)
    durations, counts, classes = np.zeros(500), np.zeros(500, np.int64), np.zeros(32_000, np.int64)
    remaining, speeds = np.zeros(32_000), np.zeros(32_000)
    program = srpt()
    seen = P.path_kernel(
        program.rule, program.table.copy(), ENCODED, FOUR.holding_costs, CORES, *jobs[:3], draws,
        np.zeros((P.MOST_PRESENT, COLUMNS)), np.zeros(P.MOST_PRESENT), np.zeros(P.MOST_PRESENT),
        durations, counts, classes, remaining, speeds,
    )  # fmt: skip
    assert seen == len(found.durations)
    assert durations[:seen].tolist() == found.durations.tolist()
    assert remaining[: counts.sum()].tolist() == found.remaining.tolist()


def test_a_path_ends_where_too_many_jobs_are_present(monkeypatch):
    """An overloaded machine ends the path; what was seen until then is kept."""
    monkeypatch.setattr(P, "MOST_PRESENT", 30)
    crowded = FOUR.at(12, 3.0)
    jobs = stream(crowded, 5, 2000).take()
    found = P.path(srpt(), ENCODED, FOUR.holding_costs, CORES, jobs, np.random.default_rng(3).random(4000))
    assert 0 < len(found.durations) < 2000
    assert np.bincount(found.moments).max() < 30
