"""Sweeps on the CPU: the numbers of `compare`, setting by setting; and what is refused."""

from __future__ import annotations

import pytest

import malleable
from malleable.engine.gpu.run import LEAST_JOBS
from malleable.errors import ParameterError
from malleable.model import paper_workload
from malleable.simulation import Settings
from malleable.simulation.run_task import GPU_FIRST_STAGE, _gpu_first_stage, _least_jobs
from malleable.simulation.sweep import FEWEST, MOST, replications
from malleable.simulation.task import checked_task, compared

SETTINGS = [("paper", 4, 0.5), ("paper", 8, 0.25)]


def test_a_sweep_says_what_compare_says():
    """Costs and paired differences are those of `compare` with seed + k, for class and job rules."""
    policies = ["wham", "equi", "srpt"]
    found = malleable.sweep(SETTINGS, policies, jobs=3000, seed=5, engine="cpu")
    assert [(one.cores, round(one.load, 9)) for one in found] == [(4, 0.5), (8, 0.25)]
    for k, (one, (name, n, load)) in enumerate(zip(found, SETTINGS, strict=True)):
        expected = malleable.compare(name, n, policies, load=load, jobs=3000, seed=5 + k)
        assert one.policies == ("wham", "equi", "srpt")
        for cost, result in zip(one.costs, expected.results, strict=True):
            assert cost.mean == pytest.approx(result.cost.mean, rel=0.05)
        for mine, theirs in zip(one.differences[1:], expected.differences, strict=True):
            assert mine.mean == pytest.approx(theirs.mean, rel=1e-9)
        assert one.differences[0].mean == 0.0
        assert one.jobs == 3000
        assert not one.device


def test_progress_is_told_settings():
    """One call for each setting, when all its policies are done."""
    told = []
    malleable.sweep(SETTINGS, "wham,equi", jobs=500, engine="cpu", progress=lambda *a: told.append(a))
    assert told == [(1, 2), (2, 2)]


def test_what_is_refused():
    """No policy, or an engine that does not exist."""
    with pytest.raises(ParameterError, match="nothing to compare"):
        malleable.sweep(SETTINGS, [], jobs=500)
    with pytest.raises(ParameterError, match="there is no engine"):
        malleable.sweep(SETTINGS, "wham", jobs=500, engine="abacus")


def test_replications_are_long_enough():
    """Powers of 2 between a warp and 512: fewer, longer ones at high load, or beside a full pool."""
    counts = [replications(task("wham", load), 1 << 22) for load in (0.2, 0.6, 0.9, 0.99)]
    assert counts == sorted(counts, reverse=True)
    assert all(FEWEST <= count <= MOST and count & (count - 1) == 0 for count in counts)
    assert counts[0] > counts[-1] == FEWEST
    wham, pools = compared([task("wham", 0.25), task("fw-cam:beta=0.76", 0.25)])
    assert (
        replications(wham, 1 << 22)
        == replications(pools, 1 << 22)
        < replications(task("wham", 0.25), 1 << 22)
    )


def test_replications_of_a_run_are_long_enough():
    """On a GPU as long as the fullest pool of all that are compared needs; a fifth of a short run."""
    wham, pools = compared([task("wham", 0.25), task("fw-cam:beta=0.76", 0.25)])
    alone = _least_jobs(task("wham", 0.25), 10**12)
    assert alone == LEAST_JOBS < _least_jobs(wham, 10**12) == _least_jobs(pools, 10**12)
    assert _least_jobs(wham, 10**4) == 2000
    assert GPU_FIRST_STAGE < _gpu_first_stage(task("wham", 0.25)) < _gpu_first_stage(wham)


def task(policy, load):
    return checked_task(paper_workload(64, load), 64, policy, None, Settings(jobs=1))
