"""Statistics against synthetic records whose answers are known: AR(1) series and the M/M/1 queue."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from malleable.engine.records import bin_edges
from malleable.errors import ParameterError
from malleable.model import ConditionWarning, JobClass, Workload
from malleable.statistics import (
    Estimate,
    Warmup,
    difference,
    estimate,
    find_warmup,
    percentiles,
    reached,
    stability,
    totals,
)
from malleable.statistics.intervals import Basis, fit, lag_one, t_quantile
from malleable.statistics.percentiles import kept_histogram, quantiles
from malleable.statistics.sampling import COUNTS, sample
from malleable.statistics.warmup import mser
from support.examples import examples
from support.synthetic import ar1, records, single_server, workload

ONE = workload()


def whole(runs):
    return Warmup((0,) * len(runs), 0)


def cost_of(*runs, model=ONE, **options):
    return estimate(runs, model, whole(runs), **options)


def coverage(estimates, truth):
    return np.mean([e.low <= truth <= e.high for e in estimates])


def test_importing_statistics_is_light():
    """Neither scipy nor pandas nor numba is imported with statistics and results."""
    code = "import sys, malleable.results; print({'scipy', 'pandas', 'numba'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["set()"]


@pytest.mark.parametrize("freedom", [1, 9, 39])
def test_student_quantiles(freedom):
    """The quantile is that of scipy.stats."""
    assert t_quantile(freedom, 0.95) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-12)


@pytest.mark.parametrize("phi", [0.0, 0.8, 0.95])
def test_intervals_cover_an_autoregressive_mean(phi):
    """Nominal 95 % intervals cover the mean of independent and of AR(1) series 92–98 % of the time."""
    rng = np.random.default_rng(5)
    series = 10.0 + ar1(rng, (2000, 500), phi)
    found = [cost_of(records(one)).cost for one in series.T]
    assert 0.92 <= coverage(found, 10.0) <= 0.98


def test_short_correlated_runs_say_so_and_widen():
    """Where ten batches are still correlated, the result says so and its interval is wider than the plain."""
    series = 10.0 + ar1(np.random.default_rng(1), (400, 60), 0.99)
    found = [cost_of(records(one)) for one in series.T]
    flagged = [(one, e) for one, e in zip(series.T, found, strict=True) if e.correlated]
    assert len(flagged) > 10
    for one, e in flagged:
        means = one.reshape(10, -1).mean(axis=1)
        assert e.batches == 10
        assert e.cost.half_width >= t_quantile(9, 0.95) * means.std(ddof=1) / 10**0.5


def test_batches_are_as_many_as_look_independent():
    """Independent records make 40 batches in most runs; strongly correlated ones fewer."""
    rng = np.random.default_rng(2)
    loose = [cost_of(records(one)).batches for one in ar1(rng, (2000, 60), 0.0).T]
    tight = [cost_of(records(one)).batches for one in ar1(rng, (400, 60), 0.97).T]
    assert np.mean(np.array(loose) == COUNTS[0]) > 0.75
    assert np.mean(tight) < 30


@pytest.mark.parametrize("copies", [2, 4, 5, 20])
def test_replications_cover(copies):
    """Intervals over independent replications are honest, whether batched (few) or one mean each (many)."""
    rng = np.random.default_rng(copies)
    found = []
    for _ in range(300):
        runs = [records(10.0 + one) for one in ar1(rng, (200, copies), 0.6).T]
        found.append(cost_of(*runs))
    assert 0.92 <= coverage([e.cost for e in found], 10.0) <= 0.98
    assert all(e.batches == copies for e in found) == (copies >= 5)


def test_the_interval_is_that_of_plain_batch_means():
    """With equal batches it is t·s/√B on their means, times √((1+r)/(1−r)), computed here by hand."""
    series = np.random.default_rng(3).normal(4.0, 1.0, 4000)
    found = cost_of(records(series), controls=False)
    means = series.reshape(found.batches, -1).mean(axis=1)
    half = stats.t.ppf(0.975, found.batches - 1) * means.std(ddof=1) / found.batches**0.5
    half *= ((1.0 + max(r := lag_one(means), 0.0)) / (1.0 - max(r, 0.0))) ** 0.5
    assert found.cost.mean == pytest.approx(series.mean(), rel=1e-12)
    assert found.cost.half_width == pytest.approx(half, rel=1e-12)


def test_cost_is_post_stratified():
    """The mix of classes that happened to come does not enter the cost, only their response times do."""
    model = workload(rates=(1.0, 3.0), costs=[2.0, 1.0])
    rng = np.random.default_rng(4)
    jobs = rng.integers(1, 50, (400, 2))
    found = cost_of(records(np.tile([6.0, 2.0], (400, 1)), jobs), model=model)
    assert found.cost.mean == pytest.approx((1 * 2 * 6 + 3 * 1 * 2) / 4, rel=1e-12)
    assert found.cost.half_width == pytest.approx(0.0, abs=1e-9)


def test_unseen_classes_are_left_out():
    """A class of which no job has left has no response time, and the cost is that of the others."""
    jobs = np.tile([10.0, 0.0], (40, 1))
    found = cost_of(records(np.tile([6.0, 2.0], (40, 1)), jobs), model=workload(rates=(1.0, 3.0)))
    assert found.cost.mean == pytest.approx(6.0)
    assert np.isnan(found.response_times[1].mean)


@pytest.mark.parametrize("size", [0, 1])
def test_too_short_for_an_interval(size):
    """Without records there is no mean, and with a single one the interval is the whole line."""
    found = cost_of(records(np.full(size, 3.0)))
    assert (found.cost.low, found.cost.high) == (-np.inf, np.inf)
    assert np.isnan(found.cost.mean) if size == 0 else found.cost.mean == 3.0
    assert not reached(found.cost, 0.5)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, float("nan")])
def test_confidence_is_a_fraction(confidence):
    """A confidence outside (0, 1) is refused by name."""
    with pytest.raises(ParameterError, match="confidence"):
        cost_of(records(np.ones(10)), confidence=confidence)


def test_estimates_in_other_units():
    """A positive factor, a unit and a shift move an interval with its mean; no end stays none."""
    cost = Estimate(2.0, 1.5, 3.0)
    assert cost.scaled(100.0) == Estimate(200.0, 150.0, 300.0)
    assert cost.over(4.0) == Estimate(0.5, 0.375, 0.75)
    assert cost.over(2.0).shifted(-1.0) == Estimate(0.0, -0.25, 0.5)
    unknown = Estimate().scaled(3.0).over(7.0).shifted(1.0)
    assert (unknown.low, unknown.high) == (-np.inf, np.inf)
    assert np.isnan(unknown.mean)


def test_precision():
    """A precision is reached when the relative half-width is at most it, and always when none is asked."""
    assert reached(Estimate(10.0, 9.9, 10.1), 0.0101)
    assert not reached(Estimate(10.0, 9.9, 10.1), 0.0099)
    assert reached(Estimate(), None)
    assert not reached(Estimate(0.0, -1.0, 1.0), 0.5)
    assert reached(Estimate(0.0, 0.0, 0.0), 0.5)


def noisy_sizes(rng, size, jobs=100.0, slope=3.0, noise=0.02):
    """Response times that follow the sizes and the gaps of the jobs that happened to come."""
    work = 0.5 * jobs + rng.normal(0.0, 1.0, (size, 1))
    duration = jobs + rng.normal(0.0, 1.0, size)
    surprise = slope * (work[:, 0] - 0.5 * jobs) - slope * (duration - jobs)
    times = 5.0 + surprise / jobs + noise * rng.standard_normal(size)
    return records(times, jobs, work=work, duration=duration)


def test_control_variates_pay_and_stay_honest():
    """Where sizes and gaps drive the noise, controls cut the variance several times, without bias."""
    rng = np.random.default_rng(6)
    runs = [noisy_sizes(rng, 400) for _ in range(400)]
    plain = [cost_of(run, controls=False).cost for run in runs]
    found = [cost_of(run) for run in runs]
    assert np.mean([e.controls.used for e in found]) > 0.99
    assert np.median([e.controls.variance_reduction for e in found]) > 3.0
    means = np.array([e.cost.mean for e in found])
    assert np.var([e.mean for e in plain]) / np.var(means) > 3.0
    assert abs(means.mean() - 5.0) < 4.0 * means.std() / len(means) ** 0.5
    assert 0.92 <= coverage([e.cost for e in found], 5.0) <= 0.98


def test_controls_that_explain_nothing_are_left_alone():
    """Controls unrelated to the response times are mostly not used, and intervals stay honest."""
    rng = np.random.default_rng(7)
    found = [cost_of(noisy_sizes(rng, 400, slope=0.0)) for _ in range(400)]
    assert np.mean([e.controls.used for e in found]) < 0.1
    assert 0.92 <= coverage([e.cost for e in found], 5.0) <= 0.98


def test_infinite_variance_is_no_control():
    """Sizes without a second moment are not used as a control."""
    heavy = {"kind": "pareto", "shape": 1.5, "mean": 0.5}
    job = JobClass("heavy", {"kind": "poisson", "rate": 1.0}, heavy, {"kind": "power", "exponent": 0.5})
    with pytest.warns(ConditionWarning):
        model = Workload("heavy", (job,))
    found = sample([noisy_sizes(np.random.default_rng(8), 400)], [0], model, 40)
    assert np.ptp(found.controls[0][:, 0]) == 0.0
    assert np.ptp(found.controls[0][:, 1]) > 0.0


def test_regression_is_least_squares():
    """The control-variate estimate is the intercept of a linear regression, with its standard error."""
    rng = np.random.default_rng(9)
    controls = rng.standard_normal((30, 3)) @ np.diag([1.0, 100.0, 1e-3]) + [0.1, 5.0, 0.0]
    influence = controls @ [1.0, 0.02, 30.0] + rng.standard_normal(30)
    influence -= influence.mean()
    design = np.column_stack([np.ones(30), controls])
    solution, rest, *_ = np.linalg.lstsq(design, influence)
    error = (rest[0] / 26 * np.linalg.inv(design.T @ design)[0, 0]) ** 0.5
    repeated = Basis.of(np.column_stack([controls, controls[:, 0] * 2.0, np.ones(30)]))
    found = fit(7.0, influence, repeated, 0.9, independent=True)
    assert repeated.size == 3
    assert found.mean == pytest.approx(7.0 + solution[0], rel=1e-9)
    assert found.half_width == pytest.approx(stats.t.ppf(0.95, 26) * error, rel=1e-9)


def test_class_estimates_add_up_under_controls():
    """One regression serves all classes, so the cost stays the weighted sum of the response times."""
    rng = np.random.default_rng(10)
    model = workload(rates=(1.0, 3.0), costs=[2.0, 1.0])
    jobs = np.tile([50.0, 150.0], (800, 1))
    work = 0.5 * jobs + rng.normal(0.0, 1.0, jobs.shape)
    times = 5.0 + 3.0 * (work - 0.5 * jobs) / jobs + 0.005 * rng.standard_normal(jobs.shape)
    found = cost_of(records(times, jobs, work=work), model=model)
    assert found.controls.used
    parts = [e.mean for e in found.response_times]
    assert found.cost.mean == pytest.approx((2.0 * parts[0] + 3.0 * parts[1]) / 4.0, rel=1e-12)


def test_paired_differences_are_tight():
    """Two runs that share their noise differ by a much shorter interval than their own, which covers."""
    rng = np.random.default_rng(11)
    shared = 10.0 + ar1(rng, (400, 1000), 0.9)
    other = shared + 0.05 + 0.02 * rng.standard_normal(shared.shape)
    pairs = [(records(b), records(a)) for a, b in zip(shared.T, other.T, strict=True)]
    found = [difference([b], [a], ONE, warmup=0) for b, a in pairs]
    single = [cost_of(b).cost.half_width for b, _ in pairs]
    assert 0.92 <= coverage(found, 0.05) <= 0.98
    assert np.mean([e.half_width for e in found]) < np.mean(single) / 10.0


def test_paired_differences_of_queues():
    """A 5 % faster server differs from its rival by the Pollaczek–Khinchine difference, well resolved."""
    model, slow, fast = workload(mean_sizes=[0.8]), [], []
    for seed in range(8):
        slow.append(single_server(np.random.default_rng(seed), 40_000, 0.8))
        fast.append(single_server(np.random.default_rng(seed), 40_000, 0.8, scale=0.95))
    found = difference(fast, slow, model)
    exact = 0.76 / 0.24 - 0.8 / 0.2
    assert found.low - 0.02 < exact < found.high + 0.02
    assert found.half_width < cost_of(*slow, model=model, controls=False).cost.half_width


def test_pairs_must_be_pairs():
    """Runs on other jobs, or in another number, have no paired difference; a shorter run cuts both."""
    a, b = records(np.arange(100.0)), records(np.arange(100.0), jobs=99.0)
    with pytest.raises(ParameterError, match="same jobs"):
        difference([a], [b], ONE)
    with pytest.raises(ParameterError, match="cannot be paired"):
        difference([a, a], [a], ONE)
    assert difference([a], [records(np.arange(80.0))], ONE, warmup=0) == Estimate(0.0, 0.0, 0.0)


def test_mser_finds_a_transient():
    """A transient that decays over 200 records is left out, and what follows is kept."""
    rng = np.random.default_rng(12)
    age = np.arange(4000)
    found = find_warmup([records(10.0 - 9.0 * np.exp(-age / 60.0) + 0.3 * rng.standard_normal(4000))], ONE)
    assert found.converging
    assert 150 <= found.cuts[0] <= 800
    assert found.jobs == 100 * found.cuts[0]


def test_mser_keeps_a_settled_run():
    """Of settled series MSER-5 leaves out little on average, and reports them as converging."""
    cuts = [find_warmup([records(one)], ONE) for one in ar1(np.random.default_rng(13), (2000, 100), 0.5).T]
    assert all(w.converging for w in cuts)
    assert np.mean([w.cuts[0] for w in cuts]) < 200


def test_mser_keeps_a_dear_beginning():
    """Runs start empty, so a beginning that cost more than the rest is chance and stays in."""
    series = np.append(np.full(200, 30.0), np.full(1800, 10.0)) + np.random.default_rng(20).normal(size=2000)
    assert find_warmup([records(series)], ONE).cuts == (0,)
    assert 200 <= find_warmup([records(40.0 - series)], ONE).cuts[0] <= 300


def test_mser_reports_a_drift():
    """A series that drifts for its whole length has its minimum at the edge: not converging."""
    found = find_warmup([records(np.linspace(1.0, 100.0, 1000))], ONE)
    assert not found.converging
    assert found.cuts == (500,)


def test_mser_is_its_definition():
    """The vectorised statistic has the same minimum as the definition, summed term by term."""
    values = 1e6 + np.cumsum(np.random.default_rng(14).standard_normal(101))
    direct = [np.sum((values[d:] - values[d:].mean()) ** 2) / (len(values) - d) ** 2 for d in range(51)]
    assert mser(values)[0] == int(np.argmin(direct))


@pytest.mark.parametrize(("jobs", "cut"), [(0, 0), (1, 1), (100, 1), (101, 2), (950, 9)])
def test_given_warmup(jobs, cut):
    """A given number of jobs leaves out the records that they came in, but never all."""
    assert find_warmup([records(np.ones(10))], ONE, jobs).cuts == (cut,)


def test_given_warmup_must_leave_something():
    """A warm-up of the whole run, or a negative one, is refused."""
    with pytest.raises(ParameterError, match="leaves nothing"):
        find_warmup([records(np.ones(10))], ONE, 1000)
    with pytest.raises(ParameterError, match="at least 0"):
        find_warmup([records(np.ones(10))], ONE, -1)


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32), st.floats(1e-6, 1e6), st.floats(0.1, 3.0))
def test_percentiles_within_a_bin(seed, scale, sigma):
    """Histogram percentiles lie within one bin, 2^-6 relative, of the sample's own."""
    values = scale * np.random.default_rng(seed).lognormal(0.0, sigma, 2000)
    histogram = np.histogram(values, bin_edges())[0].astype(float)
    exact = np.quantile(values, [0.5, 0.95, 0.99], method="inverted_cdf")
    np.testing.assert_allclose(list(percentiles(histogram)), exact, rtol=2.0**-6)


