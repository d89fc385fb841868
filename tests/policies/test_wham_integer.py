"""WHAM on whole cores against its steps, taken one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from malleable.model import Workload
from malleable.model.jobs import Jobs
from malleable.speedups.power import Power
from malleable.speedups.table import Table
from support import strategies as gen
from support.examples import examples
from support.situations import allocate, check_budget, check_no_waste, jobs_of_one_class, situations, speeds


def step_index(weight, speedup, k):
    """ν(k → k + 1), the price below which a job prefers one more core."""
    low, high = float(speedup(k)), float(speedup(k + 1.0))
    return weight * (high - low) / ((k + 1.0) * low - k * high) if high > low else 0.0


def naive_integer_wham(jobs, cores):
    """Everyone one core, then one step at a time to the job with the highest ν; the earliest among equals."""
    own = [jobs.speedups[i] for i in jobs.speedup_index]
    width = [1.0] * len(jobs)
    for _ in range(int(cores) - len(jobs)):
        best, chosen = 0.0, None
        for j in sorted(range(len(jobs)), key=lambda j: (-jobs.age[j], jobs.remaining[j])):
            value = step_index(jobs.weight[j], own[j], width[j])
            if value > best:
                best, chosen = value, j
        if chosen is None:
            break
        width[chosen] += 1.0
    return np.array(width)


def steps_taken(jobs, out):
    """ν of every step above one core, in ascending order."""
    own = [jobs.speedups[i] for i in jobs.speedup_index]
    return sorted(
        step_index(jobs.weight[j], own[j], k) for j in range(len(jobs)) for k in range(1, int(out[j]))
    )


class TestIntegerWham:
    """WHAM on whole cores."""

    @settings(max_examples=examples(12))
    @given(situations("power", "amdahl", max_jobs=8), st.booleans())
    def test_step_by_step(self, situation, as_option):
        """Concave speedups: as good as handing out core by core to the highest index."""
        jobs, cores = situation
        cores = math.floor(cores)
        assume(0 < len(jobs) < cores <= 60)
        out = (
            allocate("wham", jobs, cores, integer=True)
            if as_option
            else allocate("wham-integer", jobs, cores)
        )
        naive = naive_integer_wham(jobs, cores)
        # Steps may differ by a rounding, then who gets the last core is a matter of taste; its value is not.
        np.testing.assert_allclose(steps_taken(jobs, out), steps_taken(jobs, naive), rtol=1e-9)

    @settings(max_examples=examples(12))
    @given(situations("power", "amdahl", "usl", max_jobs=8))
    def test_within_one_edge_of_the_real_valued(self, situation):
        """No job is further than one edge from its real-valued share on the same integer hulls."""
        jobs, cores = situation
        cores = math.floor(cores)
        assume(0 < len(jobs) < cores <= 60)
        k = np.arange(1.0, cores + 1.0)
        hulls = [Table(k, np.maximum.accumulate(s(k)), hull=True) for s in jobs.speedups]
        on_hulls = Jobs.of(
            jobs.workload,
            jobs.class_index,
            jobs.remaining,
            age=jobs.age,
            weight=jobs.weight,
            speedups=[hulls[i] for i in jobs.speedup_index],
        )
        real = allocate("wham", on_hulls, cores)
        whole = allocate("wham-integer", jobs, cores)
        assert np.all(np.abs(whole - real) <= 1.0 + 1e-6)

    @settings(max_examples=examples(12))
    @given(gen.tables(integer=True), st.integers(1, 8), st.integers(1, 60))
    def test_tables(self, keys, count, cores):
        """On whole-number tables: whole numbers, no waste, and at most one step of the hull lost.

        Shared in time, a job on k cores runs at h(k), h being the concave hull of the table. Steps along h
        are taken by all jobs in turn, so only the first that not all jobs can take may be lost: the total
        is at least N h(n/N) less the rise of that step.
        """
        speedup = Table(**keys)
        jobs = jobs_of_one_class(speedup, count)
        out = allocate("wham-integer", jobs, cores)
        check_budget(jobs, out, cores, integer=True)
        check_no_waste(jobs, out, cores, integer=True)
        corners = speedup.pricing.widths
        share = cores / count
        if share >= corners[0]:
            step = speedup(corners[corners >= share].min(initial=corners[-1])) - speedup(
                corners[corners <= share].max()
            )
            most = count * np.interp(share, corners, speedup(corners))
            assert speeds(jobs, out).sum() >= (most - step) * (1.0 - 1e-12)

    def test_two_jobs_below_the_hull(self):
        """On a dented table 4 and 3 of seven cores are the fastest division, with no job on the hull."""
        speedup = Table((1, 2, 4, 6, 7), (1, 1, 2, 2, 4))
        jobs = jobs_of_one_class(speedup, 2)
        out = allocate("wham-integer", jobs, 7)
        assert out.tolist() == [4.0, 3.0]
        assert speeds(jobs, out).sum() == max(float(speedup(k) + speedup(7 - k)) for k in range(1, 7))

    def test_split_of_a_tied_class(self):
        """Ten cores for four equal jobs: 3, 3, 2, 2, the smaller jobs first, and none idle."""
        jobs = jobs_of_one_class(Power(0.5), 4, remaining=[4.0, 1.0, 3.0, 2.0])
        assert allocate("wham-integer", jobs, 10).tolist() == [2.0, 3.0, 2.0, 3.0]

    @pytest.mark.parametrize("names", [("short", "long"), ("long", "short")])
    def test_twin_classes_are_one(self, names):
        """Classes with one speedup and cost: the earliest job gets the odd core, whatever its class."""
        rows = [gen.job_class(name, 1.0, 1.0, {"kind": "power", "exponent": 0.5}, 1.0) for name in names]
        workload = Workload.from_dict({"name": "twins", "classes": rows})
        jobs = Jobs.of(workload, [0, 0, 1, 0, 1], [3.0, 1.0, 4.0, 2.0, 5.0], age=[1.0, 2.0, 5.0, 3.0, 4.0])
        for cores, lucky in ((6, [2]), (7, [2, 4]), (8, [2, 3, 4])):
            wanted = np.ones(5)
            wanted[lucky] = 2.0
            np.testing.assert_array_equal(allocate("wham-integer", jobs, cores), wanted)
            np.testing.assert_array_equal(naive_integer_wham(jobs, cores), wanted)

    def test_fraction_of_a_core(self):
        """Half a core is of no use on whole cores."""
        jobs = jobs_of_one_class(Power(0.5), 3)
        assert allocate("wham-integer", jobs, 7.5).tolist() == allocate("wham-integer", jobs, 7).tolist()
