"""Laws of sizes from samples: moments are met, known laws are found again, densities are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from malleable import fit_sizes
from malleable.contracts import Distribution
from malleable.errors import MalleableError
from malleable.fitting import moments
from malleable.fitting.erlang_mixtures import fit_mixture
from malleable.fitting.sizes import NAMES
from support.examples import examples

KNOWN = {
    "exponential": {"kind": "exponential", "mean": 2.0},
    "erlang": {"kind": "erlang", "stages": 4, "mean": 2.0},
    "hyperexponential": {"kind": "hyperexponential", "probabilities": [0.9, 0.1], "rates": [2.0, 0.1]},
    "phase_type": {
        "kind": "phase_type",
        "initial": [0.5, 0.0, 0.5],
        "generator": [[-1.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -10.0]],
    },
}


def draw(document, count: int = 4000, seed: int = 0):
    return Distribution.of(document).sample(np.random.default_rng(seed), count)


@given(mean=st.floats(1e-3, 1e3), scv=st.floats(0.02, 50.0))
@settings(max_examples=examples(32))
def test_coxian_has_the_moments(mean, scv):
    """Mean and variation of the Coxian law are those asked for, by its own matrices."""
    law, _ = moments.coxian(mean, scv)
    assert law.mean == pytest.approx(mean, rel=1e-4)
    assert law.scv == pytest.approx(scv, rel=2e-4, abs=1e-4)


@given(
    share=st.floats(0.05, 0.95),
    first=st.floats(0.1, 10.0),
    factor=st.floats(2.0, 100.0),
    scale=st.floats(1e-3, 1e3),
)
@settings(max_examples=examples(32))
def test_hyperexponential_is_found_from_its_three_moments(share, first, factor, scale):
    """The law with the three moments of a hyperexponential law of two phases is that law."""
    truth = Distribution.of(
        {"kind": "hyperexponential", "probabilities": [share, 1.0 - share], "rates": [first, first * factor]}
    ).scaled(scale)
    law, _ = moments.hyperexponential(truth.mean, truth.scv, truth.third_moment)
    for order in (1, 2, 3):
        assert law.moment(order) == pytest.approx(truth.moment(order), rel=1e-3)


def test_balanced_means_where_three_moments_are_out_of_reach():
    """A third moment too small for two phases: mean and variation are kept."""
    law, _ = moments.hyperexponential(2.0, 4.0, 1.0)
    assert (law.mean, law.scv) == (pytest.approx(2.0, rel=1e-5), pytest.approx(4.0, rel=1e-4))


@pytest.mark.parametrize("family", NAMES)
def test_survival_and_density_are_those_of_the_law(family):
    """Against the matrix exponential of the law's own (p, Q): survival p·e^{Qx}·1, density −p·e^{Qx}·Q·1."""
    fit = fit_sizes(draw(KNOWN["hyperexponential"]), family)
    p, Q = fit.size.phase_type()
    x = np.array([0.01, 0.3, 1.0, 4.0, 20.0])
    grown = [p @ expm(Q * value) for value in x]
    assert fit.mixture.survival(x) == pytest.approx([one.sum() for one in grown], rel=1e-3)
    density = [-(one @ Q.sum(axis=1)) for one in grown]
    assert np.exp(fit.mixture.log_density(x)) == pytest.approx(density, rel=1e-3)


@pytest.mark.parametrize("family", KNOWN)
def test_known_laws_are_found_again(family):
    """Chosen by BIC from 4000 samples, the law is of the true kind, and nowhere off by more than 2.5 %."""
    fit = fit_sizes(draw(KNOWN[family]))
    assert fit.size.kind == family
    fresh = np.sort(draw(KNOWN[family], 20_000, seed=1))
    empirical = 1.0 - np.arange(1, 20_001) / 20_000
    assert np.abs(fit.mixture.survival(fresh) - empirical).max() < 0.025


@pytest.mark.parametrize(
    "document",
    [{"kind": "lognormal", "mean": 1.0, "sigma": 1.5}, {"kind": "weibull", "shape": 0.5, "mean": 1.0}],
)
def test_other_laws_are_approached(document):
    """Laws that are not of phase type: means agree, and the distribution function is within 3 %."""
    x = draw(document)
    fit = fit_sizes(x)
    assert fit.size.mean == pytest.approx(x.mean(), rel=1e-3)
    assert fit.distance < 0.03


def test_em_does_not_fall():
    """More phases never describe the samples worse by BIC: smaller mixtures stay among the candidates."""
    x = draw(KNOWN["phase_type"])
    scores = [fit_mixture(x, phases).bic(x, np.ones(len(x))) for phases in (1, 2, 3, 4)]
    assert scores == sorted(scores, reverse=True)


def test_many_samples_are_grouped():
    """Twenty thousand samples in groups of neighbours: the mean is kept, the fit stays the same to 2 %."""
    x = draw(KNOWN["phase_type"], 20_000)
    fit = fit_sizes(x, "phase_type")
    assert fit.size.mean == pytest.approx(x.mean(), rel=1e-4)
    assert fit.distance < 0.02


def test_distance_is_that_of_kolmogorov_and_smirnov():
    """Against scipy's statistic for an exponential law."""
    from scipy.stats import expon, kstest

    x = draw(KNOWN["exponential"], 500)
    fit = fit_sizes(x, "exponential")
    assert fit.distance == pytest.approx(kstest(x, expon(scale=x.mean()).cdf).statistic, rel=1e-6)


def test_a_file(tmp_path):
    """One number per line; the line that is printed is the law."""
    file = tmp_path / "sizes.txt"
    file.write_text("# seconds\nsize\n1.0\n2.0\n4.0\n")
    assert fit_sizes(file, "erlang").line == fit_sizes([1.0, 2.0, 4.0], "erlang").line
    assert fit_sizes(file, "exponential").line == 'size = { kind = "exponential", rate = 0.428571 }'


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([], "must not be empty"),
        ([1.0], "there is only one size"),
        ([2.0, 2.0], "sizes are all equal to 2"),
        ([1.0, -1.0], "greater than 0"),
        ([1.0, math.nan], "greater than 0|finite"),
        ([1.0, "x"], "cannot read sizes"),
        (3, "cannot read sizes"),
        ("nowhere.txt", "cannot read 'nowhere"),
    ],
)
def test_bad_samples(source, words):
    """One sentence and a hint."""
    with pytest.raises(MalleableError, match=words) as caught:
        fit_sizes(source)
    assert caught.value.hint


def test_bad_questions():
    """A family that does not exist, too many phases, and a law that has no such moments."""
    with pytest.raises(MalleableError, match="no family 'gamma'"):
        fit_sizes([1.0, 2.0], "gamma")
    with pytest.raises(MalleableError, match="phases must be at most"):
        fit_sizes([1.0, 2.0], phases=100)
    with pytest.raises(MalleableError, match="below that of any hyperexponential"):
        fit_sizes([1.0, 2.0], "hyperexponential")
