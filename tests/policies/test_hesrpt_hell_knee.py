"""heSRPT, HELL and KNEE against naive references."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.model.jobs import Jobs
from malleable.policies.hesrpt import effective_exponent, shares, total_weighted_flow
from malleable.policies.knee import Knee
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from support import strategies as gen
from support.examples import examples
from support.rivals import INSTANCES, PAPER, cores_of, random_jobs, speedups_of

# --- heSRPT -----------------------------------------------------------------------------------------------


@settings(max_examples=examples(20))
@given(
    st.lists(st.tuples(gen.numbers(0.1, 10.0), gen.numbers(0.2, 5.0)), min_size=1, max_size=7),
    gen.numbers(0.1, 0.9),
    gen.numbers(1.0, 100.0),
)
def test_hesrpt_closed_form(pairs, p, n):
    """Simulating θ event by event gives the closed form of the total weighted flow to 1e-9."""
    sizes = np.array(sorted((x for x, _ in pairs), reverse=True))
    weights = np.array(sorted(w for _, w in pairs))
    left, flow, alive = sizes.copy(), 0.0, len(sizes)
    while alive:
        theta = shares(weights[:alive], p)
        assert math.isclose(theta.sum(), 1.0)
        # Literally k^p, shares below one core included: this is the setting of the theorem.
        speed = (n * theta) ** p
        step = (left[:alive] / speed).min()
        flow += step * weights[:alive].sum()
        left[:alive] -= step * speed
        alive -= 1
        assert abs(left[alive]) <= 1e-9 * sizes[alive]
    assert math.isclose(flow, total_weighted_flow(sizes, weights, p, n), rel_tol=1e-9)


def naive_hesrpt(remaining, weight, arrival, p, n):
    """θ with the repairs, by recursion on the jobs that may still share."""
    count = len(remaining)
    if count >= n:
        order = sorted(range(count), key=lambda j: (-weight[j] / remaining[j], arrival[j]))
        return [1.0 if j in order[: int(n)] else 0.0 for j in range(count)]
    out = [1.0] * count
    sharing, cores = sorted(range(count), key=lambda j: (-remaining[j], -arrival[j])), float(n)
    while True:
        total = sum(weight[j] for j in sharing)
        z = [sum(weight[j] for j in sharing[:i]) for i in range(len(sharing) + 1)]
        e = 1.0 / (1.0 - p)
        k = {j: cores * ((z[i + 1] / total) ** e - (z[i] / total) ** e) for i, j in enumerate(sharing)}
        low = [j for j in sharing if k[j] <= 1.0 + 1e-9]
        if not low:
            for j in sharing:
                out[j] = k[j]
            return out
        cores -= len(low)
        sharing = [j for j in sharing if j not in low]


@settings(max_examples=examples(24))
@given(gen.numbers(0.1, 0.9), st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6))
def test_a_hesrpt(p, n, size, seed):
    """A-heSRPT is θ on the remaining sizes with no job below one core; all cores are used when N < n."""
    jobs = random_jobs(seed, size, gen.one_class(Power(p)))
    out = cores_of("hesrpt", jobs, n)
    arrival = np.argsort(jobs.order)
    assert out.tolist() == pytest.approx(naive_hesrpt(jobs.remaining, jobs.weight, arrival, p, n), rel=1e-9)
    assert out.sum() == pytest.approx(n)


def test_effective_exponent():
    """One power law is recovered exactly; a mix lies between its classes, weighted by load."""
    assert effective_exponent(gen.one_class(Power(0.37)), 64) == pytest.approx(0.37, rel=1e-12)
    k = np.geomspace(1, 64, 65)
    amdahl = np.log(k) @ np.log(1 / (0.2 + 0.8 / k)) / (np.log(k) @ np.log(k))
    mix = (0.2 * 0.3 + 10 / 9 * 0.5 + 5 / 9 * amdahl) / (28 / 15)
    assert effective_exponent(PAPER, 64) == pytest.approx(mix, rel=1e-12)
    assert 0.0 < effective_exponent(gen.one_class(Rooftop(1.0)), 64) < 0.01
    assert 0.99 < effective_exponent(gen.one_class(Rooftop(64.0)), 64) < 1.0


# --- HELL and KNEE ----------------------------------------------------------------------------------------


def naive_hell(speedups, remaining, arrival, peaks, n):
    def h(j, k):
        return float(speedups[j](k)) ** 2 / (k * remaining[j])

    out, spare = [0] * len(speedups), n
    while spare and 0 in out:
        best = {}
        for j in (j for j in range(len(out)) if out[j] == 0):
            top = max(h(j, k) for k in range(1, spare + 1))
            best[j] = (top, max(k for k in range(1, spare + 1) if h(j, k) >= top * (1 - 1e-12)))
        j = min(best, key=lambda j: (-best[j][0], arrival[j]))
        out[j] = best[j][1]
        spare -= out[j]
    while spare:
        able = [
            j
            for j in range(len(out))
            if out[j] + 1 <= peaks[j] or float(speedups[j](out[j] + 1)) > float(speedups[j](out[j]))
        ]
        if not able:
            break
        out[min(able, key=lambda j: (-h(j, out[j] + 1), arrival[j]))] += 1
        spare -= 1
    return out


@settings(max_examples=examples(32))
@given(INSTANCES)
def test_hell(instance):
    """HELL is its definition, searched exhaustively over whole widths."""
    jobs, n = instance
    speedups = speedups_of(jobs)
    expected = naive_hell(
        speedups, jobs.remaining, np.argsort(jobs.order), [float(s.peak) for s in speedups], n
    )
    assert cores_of("hell", jobs, n).tolist() == expected


def test_hell_on_power_laws():
    """Below exponent ½ every job starts from one core; from ½ on the smallest job takes everything."""
    for p, expected in ((0.3, [7, 5, 4]), (0.5, [16, 0, 0]), (0.7, [16, 0, 0])):
        jobs = Jobs.of(gen.one_class(Power(p)), [0, 0, 0], [1.0, 1.2, 1.3])
        assert cores_of("hell", jobs, 16).tolist() == expected
    jobs = Jobs.of(gen.one_class(Amdahl(0.2)), [0, 0], [1.0, 1.2])
    # H is highest at (1−q)/q = 4 cores; what is left then goes out one by one.
    assert cores_of("hell", jobs, 8).tolist() == [4, 4]


def naive_knee(speedup, remaining, alpha):
    return next(
        k
        for k in itertools.count(1)
        if remaining / float(speedup(k)) - remaining / float(speedup(k + 1)) < alpha
    )


@settings(max_examples=examples(32))
@given(INSTANCES, gen.numbers(0.005, 1.0))
def test_knee(instance, alpha):
    """KNEE serves the knees, found by trying every k, in ascending order; the last gets the remainder."""
    jobs, n = instance
    knees = [naive_knee(s, x, alpha) for s, x in zip(speedups_of(jobs), jobs.remaining, strict=True)]
    arrival = np.argsort(jobs.order)
    expected, spare = [0] * len(jobs), n
    for j in sorted(range(len(jobs)), key=lambda j: (knees[j], arrival[j])):
        expected[j] = min(knees[j], spare)
        spare -= expected[j]
    assert cores_of(Knee(alpha), jobs, n).tolist() == expected


def test_knee_default():
    """The default α is 2 % of the mean job size."""
    jobs = random_jobs(2, 9)
    assert cores_of("knee", jobs, 64).tolist() == cores_of("knee:alpha=0.008", jobs, 64).tolist()
