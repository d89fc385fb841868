"""Random jobs on a random number of cores, and the cores that a policy gives them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.errors import UnsupportedError
from malleable.model.jobs import Jobs
from support import strategies as gen

ANY = ("power", "amdahl", "usl", "rooftop", "linear_power", "table")


def allocate(policy, jobs, cores, **options):
    """Cores by `policy`, skipping the test where the policy has no answer to such jobs."""
    try:
        return Policy.of(policy).allocate(jobs, cores, **options).cores
    except UnsupportedError as error:
        pytest.skip(f"{policy}: {error}")


def jobs_of_one_class(speedup, count, *, cost=1.0, remaining=None):
    """Jobs of a single class, with distinct remaining sizes unless given."""
    workload = gen.one_class(speedup, cost=cost)
    return Jobs.of(workload, [0] * count, [1.0 + i for i in range(count)] if remaining is None else remaining)


@st.composite
def situations(draw, *kinds, max_jobs=12, weights=True, costs=None):
    """Jobs of a random workload and a number of cores near, below and above their number."""
    workload = draw(gen.workloads(*kinds, max_classes=3, costs=costs))
    jobs = draw(gen.jobs_of(workload, max_jobs=max_jobs, weights=weights))
    cores = draw(
        st.one_of(st.integers(1, 30), st.integers(1, 30).map(lambda n: n + 0.5), gen.numbers(1.0, 300.0))
    )
    return jobs, float(cores)


def speeds(jobs, cores):
    """s_j(k_j) of each job."""
    return np.array([jobs.speedups[i](k) for i, k in zip(jobs.speedup_index, cores, strict=True)])


def check_budget(jobs, out, cores, *, sharing=False, integer=False):
    """At most n in total, nothing negative, and nothing in (0, 1) unless cores are time-shared."""
    assert out.shape == (len(jobs),)
    assert np.all(np.isfinite(out))
    assert np.all(out >= 0.0)
    assert out.sum() <= cores * (1.0 + 1e-12)
    if not sharing:
        assert not np.any((out > 0.0) & (out < 1.0 - 1e-12))
    if integer:
        np.testing.assert_array_equal(out, np.round(out))


def check_no_waste(jobs, out, cores, *, integer=False):
    """No core is idle that a job could use."""
    spare = (math.floor(cores) if integer else cores) - out.sum()
    if spare <= 1e-7 * cores or len(jobs) == 0:
        return
    more = [out + extra for extra in (range(1, int(spare) + 1) if integer else (spare,))]
    for wider in more:
        useful = np.where(out > 0.0, wider, np.floor(wider) if integer else wider)
        gain = speeds(jobs, useful) > speeds(jobs, out) * (1.0 + 1e-9)
        gain &= (out > 0.0) | (useful >= 1.0)
        assert not gain.any(), (out, cores)
