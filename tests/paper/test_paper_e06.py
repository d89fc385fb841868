"""Experiment 6: on many cores the size of a job does not matter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e06_sizes as e06
from malleable.paper.experiments.e06_sizes.cells import QUICK_ALONE, QUICK_MIXED
from malleable.paper.experiments.e06_sizes.size_aware import levelled, limit_ratio
from malleable.paper.experiments.shared.widths import predicted
from malleable.policies.hesrpt import Hesrpt, shares
from support.paper_checks import broken, check_cells, check_findings, computed, verdict


@pytest.fixture(scope="module")
def values():
    return computed(e06)


@pytest.fixture(scope="module")
def findings(values):
    return e06.findings(QUICK, values)


def widths(sizes, cores):
    """Cores of the jobs under the levelled rule, interpreted."""
    jobs, out = np.zeros((len(sizes), 8)), np.zeros(len(sizes))
    jobs[:, 1], jobs[:, 3] = sizes, 1.0
    levelled(jobs, float(cores), np.zeros(1), out)
    return out


def test_cells():
    """Cells have names and arguments that files can hold, at every effort."""
    check_cells(e06, (QUICK, NORMAL, FULL))


def test_everything_fits_together(findings):
    """Series, intervals, notes and columns are as long as they should be."""
    check_findings(findings)


def test_no_verdict_fails(findings):
    """On the policies as they are, nothing that the paper says is refuted even by a quick look."""
    assert [v.statement for v in findings.verdicts if v.holds is False] == []
    assert verdict(findings, "A-heSRPT, which goes by size").holds
    assert verdict(findings, "With one class and few cores").holds


def test_levelled_widths():
    """All cores are used, no job has less than one, smaller jobs have more, and heSRPT is met if it fits."""
    rng = np.random.default_rng(1)
    for count in (1, 2, 7, 60, 99):
        sizes = rng.exponential(1.0, count)
        found = widths(sizes, 100)
        assert found.sum() == pytest.approx(100.0)
        assert found.min() >= 1.0 - 1e-12
        assert (np.diff(found[np.argsort(sizes)]) <= 1e-12).all()
    assert widths(np.array([3.0, 2.0, 1.0]), 100) == pytest.approx(100 * shares(np.ones(3), 0.5))
    assert widths(np.arange(1.0, 11.0), 6).tolist() == [1.0] * 6 + [0.0] * 4


@pytest.mark.parametrize("load", [0.01, 0.25, 0.7])
def test_limit_ratio(load):
    """The closed form against the same equations on a grid: as many jobs as work off exactly the load."""
    u = (np.arange(4000) + 0.5) / 4000  # the fraction of jobs that are larger
    low, high = load**2, load
    for _ in range(60):
        jobs = (low + high) / 2.0  # per core
        speeds = np.sqrt(np.maximum(1.0, _slope(u, 1.0 / jobs) * u))
        low, high = (jobs, high) if jobs * speeds.mean() < load else (low, jobs)
    assert limit_ratio(load) == pytest.approx(jobs / load**2, rel=2e-4)


def _slope(u, mean):
    """a with the mean of max(1, a·u) as given."""
    low, high = 0.0, 4.0 * mean
    for _ in range(60):
        a = (low + high) / 2.0
        low, high = (a, high) if np.maximum(1.0, a * u).mean() < mean else (low, a)
    return a


def test_without_the_level_the_ratio_is_nine_eighths():
    """At low load hardly anybody is due less than a core."""
    assert limit_ratio(1e-3) == pytest.approx(9 / 8, rel=1e-4)


def test_the_repair_leaves_nearly_all_jobs_on_one_core():
    """A-heSRPT on 10 000 cores with 625 jobs ends when all but some √(2n) of them have one core."""
    workload = Workload("one", (paper_workload().classes[1],))
    sizes = np.random.default_rng(2).exponential(1.0, 625)
    jobs = Jobs.from_rows(
        workload, [{"id": i, "class": "class-2", "remaining": x} for i, x in enumerate(sizes)]
    )
    found = Hesrpt(exponent=0.5).allocate(jobs, 10_000).cores
    assert (found > 1.0).sum() < 150
    assert widths(sizes, 10_000).mean() == pytest.approx(16.0)
    assert (widths(sizes, 10_000) > 1.0).mean() > 0.9


def test_predicted_shares():
    """They tend to 1, and power-law speedups, whose widths are as 1/price, gather alike."""
    found = predicted([64, 10**3, 10**4, 10**8], 0.25, [0.1])
    assert found["widths"] == pytest.approx([5.4066663883, 25.2311098120, 7.1036764864])
    first, second, third = found["shares"][0]
    assert first == pytest.approx(second)
    assert all(a < b for a, b in pairwise(first))
    assert min(first[-1], third[-1]) > 1.0 - 1e-9


def test_widths_elsewhere_are_noticed(values):
    """Work that does not gather at k*, or gathers and disperses again, turns the verdict of its class."""

    def nowhere(v):
        v["widths-256"]["shares"][1] = {"mean": 0.02, "low": 0.01, "high": 0.03}

    found = e06.findings(QUICK, broken(values, nowhere))
    assert verdict(found, "WHAM gathers the work of class-2").holds is False
    assert verdict(found, "WHAM gathers the work of class-1").holds


def set_difference(value, policy, ratio):
    """Make a policy cost `ratio` times WHAM, give or take 1 %."""
    base = value["results"]["wham"]["cost"]["mean"]
    value["differences"][policy] |= {
        "mean": (ratio - 1.0) * base,
        "low": (ratio - 1.01) * base,
        "high": (ratio - 0.99) * base,
    }


def test_a_rule_by_size_that_does_not_lose_is_noticed(values):
    """If A-heSRPT came back to WHAM its loss would not be confirmed; below it, it would be refuted."""
    for ratio, holds in ((1.0, False), (0.9, False)):
        changed = broken(values, lambda v, r=ratio: set_difference(v["mixed-128"], "hesrpt", r))
        assert verdict(e06.findings(QUICK, changed), "A-heSRPT, which goes").holds is holds

    def never(v):
        for n in QUICK_MIXED:
            set_difference(v[f"mixed-{n}"], "hesrpt", 1.0)

    assert verdict(e06.findings(QUICK, broken(values, never)), "A-heSRPT, which goes").holds is None


def test_another_limit_is_noticed(values):
    """A rule by size that costs 1.5 times WHAM is not the levelled one; nor is one that costs as much."""
    for ratio in (1.5, 1.0):

        def elsewhere(v, ratio=ratio):
            for n in QUICK_ALONE:
                set_difference(v[f"levelled-{n}"], "levelled", ratio)

        found = e06.findings(QUICK, broken(values, elsewhere))
        assert verdict(found, "With one class, levelled heSRPT stays").holds is False
        assert verdict(found, "With one class and few cores").holds is (False if ratio > 1.0 else None)