def test_percentiles_of_nothing_and_of_one_bin():
    """An empty histogram has no percentiles; values in one bin are spread evenly over it."""
    histogram = np.zeros(len(bin_edges()) - 1)
    assert percentiles(histogram) == (None, None, None)
    histogram[40 << 6] = 8.0
    np.testing.assert_allclose(
        quantiles(histogram, np.array([0.0, 0.5, 1.0])), 1.0 + np.array([0, 0.5, 1]) / 64
    )


def test_percentiles_leave_out_the_warmup():
    """Segments that overlap the warm-up do not count, unless no other is left."""
    histograms = np.zeros((8, 1, len(bin_edges()) - 1))
    histograms[:, 0, 7] = 2.0 ** np.arange(8)
    run = records(np.ones(80), response_histogram=histograms)
    kept = [kept_histogram([run], [cut], "response_histogram").sum() for cut in (0, 1, 10, 11, 75)]
    assert kept == [255.0, 254.0, 254.0, 252.0, 128.0]


def test_totals_of_a_queue():
    """Utilisation, jobs present and Little's law agree with M/M/1 theory."""
    run, model = single_server(np.random.default_rng(15), 400_000, 0.7), workload(mean_sizes=[0.7])
    found = totals([run], [0], model, 1.0)
    assert found.utilisation == pytest.approx(0.7, rel=0.01)
    assert found.effective_load == pytest.approx(0.7, rel=1e-4)
    assert found.present[0] == pytest.approx(0.7 / 0.3, rel=0.05)
    assert abs(found.little[0]) < 1e-4


