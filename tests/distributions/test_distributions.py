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
from scipy import stats

from malleable.contracts import Distribution
from malleable.distributions.bounded_pareto import BoundedPareto
from malleable.distributions.empirical import Empirical
from malleable.distributions.gamma import Gamma
from malleable.distributions.lognormal import Lognormal
from malleable.distributions.phase_type import PhaseType
from malleable.distributions.scipy import Scipy
from malleable.distributions.weibull import Weibull
from malleable.errors import MalleableError, ParameterError, UnsupportedError
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
@settings(max_examples=40, deadline=None)
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


# Numerical care ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [1.0, 2.0, 3.0])
def test_bounded_pareto_is_continuous_where_the_order_is_the_shape(shape):
    """At order = shape the formula's limit is taken: no jump against shapes an ulp or 1e-9 away."""
    at = BoundedPareto(shape, 0.5, 2000.0).moment(int(shape))
    for near in (math.nextafter(shape, 0), math.nextafter(shape, 9), shape + 1e-9):
        assert BoundedPareto(near, 0.5, 2000.0).moment(int(shape)) == pytest.approx(at, rel=1e-7)


def test_bounded_pareto_of_no_width_and_of_great_width():
    """Neither bounds an ulp apart nor bounds 400 decades apart break the moments or the samples."""
    narrow = BoundedPareto(1.3, 2.0, math.nextafter(2.0, 3.0))
    assert narrow.moment(3) == pytest.approx(8.0, rel=1e-14)
    wide = BoundedPareto(0.5, 1e-200, 1e200)
    assert 0.0 < wide.moment(1) < 1e200
    samples = wide.sample(np.random.default_rng(0), 1000)
    assert ((samples >= 1e-200) & (samples <= 1e200)).all()


def test_moments_that_no_float_can_hold_are_infinite():
    """Overflow is an infinite moment, not an exception."""
    assert Lognormal(1.0, 40.0).moment(3) == inf
    assert Weibull(0.001, 1.0).moment(3) == inf


@pytest.mark.parametrize("law", [Gamma(0.001, 1.0), Weibull(0.002, 1.0), Lognormal(1.0, 60.0)])
def test_samples_that_underflow_stay_positive(law):
    """Even laws with most of their mass below the smallest float never draw 0."""
    samples = law.sample(np.random.default_rng(2), 10_000)
    assert (samples > 0.0).all()
    assert np.isfinite(samples).all()


def test_phase_type_accepts_rounding_in_its_sums():
    """Sums of 0 and of 1 may be off by rounding, and rounding never makes an exit."""
    law = PhaseType([1 / 3, 1 / 3, 1 / 3], [[-0.3, 0.1, 0.2], [0.0, -1.0, 1.0], [0.0, 0.0, -2.0]])
    assert law._exits.tolist() == [0.0, 0.0, 2.0]
    assert law.sample(np.random.default_rng(0), 100).min() > 0.0


def test_phase_type_holds_numpy_arrays():
    """Parameters may come as arrays; they are kept as tuples."""
    law = PhaseType(np.array([1.0, 0.0]), np.array([[-1.0, 0.5], [0.0, -2.0]]))
    assert law.generator == ((-1.0, 0.5), (0.0, -2.0))


# Files of measurements -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1.5\n2\n4e0\n",
        "size\n1.5\n2\n4\n",
        "\ufeff# in May\n\nsize,\n1.5,\n 2 # odd\n4",
        '"size"\n"1.5"\n2\n4\n',
    ],
)
def test_empirical_reads_files(tmp_path, text):
    """A file of one number a line may have a header, comments, blank lines and trailing commas."""
    file = tmp_path / "sizes.csv"
    file.write_text(text, encoding="utf-8")
    law = Distribution.of({"kind": "empirical", "file": str(file)})
    assert law == Empirical((1.5, 2.0, 4.0))
    assert law == Distribution.of({"kind": "empirical", "file": file})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"size\n1.0\nabc\n", "line 3"),
        (b"1.0\nsize\n2.0\n", "line 2"),
        (b"1.0\n-2.0\n", "line 2"),
        (b"0\n", "line 1"),
        (b"nan\n1.0\n", "line 1"),
        (b"1.0\ninf\n", "line 2"),
        (b"1,2\n3,4\n", "line 1"),
        (b"", "no numbers"),
        (b"size\n", "no numbers"),
        (b"\xff\xfe\x00", "not a text file"),
    ],
)
def test_empirical_names_the_bad_line(tmp_path, text, words):
    """A bad file is an error that names the key, the file and the line."""
    file = tmp_path / "sizes.csv"
    file.write_bytes(text)
    with pytest.raises(ParameterError) as caught:
        Distribution.of({"kind": "empirical", "file": str(file)})
    assert caught.value.sentence.startswith("file: ")
    assert "sizes.csv" in caught.value.sentence
    assert words in caught.value.sentence
    assert caught.value.hint


# Laws of scipy.stats -------------------------------------------------------------------------------------


