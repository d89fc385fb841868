"""What single laws do at their limits: ranges, rounding, files, and laws of `scipy.stats`."""

from __future__ import annotations

import math
from math import inf

import numpy as np
import pytest
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
from support.size_laws import EXAMPLES, law_of

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
    """A file of one number per line may have a header, comments, blank lines and trailing commas."""
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


@pytest.mark.parametrize("scv", [1.0, 1.5, 5.0, 400.0, 1e8])
def test_a_hyperexponential_law_by_mean_and_scv(scv):
    """Two branches with balanced means have the mean and the squared coefficient of variation asked for."""
    law = Distribution.of({"kind": "hyperexponential", "mean": 2.5, "scv": scv})
    assert law.mean == pytest.approx(2.5, rel=1e-12)
    assert law.scv == pytest.approx(scv, rel=1e-9)
    halves = [p / rate for p, rate in zip(law.probabilities, law.rates, strict=True)]
    assert halves == pytest.approx([1.25, 1.25])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"mean": 2.0}, "how sizes vary"),
        ({"scv": 2.0}, "'rates' or 'mean'"),
        ({"mean": 2.0, "scv": 0.5}, "scv"),
        ({"mean": -1.0, "scv": 2.0}, "mean"),
        ({"mean": 2.0, "scv": 2.0, "rates": [1.0, 2.0]}, "not both"),
    ],
)
def test_a_hyperexponential_law_needs_both(keys, message):
    """Mean and scv stand together, and say so in one line."""
    with pytest.raises(MalleableError, match=message):
        Distribution.of({"kind": "hyperexponential", **keys})
