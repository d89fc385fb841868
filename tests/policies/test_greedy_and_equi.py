"""GREEDY against the maximum found by other means, and EQUI against water-filling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from support import strategies as gen
from support.examples import examples
from support.situations import ANY, allocate, jobs_of_one_class, situations, speeds


def best_work(weights, own, cores):
    """max Σ w s(k) with k ∈ {0} ∪ [1, ∞), over all sets of served jobs: naive but exact."""
    best = 0.0
    for size in range(1, min(len(own), int(cores)) + 1):
        for served in itertools.combinations(range(len(own)), size):
            low, high = 1e-12, 1e12
            for _ in range(200):
                price = math.sqrt(low * high)
                total = sum(best_response(own[j], weights[j], price) for j in served)
                low, high = (price, high) if total > cores else (low, price)
            k = [best_response(own[j], weights[j], high) for j in served]
            spare = cores - sum(k)
            # kinks (rooftop): the rest goes to whoever still gains, one after the other
            for position, j in enumerate(served):
                add = min(spare, max(0.0, min(float(own[j].peak), 1e15) - k[position]))
                if add > 0.0 and best_response(own[j], weights[j], low) > k[position]:
                    k[position] += add
                    spare -= add
            best = max(best, sum(weights[j] * float(own[j](x)) for j, x in zip(served, k, strict=True)))
    return best


def best_response(speedup, weight, price):
    """argmax over k ≥ 1 of w·s(k) − l·k for power and Amdahl."""
    if isinstance(speedup, Power):
        p = speedup.exponent
        return max(1.0, min((weight * p / price) ** (1.0 / (1.0 - p)), 1e15))
    q = speedup.sequential
    return max(1.0, (math.sqrt(weight * (1.0 - q) / price) - (1.0 - q)) / q)


POWERS = st.one_of(
    gen.numbers(0.05, 0.85).map(Power),
    gen.numbers(0.05, 0.9).map(Amdahl),
)


def weighted_jobs(own, weights):
    """Jobs with their own speedups and weights, of distinct sizes."""
    return Jobs.of(
        paper_workload(16),
        [0] * len(own),
        [1.0 + i for i in range(len(own))],
        weight=weights,
        speedups=own,
    )


class TestGreedy:
    """GREEDY maximises Σ w s(k)."""

    @settings(max_examples=examples(12))
    @given(
        st.lists(st.tuples(POWERS, gen.numbers(0.1, 10.0)), min_size=1, max_size=5),
        st.integers(1, 12),
    )
    def test_maximum(self, pairs, cores):
        """No other allocation does more weighted work by as much as one core of the best job left out.

        Where the relaxed optimum gives a job a part of a core, GREEDY gives it none, hence the slack; with
        equal weights, or all jobs served, it is the maximum.
        """
        own, weights = map(list, zip(*pairs, strict=True))
        jobs = weighted_jobs(own, weights)
        out = allocate("greedy:weight=c", jobs, cores)
        reached = float(jobs.weight @ speeds(jobs, out))
        best = best_work(weights, own, cores)
        left_out = jobs.weight[out == 0.0]
        assert reached <= best * (1.0 + 1e-8)
        assert reached >= best * (1.0 - 1e-8) - (
            left_out.max() if 0 < len(own) - len(left_out) < cores and len(left_out) else 0.0
        )

    @settings(max_examples=examples(12))
    @given(st.lists(POWERS, min_size=1, max_size=5), st.integers(1, 12))
    def test_maximum_with_equal_weights(self, own, cores):
        """With w = 1 no allocation does more work."""
        jobs = weighted_jobs(own, [1.0] * len(own))
        reached = float(speeds(jobs, allocate("greedy", jobs, cores)).sum())
        assert reached == pytest.approx(best_work([1.0] * len(own), own, cores), rel=1e-8)

    @settings(max_examples=examples(12))
    @given(
        st.lists(
            st.tuples(
                gen.speedups("power", "amdahl", "usl", "rooftop", "linear_power"), gen.numbers(0.1, 10.0)
            ),
            min_size=1,
            max_size=4,
        ),
        st.integers(1, 7),
    )
    def test_integer_maximum(self, pairs, cores):
        """On whole cores no allocation at all does more weighted work."""
        own, weights = map(list, zip(*pairs, strict=True))
        jobs = weighted_jobs(own, weights)
        out = allocate("greedy:weight=c", jobs, cores, integer=True)
        reached = float(jobs.weight @ speeds(jobs, out))
        gains = [[w * float(s(k)) for k in range(cores + 1)] for s, w in zip(own, weights, strict=True)]
        best = max(
            sum(gain[k] for gain, k in zip(gains, widths, strict=True))
            for widths in itertools.product(range(cores + 1), repeat=len(own))
            if sum(widths) <= cores
        )
        assert reached >= best * (1.0 - 1e-9)

    def test_equal_weights_serve_every_job(self):
        """With w = 1 and N < n every job has at least one core and slopes above one core are equal."""
        jobs = Jobs.of(paper_workload(16), [0, 1, 2, 1], [1.0, 2.0, 3.0, 4.0])
        out = allocate("greedy", jobs, 20)
        slopes = [jobs.speedups[i].slope(k) for i, k in zip(jobs.class_index, out, strict=True)]
        assert np.all(out > 1.0)
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-8)

    def test_weights(self):
        """mu, c, cmu and c/x are what they say: equal products give equal treatment."""
        rows = [
            gen.job_class("a", 1.0, 0.5, {"kind": "power", "exponent": 0.5}, 3.0),
            gen.job_class("b", 1.0, 2.0, {"kind": "power", "exponent": 0.5}, 12.0),
        ]
        jobs = Jobs.of(Workload.from_dict({"classes": rows}), [0, 1], [1.0, 4.0])
        equal = [4.0, 4.0]
        assert allocate("greedy", jobs, 8).tolist() == pytest.approx(equal)
        assert allocate("greedy:weight=cmu", jobs, 8).tolist() == pytest.approx(equal)
        assert allocate("greedy:weight=c/x", jobs, 8).tolist() == pytest.approx(equal)
        # k ∝ w² for p = 1/2 would be 16 to 1, less than a core: the lesser job is held at one core
        assert allocate("greedy:weight=mu", jobs, 8).tolist() == pytest.approx([7.0, 1.0])
        assert allocate("greedy:weight=c", jobs, 8).tolist() == pytest.approx([1.0, 7.0])
        # on three cores mu = 2 earns 1/√2 with its second core, more than mu = 1/2 with its first
        assert allocate("greedy:weight=mu", jobs, 3).tolist() == pytest.approx([3.0, 0.0])

    def test_star_breaks_ties(self):
        """N > n: GREEDY* serves the less parallelizable class, GREEDY the earlier arrivals."""
        jobs = Jobs.of(paper_workload(16), [1, 1, 0, 0], [1.0] * 4, age=[4.0, 3.0, 2.0, 1.0])
        assert allocate("greedy", jobs, 2).tolist() == [1.0, 1.0, 0.0, 0.0]
        assert allocate("greedy-star", jobs, 2).tolist() == [0.0, 0.0, 1.0, 1.0]


class TestEqui:
    """EQUI divides equally."""

    @settings(max_examples=examples(12))
    @given(situations(*ANY))
    def test_water_filling(self, situation):
        """Every job has the same cores or its peak, and none at its peak has more than the others."""
        jobs, cores = situation
        assume(len(jobs))
        out = allocate("equi", jobs, cores)
        peaks = np.array([float(jobs.speedups[i].peak) for i in jobs.speedup_index])
        level = out.max()
        assert np.all(out <= peaks * (1.0 + 1e-12))
        below = out < level * (1.0 - 1e-9)
        np.testing.assert_allclose(out[below], peaks[below], rtol=1e-12)
        assert out.sum() == pytest.approx(min(cores, peaks.sum()), rel=1e-9)

    def test_time_sharing(self):
        """More jobs than cores: n/N each."""
        assert allocate("equi", jobs_of_one_class(Power(0.5), 8), 2).tolist() == [0.25] * 8

    def test_whole_cores(self):
        """On whole cores shares differ by at most one, the earlier arrivals ahead."""
        jobs = Jobs.of(paper_workload(16), [0] * 4, [1.0] * 4, age=[1.0, 4.0, 2.0, 3.0])
        assert allocate("equi", jobs, 10, integer=True).tolist() == [2.0, 3.0, 2.0, 3.0]
        assert allocate("equi", jobs, 2, integer=True).tolist() == [0.0, 1.0, 0.0, 1.0]