def test_frozen_laws_are_recognised():
    """A frozen law, its positional and its keyword form, and the document are one and the same value."""
    law = Distribution.of(stats.invgauss(1.0, scale=2.0))
    assert law == Distribution.of(stats.invgauss(mu=np.float64(1.0), scale=2))
    assert law == law_of("scipy", EXAMPLES["scipy"][0])
    assert law.to_dict() == {"kind": "scipy", "law": "invgauss", "parameters": {"mu": 1.0, "scale": 2.0}}


@pytest.mark.parametrize(
    ("law", "orders"),
    [
        (stats.pareto(2.5), [3]),
        (stats.invweibull(2.5, loc=1), [3]),
        (stats.lomax(2.0), [2, 3]),
        (stats.fisk(1.2), [2]),
    ],
)
def test_infinite_moments_of_scipy_laws_are_infinite(law, orders):
    """Where scipy returns a negative number, nan or a divergent integral, the moment is infinite."""
    assert all(Distribution.of(law).moment(order) == inf for order in orders)
    assert math.isfinite(Distribution.of(law).mean)


@pytest.mark.parametrize(
    "law", [stats.lognorm(2.0), stats.weibull_min(0.3), stats.expon(), stats.pareto(3.01)]
)
def test_finite_moments_of_scipy_laws_are_scipys(law):
    """Heavy but finite tails are not taken for infinite ones."""
    for order in (1, 2, 3):
        assert Distribution.of(law).moment(order) == pytest.approx(law.moment(order), rel=1e-12)


def test_own_laws_work_but_have_no_document():
    """A law scipy.stats does not name can be sampled and scaled; writing it down is an error with a hint."""
    histogram = stats.rv_histogram(np.histogram([1.0, 2.0, 2.0, 3.0], bins=3), density=True)()
    law = Distribution.of(histogram)
    assert law.scaled(2.0).mean == pytest.approx(2.0 * histogram.mean())
    assert hash(law) == hash(Distribution.of(histogram))
    assert (law.sample(np.random.default_rng(0), 100) >= 1.0).all()
    with pytest.raises(UnsupportedError, match="empirical"):
        law.to_dict()


def test_a_frozen_law_takes_no_further_arguments():
    """Parameters beside a frozen law would be silently lost, so they are refused."""
    with pytest.raises(ParameterError, match="already has"):
        Scipy(stats.expon(), (("scale", 2.0),))


# Wrong input ---------------------------------------------------------------------------------------------

