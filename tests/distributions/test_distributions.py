"""Every law of the catalog keeps the contract `Distribution`, and its numbers agree with independent ones.

The conformance tests list the catalog: a new family is tested as soon as its file and its example exist.
"""

from __future__ import annotations

import math
import pickle
from math import factorial, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.contracts import Distribution
from malleable.distributions.gamma import Gamma
from support.examples import examples
from support.size_laws import CASES, EXAMPLES, KINDS, LAWS, RANDOM, REFERENCES, REFERRED, law_of, positive


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_example(kind):
    """Each kind in the catalog is exercised by the tests below."""
    assert EXAMPLES.get(kind), f"add an example of {kind!r} to EXAMPLES"


@pytest.mark.parametrize(("kind", "keys"), REFERRED)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_moments_agree_with_independent_ones(kind, keys, order):
    """Closed forms equal scipy's, or the integral of r x^(r−1) P(X > x), to nine digits."""
    if kind == "pareto" and order >= keys["shape"]:
        assert law_of(kind, keys).moment(order) == inf  # scipy returns a negative number here
    else:
        assert law_of(kind, keys).moment(order) == pytest.approx(
            REFERENCES[kind](keys).moment(order), rel=1e-9
        )


@pytest.mark.parametrize(("kind", "keys"), REFERRED)
def test_samples_follow_the_law(kind, keys):
    """The empirical distribution function stays within the Dvoretzky–Kiefer–Wolfowitz band at level 1e-9."""
    size = 20_000
    samples = np.sort(law_of(kind, keys).sample(np.random.default_rng(7), size))
    x = np.unique(samples[np.linspace(0, size - 1, 60).astype(int)])
    seen = np.searchsorted(samples, x, side="right") / size
    band = math.sqrt(math.log(2 / 1e-9) / (2 * size))
    assert np.abs(seen - REFERENCES[kind](keys).cdf(x * (1 + 1e-12))).max() < band


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_sample_moments_agree(kind, keys):
    """Means of X^r over many samples are within 6 standard errors, wherever E[X^2r] is finite."""
    law, size = law_of(kind, keys), 200_000
    samples = law.sample(np.random.default_rng(11), size)
    for order in (1, 2, 3):
        variance = law.moment(2 * order) - law.moment(order) ** 2
        if math.isfinite(variance):
            error = math.sqrt(max(variance, 0.0) / size) + 1e-12 * law.moment(order)
            assert abs(np.mean(samples**order) - law.moment(order)) < 6 * error


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_samples_are_positive_floats_and_repeatable(kind, keys):
    """Samples are float64, positive and finite, as many as asked for, and the generator's alone."""
    law = law_of(kind, keys)
    samples = law.sample(np.random.default_rng(3), 1000)
    assert samples.dtype == np.float64
    assert samples.shape == (1000,)
    assert np.isfinite(samples).all()
    assert (samples > 0.0).all()
    assert (samples == law.sample(np.random.default_rng(3), 1000)).all()
    assert law.sample(np.random.default_rng(3), 0).shape == (0,)


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_documents_round_trip(kind, keys):
    """A law is a value: it hashes, pickles, and is read back equal from its own document."""
    law = law_of(kind, keys)
    again = Distribution.of(law.to_dict())
    assert again == law
    assert hash(again) == hash(law)
    assert law.to_dict()["kind"] == kind
    assert pickle.loads(pickle.dumps(law)) == law
    assert again.moment(2) == law.moment(2)


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_mean_and_scv_are_those_of_the_moments(kind, keys):
    """`mean`, `scv` and `third_moment` agree with `moment`."""
    law = law_of(kind, keys)
    assert isinstance(law.moment(1), float)
    assert law.mean == pytest.approx(law.moment(1), rel=1e-12)
    assert law.moment(0) == pytest.approx(1.0, rel=1e-12)
    assert law.third_moment == law.moment(3)
    if math.isfinite(law.moment(2)):
        assert law.scv == pytest.approx(law.moment(2) / law.mean**2 - 1.0, abs=1e-12)
    else:
        assert law.scv == inf


@pytest.mark.parametrize(("kind", "keys"), LAWS)
@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_scaled_scales_every_moment_and_sample(kind, keys, factor):
    """E[(cX)^r] = c^r E[X^r], and from the same seed the samples are c times as large."""
    law = law_of(kind, keys)
    scaled = law.scaled(factor)
    for order in (1, 2, 3):
        assert scaled.moment(order) == pytest.approx(factor**order * law.moment(order), rel=1e-10)
    samples = law.sample(np.random.default_rng(5), 50)
    assert scaled.sample(np.random.default_rng(5), 50) == pytest.approx(factor * samples, rel=1e-10)


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_phase_type_form_has_the_same_moments(kind, keys):
    """Where a law has the form (p, Q), r! p (−Q)^(−r) 1 is its r-th moment."""
    law = law_of(kind, keys)
    form = law.phase_type()
    if form is not None:
        assert_same_moments(law, form)


def assert_same_moments(law, form):
    p, Q = form
    inverse = np.linalg.inv(-Q)
    assert p.sum() == pytest.approx(1.0)
    for order in (1, 2, 3):
        expected = factorial(order) * (p @ np.linalg.matrix_power(inverse, order)).sum()
        assert law.moment(order) == pytest.approx(expected, rel=1e-9)


def test_which_laws_have_a_phase_type_form():
    """All laws built from exponential phases say so, gamma at whole shapes, and no other law does."""
    with_form = {kind for kind, keys in CASES if law_of(kind, keys).phase_type() is not None}
    assert with_form == {"exponential", "hyperexponential", "erlang", "phase_type", "coxian", "gamma"}
    assert Gamma(2.5, 1.0).phase_type() is None
    assert Gamma(1e9, 1.0).phase_type() is None  # a matrix of that size would not fit


# Parameters at random ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(16))
@given(data=st.data())
def test_any_parameters_keep_the_contract(kind, data):
    """Everywhere moments obey Lyapunov's inequality, scale and match (p, Q), and documents round-trip."""
    examples = st.sampled_from([law_of(kind, keys) for keys in EXAMPLES[kind]])
    law = data.draw(RANDOM.get(kind, examples))
    first, second, third = (law.moment(order) for order in (1, 2, 3))
    assert 0.0 < first < inf
    assert second >= first**2 * (1 - 1e-12)
    assert first * third >= second**2 * (1 - 1e-12) or second == inf
    factor = data.draw(positive)
    assert law.scaled(factor).moment(3) == pytest.approx(factor**3 * third, rel=1e-9)
    assert law.scaled(factor).kind == kind
    assert Distribution.of(law.to_dict()) == law
    samples = law.sample(np.random.default_rng(1), 20)
    assert (samples > 0.0).all()
    form = law.phase_type()
    if form is not None:
        assert_same_moments(law, form)
