"""WHAM against bisection, closed forms and the paper's corners."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings

from malleable.contracts import Policy
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from malleable.speedups.table import Table
from support import strategies as gen
from support.examples import examples
from support.situations import allocate, jobs_of_one_class, situations


def naive_width(speedup, price, weight):
    """g(l) from the table in MODEL.md §1.1."""
    if isinstance(speedup, Power):
        p = speedup.exponent
        return max(1.0, weight * p / ((1.0 - p) * price))
    q = speedup.sequential
    return max(1.0, math.sqrt(weight * (1.0 - q) / (q * price)))


def naive_wham(jobs, cores):
    """MODEL.md §1.2 for power and Amdahl jobs and a whole number of cores, by plain bisection."""
    count = len(jobs)
    c, x, age = jobs.weight.tolist(), jobs.remaining.tolist(), jobs.age.tolist()
    if count >= cores:
        first = sorted(range(count), key=lambda j: (-c[j] / x[j], -age[j]))[: int(cores)]
        return np.array([1.0 if j in first else 0.0 for j in range(count)])
    own = [jobs.speedups[i] for i in jobs.speedup_index]
    low, high = 1e-30, 1e30
    for _ in range(300):
        price = math.sqrt(low * high)
        if sum(naive_width(s, price, w) for s, w in zip(own, c, strict=True)) > cores:
            low = price
        else:
            high = price
    return np.array([naive_width(s, high, w) for s, w in zip(own, c, strict=True)])


class TestWham:
    """WHAM against naive implementations and at its corners."""

    @settings(max_examples=examples(12))
    @given(situations("power", "amdahl"))
    def test_bisection(self, situation):
        """WHAM is the naive bisection, below, at and above n jobs, with weights from 1e-6 to 1e6."""
        jobs, cores = situation
        cores = float(math.floor(cores))
        np.testing.assert_allclose(allocate("wham", jobs, cores), naive_wham(jobs, cores), rtol=1e-9)

    @settings(max_examples=examples(12))
    @given(situations("power"))
    def test_closed_form_for_power_laws(self, situation):
        """For power laws the price solves a linear equation on the set of jobs above one core."""
        jobs, cores = situation
        count = len(jobs)
        assume(0 < count < cores)
        p = np.array([jobs.speedups[i].exponent for i in jobs.speedup_index])
        want = jobs.weight * p / (1.0 - p)
        order = np.argsort(-want)
        for active in range(1, count + 1):
            inside = order[:active]
            price = want[inside].sum() / (cores - (count - active))
            if active == count or want[order[active]] <= price:
                break
        np.testing.assert_allclose(allocate("wham", jobs, cores), np.maximum(1.0, want / price), rtol=1e-9)
        found = Policy.of("wham").allocate(jobs, cores).price
        assert found == pytest.approx(price, rel=1e-9)

    @pytest.mark.parametrize("cost", [0.01, 0.5, 2.0, 100.0])
    def test_printed_threshold_is_wrong(self, cost):
        """One core at l ≥ c·f(1): with the printed l ≥ f(1), c > 1 idles cores and c < 1 gives k < 1."""
        rows = [
            gen.job_class("cheap", 1.0, 1.0, {"kind": "power", "exponent": 0.5}, 1.0),
            gen.job_class("dear", 1.0, 1.0, {"kind": "power", "exponent": 0.5}, cost),
        ]
        jobs = Jobs.of(Workload.from_dict({"classes": rows}), [0, 1], [1.0, 1.0])
        out = allocate("wham", jobs, 3)
        # g = max(1, c/l) for p = 1/2: proportional to c unless one of both is held at one core
        share = min(max(3.0 * cost / (1.0 + cost), 1.0), 2.0)
        np.testing.assert_allclose(out, [3.0 - share, share], rtol=1e-12)

    @pytest.mark.parametrize("cores", [1, 2, 5, 16])
    def test_around_n_jobs(self, cores):
        """N = n−1 shares everything, N = n gives one each, N = n+1 leaves out the smallest c/x."""
        workload = paper_workload(16)
        for count in (cores - 1, cores, cores + 1):
            classes = [i % 3 for i in range(count)]
            jobs = Jobs.of(workload, classes, [0.5 + 1.7 * i for i in range(count)])
            out = allocate("wham", jobs, cores)
            if count >= cores:
                np.testing.assert_allclose(allocate("wham-integer", jobs, cores), out, rtol=1e-12)
            if count:
                assert out.sum() == pytest.approx(cores, rel=1e-12)
            if count == cores:
                np.testing.assert_allclose(out, np.ones(count), rtol=1e-12)
            if count == cores + 1:
                expected = np.ones(count)
                expected[np.argmin(jobs.weight / jobs.remaining)] = 0.0
                np.testing.assert_allclose(out, expected, rtol=1e-12)

    def test_infinite_f_at_one_core(self):
        """N = n with speedups whose f(1) is infinite (linear start) still gives one core each."""
        speedup = {"kind": "usl", "contention": 0.0, "coherency": 0.01}
        assert allocate("wham", jobs_of_one_class(speedup, 5), 5).tolist() == [1.0] * 5
        assert allocate("wham", jobs_of_one_class(speedup, 5), 5.5).tolist() == pytest.approx([1.1] * 5)

    def test_ties_go_to_the_earlier(self):
        """Equal c/x: the earlier arrival is served."""
        jobs = Jobs.of(paper_workload(16), [0] * 4, [1.0] * 4, age=[1.0, 4.0, 2.0, 3.0])
        assert allocate("wham", jobs, 2).tolist() == [0.0, 1.0, 0.0, 1.0]

    def test_only_counts_matter_below_n(self):
        """With N < n the remaining sizes change nothing."""
        one = Jobs.of(paper_workload(16), [0, 1, 2], [1.0, 2.0, 3.0])
        two = Jobs.of(paper_workload(16), [0, 1, 2], [300.0, 0.2, 0.0])
        np.testing.assert_array_equal(allocate("wham", one, 9), allocate("wham", two, 9))

    def test_peaks_fit(self):
        """When every job has all that helps, the price is 0 and the rest idles."""
        found = Policy.of("wham").allocate(jobs_of_one_class(Rooftop(4), 3), 50)
        assert found.cores.tolist() == [4.0] * 3
        assert found.price == 0.0

    def test_rooftop_blocks(self):
        """Rooftop jobs are served in c/x order with κ each, even when N < n; the rest goes to the next."""
        jobs = jobs_of_one_class(Rooftop(4), 4, remaining=[3.0, 1.0, 2.0, 4.0])
        assert allocate("wham", jobs, 10).tolist() == [2.0, 4.0, 4.0, 0.0]
        assert allocate("wham-integer", jobs, 10).tolist() == [2.0, 4.0, 4.0, 0.0]
        assert allocate("wham", jobs, 8.5).tolist() == [0.0, 4.0, 4.0, 0.0]

    def test_rooftop_blocks_by_weight(self):
        """The order of blocks is c·s(k_e)/(k_e·x)."""
        jobs = Jobs.of(
            jobs_of_one_class(Rooftop(4), 1).workload, [0] * 3, [1.0, 2.0, 3.0], weight=[1.0, 1.0, 9.0]
        )
        assert allocate("wham", jobs, 8).tolist() == [4.0, 0.0, 4.0]

    def test_super_linear_blocks(self):
        """A job with s(2) = 2.5 takes two cores or none while cores are scarce."""
        table = Table([1, 2, 3], [1, 2.5, 2.6])
        jobs = jobs_of_one_class(table, 3, remaining=[3.0, 1.0, 2.0])
        assert allocate("wham", jobs, 4).tolist() == [0.0, 2.0, 2.0]
        assert allocate("wham-integer", jobs, 4).tolist() == [0.0, 2.0, 2.0]
        out = allocate("wham-integer", jobs, 5)
        assert out.tolist() == [1.0, 2.0, 2.0]

    def test_table_with_a_dent(self):
        """On a table below its hull jobs sit on good widths, except one that takes the rest."""
        table = Table([1, 4, 8], [1, 1.2, 4])
        jobs = jobs_of_one_class(table, 3, remaining=[3.0, 1.0, 2.0])
        out = allocate("wham", jobs, 12)
        assert sorted(out.tolist()) == pytest.approx([1.0, 3.0, 8.0])
        assert out[1] == 8.0

    def test_piecewise_linear_tie(self):
        """On a concave table the tied class shares the rest equally: k = a + r/N."""
        table = Table([1, 2, 4], [1, 1.8, 2.6])
        assert allocate("wham", jobs_of_one_class(table, 4), 10).tolist() == pytest.approx([2.5] * 4)

    def test_discount_of_identical_weights(self):
        """Multiplying all weights by the same factor changes nothing."""
        workload = paper_workload(16)
        base = Jobs.of(workload, [0, 1, 2, 2], [1.0, 2.0, 3.0, 4.0], weight=[1.0, 5.0, 2.0, 0.3])
        for factor in (1e-6, 1e6):
            scaled = Jobs.of(workload, [0, 1, 2, 2], [1.0, 2.0, 3.0, 4.0], weight=base.weight * factor)
            for cores in (3, 11):
                np.testing.assert_allclose(
                    allocate("wham", scaled, cores), allocate("wham", base, cores), rtol=1e-9
                )