NUMBERS = (0.0, -1.0, inf, math.nan, "1", None, True)
WRONG = [
    *(("exponential", "rate", {"rate": x}) for x in NUMBERS),
    *(("exponential", "mean", {"mean": x}) for x in NUMBERS),
    ("exponential", "rate", {}),
    ("exponential", "mean", {"rate": 1.0, "mean": 1.0}),
    *(("hyperexponential", "rates", {"probabilities": [0.5, 0.5], "rates": [1.0, x]}) for x in NUMBERS),
    ("hyperexponential", "rates", {"probabilities": [0.5, 0.5], "rates": [1.0]}),
    ("hyperexponential", "rates", {"probabilities": [0.5, 0.5], "rates": 1.0}),
    ("hyperexponential", "rates", {"probabilities": [0.5, 0.5]}),
    ("hyperexponential", "probabilities", {"probabilities": [0.5, 0.6], "rates": [1.0, 2.0]}),
    ("hyperexponential", "probabilities", {"probabilities": [0.5, 0.5 - 2e-9], "rates": [1.0, 2.0]}),
    ("hyperexponential", "probabilities", {"probabilities": [1.5, -0.5], "rates": [1.0, 2.0]}),
    ("hyperexponential", "probabilities", {"probabilities": [], "rates": []}),
    *(("erlang", "stages", {"stages": x, "mean": 1.0}) for x in (0, -2, 1.5, "2", None)),
    *(("erlang", "mean", {"stages": 2, "mean": x}) for x in NUMBERS),
    ("erlang", "stages", {"mean": 1.0}),
    ("erlang", "rate", {"stages": 2}),
    ("phase_type", "initial", {"initial": [0.5, 0.4], "generator": [[-1.0, 0.0], [0.0, -1.0]]}),
    ("phase_type", "initial", {"initial": [], "generator": []}),
    ("phase_type", "generator", {"initial": [1.0], "generator": [[-1.0, 0.0], [0.0, -1.0]]}),
    ("phase_type", "generator[1]", {"initial": [1.0, 0.0], "generator": [[-1.0, 0.0], [0.0]]}),
    ("phase_type", "generator[0][1]", {"initial": [1.0, 0.0], "generator": [[-1.0, -0.1], [0.0, -1.0]]}),
    ("phase_type", "generator[1][1]", {"initial": [1.0, 0.0], "generator": [[-1.0, 0.1], [0.0, 0.0]]}),
    ("phase_type", "generator[0]", {"initial": [1.0, 0.0], "generator": [[-1.0, 1.1], [0.0, -1.0]]}),
    ("phase_type", "generator", {"initial": [1.0, 0.0], "generator": [[-1.0, 1.0], [1.0, -1.0]]}),
    ("phase_type", "generator", {"initial": [1.0, 0, 0], "generator": [[-1, 0, 0], [0, -1, 1], [0, 1, -1]]}),
    ("phase_type", "generator[0][0]", {"initial": [1.0], "generator": [[math.nan]]}),
    ("phase_type", "generator[0][0]", {"initial": [1.0], "generator": [[-inf]]}),
    ("phase_type", "generator", {"initial": [1.0]}),
    ("coxian", "probabilities", {"rates": [1.0, 2.0], "probabilities": [0.5, 0.5]}),
    ("coxian", "probabilities", {"rates": [1.0, 2.0], "probabilities": [1.5]}),
    ("coxian", "rates", {"rates": [1.0, 0.0], "probabilities": [0.5]}),
    ("coxian", "rates", {"rates": [], "probabilities": []}),
    *(("lognormal", "mean", {"mean": x, "sigma": 1.0}) for x in NUMBERS),
    *(("lognormal", "sigma", {"mean": 1.0, "sigma": x}) for x in NUMBERS),
    ("lognormal", "mean", {"sigma": 1.0}),
    *(("weibull", "shape", {"shape": x, "mean": 1.0}) for x in NUMBERS),
    *(("weibull", "mean", {"shape": 1.0, "mean": x}) for x in NUMBERS),
    *(("pareto", "shape", {"shape": x, "mean": 1.0}) for x in (*NUMBERS, 1.0, 0.5)),
    *(("pareto", "mean", {"shape": 2.0, "mean": x}) for x in NUMBERS),
    *(("bounded_pareto", "shape", {"shape": x, "low": 1.0, "high": 2.0}) for x in NUMBERS),
    *(("bounded_pareto", "low", {"shape": 1.0, "low": x, "high": 2.0}) for x in NUMBERS),
    *(("bounded_pareto", "high", {"shape": 1.0, "low": 1.0, "high": x}) for x in (*NUMBERS, 1.0, 0.5)),
    *(("gamma", "shape", {"shape": x, "mean": 1.0}) for x in NUMBERS),
    *(("gamma", "mean", {"shape": 1.0, "mean": x}) for x in NUMBERS),
    *(("uniform", "low", {"low": x, "high": 2.0}) for x in NUMBERS[1:]),
    *(("uniform", "high", {"low": 1.0, "high": x}) for x in (*NUMBERS, 1.0, 0.5)),
    *(("deterministic", "value", {"value": x}) for x in NUMBERS),
    *(("empirical", "values[1]", {"values": [1.0, x]}) for x in NUMBERS),
    ("empirical", "values", {"values": []}),
    ("empirical", "values", {}),
    ("empirical", "file", {"file": "no/such/file.txt"}),
    ("empirical", "file", {"file": "."}),
    ("empirical", "file", {"file": 3}),
    ("empirical", "file", {"file": "sizes.csv", "values": [1.0]}),
    ("scipy", "law", {"law": "norm"}),
    ("scipy", "law", {"law": "expon", "parameters": {"loc": -1.0}}),
    ("scipy", "law", {"law": "poisson", "parameters": {"mu": 1.0}}),
    ("scipy", "law", {"law": "halfcauchy"}),
    ("scipy", "law", {"law": "invgaus", "parameters": {"mu": 1.0}}),
    ("scipy", "law", {"law": 3}),
    ("scipy", "law", {"parameters": {}}),
    ("scipy", "parameters", {"law": "invgauss"}),
    ("scipy", "parameters", {"law": "invgauss", "parameters": {"nu": 1.0}}),
    ("scipy", "parameters", {"law": "invgauss", "parameters": {"mu": -1.0}}),
    ("scipy", "parameters.mu", {"law": "invgauss", "parameters": {"mu": "1"}}),
    ("scipy", "parameters", {"law": "invgauss", "parameters": [1.0]}),
    ("scipy", "factor", {"law": "expon", "factor": 0.0}),
]


@pytest.mark.parametrize(("kind", "key", "keys"), WRONG)
def test_wrong_parameters_are_named(kind, key, keys):
    """Every wrong parameter is a `ParameterError` of one sentence that names its key."""
    with pytest.raises(ParameterError) as caught:
        law_of(kind, keys)
    sentence = caught.value.sentence
    assert sentence.startswith((f"{key}: ", f"{key}[")) or repr(key) in sentence
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_keys_are_named(kind):
    """A key that the kind does not have is named."""
    with pytest.raises(MalleableError, match="has no key 'colour'"):
        law_of(kind, {**EXAMPLES[kind][0], "colour": 1.0})


def test_negative_frozen_laws_are_refused():
    """A law with negative values is refused with the reason and a way out."""
    with pytest.raises(ParameterError, match=r"norm takes negative values .* loc"):
        Distribution.of(stats.norm(10.0, 1.0))


def test_frozen_laws_of_many_variables_are_refused():
    """Array-valued arguments make many laws at once, and one is wanted."""
    with pytest.raises(ParameterError, match="scale"):
        Distribution.of(stats.expon(scale=[1.0, 2.0]))