def test_queue_intervals_cover():
    """Over 200 runs of M/M/1 at load 0.7, warm-up found, 95 % intervals cover the exact 1/(μ−λ)."""
    rng, model, found = np.random.default_rng(16), workload(mean_sizes=[0.7]), []
    for _ in range(200):
        runs = [single_server(rng, 40_000, 0.7)]
        found.append(estimate(runs, model, find_warmup(runs, model)))
    assert 0.92 <= coverage([e.cost for e in found], 0.7 / 0.3) <= 0.98
    assert np.mean([e.controls.used for e in found]) > 0.8


def test_stable_queues_are_called_stable():
    """Of 200 settled M/M/1 runs at load 0.8, hardly any is suspected of growing."""
    rng = np.random.default_rng(17)
    flagged = [not stability([single_server(rng, 40_000, 0.8)]).stable for _ in range(200)]
    assert sum(flagged) <= 2


def test_unstable_queues_are_called_unstable():
    """At load 1.1 every run is found to grow, and the reason gives the numbers."""
    rng = np.random.default_rng(18)
    found = [stability([single_server(rng, 20_000, 1.1)]) for _ in range(50)]
    assert not any(s.stable for s in found)
    assert "jobs present grow" in found[0].reason


def test_lag_one():
    """Von Neumann's estimate is near φ for an AR(1) series and 0 for a constant."""
    assert lag_one(ar1(np.random.default_rng(19), (50_000, 1), 0.6)[:, 0]) == pytest.approx(0.6, abs=0.02)
    assert lag_one(np.ones(5)) == 0.0
