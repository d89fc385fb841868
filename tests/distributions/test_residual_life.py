"""What a law says about a job that has had some work done: survival, and the mean of what remains."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.bounded_pareto import BoundedPareto
from malleable.distributions.coxian import Coxian
from malleable.distributions.erlang import Erlang
from malleable.distributions.exponential import Exponential
from malleable.distributions.gamma import Gamma
from malleable.distributions.hyperexponential import Hyperexponential
from malleable.distributions.lognormal import Lognormal
from malleable.distributions.pareto import Pareto
from malleable.distributions.phase_type import PhaseType
from malleable.distributions.weibull import Weibull
from malleable.errors import UnsupportedError
from support.examples import examples
from support.size_laws import (
    CYCLIC,
    EXAMPLES,
    KINDS,
    LAWS,
    RANDOM,
    REFERENCES,
    REFERRED,
    Phases,
    law_of,
    positive,
)

AGES = np.array([0.0, 0.03, 0.4, 0.97, 1.6, 5.0, 21.0])
"""In mean sizes."""
BOUNDED = {"bounded_pareto", "deterministic", "empirical", "uniform"}


def corners(law):
    """Where the survival function of a law has jumps or kinks."""
    named = [getattr(law, name, ()) for name in ("low", "high", "value", "values")]
    own = [law._scale] if isinstance(law, Pareto) else []
    return np.concatenate([*map(np.atleast_1d, named), own, np.arange(1.0, 7.0)])


def integral_above(sf, a, law):
    """∫ₐ^∞ sf by quad over doubling pieces, cut at the corners, until a piece adds nothing."""
    total, low, width = 0.0, a, 0.1 * law.mean
    ahead = sorted(corners(law)[corners(law) > a])
    while True:
        high = min([low + width, *ahead[:1]])
        piece = integrate.quad(sf, low, high, epsabs=0.0, epsrel=1e-12, limit=200)[0]
        total += piece
        if high in ahead:
            ahead.remove(high)
        elif piece <= 1e-13 * total:
            return total
        else:
            width *= 2.0
        low = high


# Against independent numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "keys"), REFERRED)
def test_survival_agrees_with_an_independent_one(kind, keys):
    """P(X > x) is scipy's, or that of the matrix exponential, to ten digits of itself, not of 1."""
    law, reference = law_of(kind, keys), REFERENCES[kind](keys)
    ages = AGES * law.mean
    expected = np.array([reference.sf(a) for a in ages])
    assert law.survival(ages) == pytest.approx(expected, rel=1e-10, abs=1e-200)


@pytest.mark.parametrize(("kind", "keys"), REFERRED)
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_mean_remaining_agrees_with_an_independent_quadrature(kind, keys):
    """E[X − a | X > a] = ∫ₐ^∞ P(X > t) dt / P(X > a), integrated piece by piece, to nine digits."""
    law, reference = law_of(kind, keys), REFERENCES[kind](keys)
    # Matrix exponentials are slow to integrate.
    ages = (AGES[3:6:2] if isinstance(reference, Phases) else AGES[1:]) * law.mean
    found = law.mean_remaining(ages)
    for a, remaining in zip(ages.tolist(), found.tolist(), strict=True):
        if kind in {"deterministic", "empirical"}:
            above = [v - a for v in reference.values if v > a]
            assert remaining == pytest.approx(math.fsum(above) / max(len(above), 1), rel=1e-13)
        elif (alive := reference.sf(a)) > 0.0:
            expected = integral_above(reference.sf, a, law) / alive
            assert remaining == pytest.approx(expected, rel=1e-9)
        else:
            assert remaining == 0.0 or kind not in BOUNDED


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_survival_is_the_share_of_larger_samples(kind, keys):
    """Kolmogorov and Smirnov: 100,000 samples stay in the Dvoretzky–Kiefer–Wolfowitz band at level 1e-9."""
    law, size = law_of(kind, keys), 100_000
    samples = np.sort(law.sample(np.random.default_rng(17), size))
    x = np.unique(samples[:: size // 500])
    seen = 1.0 - np.searchsorted(samples, x, side="right") / size
    assert np.abs(seen - law.survival(x)).max() < math.sqrt(math.log(2 / 1e-9) / (2 * size))


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_remaining_samples_have_that_mean(kind, keys):
    """Of 200,000 samples, those above an age exceed it by the mean that remains, within 6 standard errors."""
    law = law_of(kind, keys)
    samples = law.sample(np.random.default_rng(23), 200_000)
    for a in (0.3 * law.mean, 1.1 * law.mean):
        above = samples[samples > a] - a
        if math.isfinite(law.moment(2)) and len(above) > 100:
            error = above.std() / math.sqrt(len(above)) + 1e-12 * law.mean
            assert abs(above.mean() - float(law.mean_remaining(np.array(a)))) < 6 * error


# The contract --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_the_shape_of_the_answers(kind, keys):
    """Both are float64 arrays of the shape of the ages; before any work the mean remains, and all survive."""
    law = law_of(kind, keys)
    for shape in ((), (0,), (6,), (2, 3)):
        ages = np.full(shape, 0.5 * law.mean)
        for answer in (law.survival(ages), law.mean_remaining(ages)):
            assert np.shape(answer) == shape
            assert answer.dtype == np.float64
    zero = np.zeros(1)
    assert law.mean_remaining(zero)[0] == pytest.approx(law.mean, rel=1e-10)
    assert law.survival(zero)[0] == pytest.approx(1.0, rel=1e-14)
    assert law.survival(np.array([-1.0]))[0] == pytest.approx(1.0, rel=1e-14)
    assert pickle.loads(pickle.dumps(law)) == law


@pytest.mark.parametrize(("kind", "keys"), LAWS)
def test_far_ages_have_finite_answers(kind, keys):
    """To 10,000 means and beyond, nothing is nan, infinite or negative; 0 remains only of what has ended."""
    law = law_of(kind, keys)
    ages = np.concatenate([np.geomspace(1e-9, 1e4, 400), [1e6, 1e9, 1e12]]) * law.mean
    remaining, alive = law.mean_remaining(ages), law.survival(ages)
    assert np.isfinite(remaining).all()
    assert (remaining >= 0.0).all()
    assert (remaining[alive > 0.0] > 0.0).all()
    assert (np.diff(alive) <= 1e-12 * alive[:-1]).all()
    ends = kind in BOUNDED or keys.get("law") == "randint"
    assert (remaining[alive == 0.0] == 0.0).all() if ends else (remaining > 0.0).all()


def integral_between(law, low, high):
    """∫ of the survival function from low to high, by Gauss and Legendre on 400 pieces."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.unique(np.clip(np.concatenate([np.geomspace(low, high, 400), corners(law)]), low, high))
    half = 0.5 * np.diff(edges)
    x = edges[:-1, None] + half[:, None] * (1.0 + nodes)
    return float((law.survival(x) @ weights) @ half)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_any_parameters_keep_the_identity(kind, data):
    """P(X > a) m(a) = ∫ₐᵇ P(X > t) dt + P(X > b) m(b) for all laws and ages, and m(0) is the mean."""
    examples = st.sampled_from([law_of(kind, keys) for keys in EXAMPLES[kind]])
    law = data.draw(RANDOM.get(kind, examples))
    a, b = sorted(law.mean * data.draw(st.floats(0.01, 20.0)) for _ in range(2))
    ages = np.array([0.0, a, b, 1e4 * law.mean])
    remaining, alive = law.mean_remaining(ages), law.survival(ages)
    assert remaining[0] == pytest.approx(law.mean, rel=1e-10)
    assert np.isfinite(remaining).all()
    assert (remaining >= 0.0).all()
    area = alive * remaining
    between = integral_between(law, a, b) if a < b else 0.0
    assert area[1] == pytest.approx(between + area[2], rel=1e-10, abs=1e-250)
    factor = data.draw(positive)
    scaled = law.scaled(factor).mean_remaining(factor * ages[:1])
    assert scaled == pytest.approx(factor * remaining[:1], rel=1e-10)


# Shapes that are known -----------------------------------------------------------------------------------


@settings(max_examples=examples(8))
@given(st.integers(2, 60), positive)
def test_less_and_less_remains_of_an_erlang_job(stages, rate):
    """The more work is done, the less remains, from stages/rate down to one stage."""
    law = Erlang(stages, rate)
    remaining = law.mean_remaining(np.linspace(0.0, 30.0 * law.mean, 300))
    assert (np.diff(remaining) < 0.0).all()
    assert remaining[-1] > 1.0 / rate
    assert law.mean_remaining(np.array([1e9 * law.mean]))[0] == pytest.approx(1.0 / rate, rel=1e-6)


@settings(max_examples=examples(8))
@given(RANDOM["hyperexponential"])
def test_more_and_more_remains_of_a_hyperexponential_job(law):
    """The more work is done, the more remains, up to a job of the slowest branch."""
    remaining = law.mean_remaining(np.linspace(0.0, 30.0 * law.mean, 300))
    assert (np.diff(remaining) >= -1e-14 * law.mean).all()
    assert law.mean_remaining(np.array([1e7]))[0] == pytest.approx(1.0 / min(law.rates), rel=1e-12)


@settings(max_examples=examples(8))
@given(RANDOM["pareto"])
def test_what_remains_of_a_pareto_job_grows_like_its_age(law):
    """Above the scale, a/(α−1) remains at the age a."""
    ages = np.geomspace(1.0, 1e4, 50) * law.mean
    assert law.mean_remaining(ages) == pytest.approx(ages / (law.shape - 1.0), rel=1e-12)


@settings(max_examples=examples(8))
@given(st.integers(1, 12), positive, st.floats(0.0, 40.0))
def test_three_ways_to_an_erlang_law_agree(stages, rate, age):
    """Gamma ratios, the continued fraction and the matrix powers give one number."""
    law = Erlang(stages, rate)
    ages = np.array([age * law.mean])
    by_phases = PhaseType(*law.phase_type())
    assert by_phases.mean_remaining(ages) == pytest.approx(law.mean_remaining(ages), rel=1e-10)
    assert by_phases.survival(ages) == pytest.approx(law.survival(ages), rel=1e-10, abs=1e-250)
    as_gamma = Gamma(float(stages), law.mean).mean_remaining(ages)
    assert as_gamma == pytest.approx(law.mean_remaining(ages), rel=1e-10)


def test_a_weibull_law_of_shape_one_half_has_a_short_formula():
    """There m(a) = 2s(1 + √(a/s)), from the start to where the survival function has long underflowed."""
    law = Weibull(0.5, 2.0)  # s = 1
    ages = np.array([0.0, 1e-6, 1.0, 30.0, 1e4, 1e5, 1e8, 1e12])
    assert law.mean_remaining(ages) == pytest.approx(2.0 * (1.0 + np.sqrt(ages)), rel=1e-12)
    assert law.survival(ages) == pytest.approx(np.exp(-np.sqrt(ages)), rel=1e-12)


NORMAL_PLACES = [
    (sigma, z)
    for sigma in (1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0)
    for z in (-3.0, 0.5, 1.2, 3.0, 7.0, 30.0, 200.0)
    if abs(sigma * z) < 600.0 and (sigma < 30.0 or abs(sigma * (z - 0.5 * sigma)) < 600.0)
]


@pytest.mark.parametrize(("sigma", "z"), NORMAL_PLACES)
def test_lognormal_by_the_ratio_of_two_integrals(sigma, z):
    """m(a) = a E[e^(σ(Z−z)) − 1 | Z > z], where neither integral is a difference, for all σ and z."""
    law = Lognormal(math.exp(0.5 * sigma**2) if sigma < 30.0 else 1.0, sigma)
    a = math.exp(math.log(law.mean) + sigma * (z - 0.5 * sigma))
    u = np.linspace(0.0, max(sigma - z, 0.0) + 12.0 + abs(min(z, 0.0)), 400_001)
    u = u / max(z / 5.0, 1.0) if z > sigma else u
    density = np.exp(-z * u - 0.5 * u**2)
    # In logarithms, as e^(σu) overflows before the density has fallen.
    excess = -np.expm1(-sigma * u) * np.exp(sigma * u - z * u - 0.5 * u**2)
    expected = integrate.simpson(excess, x=u) / integrate.simpson(density, x=u)
    rounding = 1e-15 / sigma  # of a itself
    assert float(law.mean_remaining(np.array(a))) == pytest.approx(a * expected, rel=1e-10 + 40 * rounding)


@pytest.mark.parametrize("shape", [0.001, 0.5, 1.0, 1.0 + 1e-9, 2.0, 2.0 + 1e-9, 40.0, 1e7])
@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.7, 3.0, 30.0, 300.0])
def test_bounded_pareto_everywhere_between_its_ends(shape, width):
    """The closed forms and the rule meet: m is ∫ₐᴴ P(X > t) dt / P(X > a) for all shapes and widths."""
    law = BoundedPareto(shape, 1.0, math.exp(width))
    q = math.log1p(law.high - 1.0) if width < 0.5 else math.log(law.high)
    top = min(q, 60.0 / max(shape - 1.0, 1e-9))
    t, weights = np.polynomial.legendre.leggauss(200)
    edges = np.linspace(0.0, top, 41)
    t = (edges[:-1, None] + 0.5 * np.diff(edges)[:, None] * (1.0 + t)).ravel()
    weights = np.outer(0.5 * np.diff(edges), weights).ravel()
    weight = np.exp(-shape * t) if top == q else np.exp(-shape * t) * (t < top)
    expected = (weights * weight) @ np.expm1(t) * shape / -math.expm1(-shape * q)
    digits = 1e-7 if width < 1e-6 else 1e-10  # those that log H keeps
    assert float(law.mean_remaining(np.array(1.0))) == pytest.approx(expected, rel=digits)


# Chains --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [PhaseType([0.2, 0.5, 0.3], CYCLIC), Coxian([3.0, 1.0, 0.2], [0.7, 0.25]), Coxian([2.0, 3.0], [0.4])],
)
def test_phases_settle_to_the_slowest_decay(law):
    """Far out, what remains is exponential with the decay rate of the chain."""
    _, Q = law.phase_type()
    decay = -np.linalg.eigvals(Q).real.max()
    far = law.mean_remaining(np.array([1e3, 1e4, 1e12, 1e300]))
    assert far == pytest.approx(np.full(4, 1.0 / decay), rel=1e-12)


@pytest.mark.parametrize("rates", [[1e6, 1.0, 1.0001], [1e9, 1e-3, 1.0], [1e12, 1.0, 1.0000001]])
def test_stiff_chains_keep_their_digits(rates):
    """With rates twelve decades apart the powers of the chain agree with the sum of exponentials."""
    mixture = Hyperexponential([0.5, 0.3, 0.2], rates)
    chain = PhaseType(mixture.probabilities, np.diag(-np.array(rates)))
    ages = np.geomspace(1e-12, 500.0, 400) / min(rates)
    assert chain.survival(ages) == pytest.approx(mixture.survival(ages), rel=1e-11)
    assert chain.mean_remaining(ages) == pytest.approx(mixture.mean_remaining(ages), rel=1e-12)


def test_a_phase_that_is_never_left_for_a_slower_one():
    """What a job cannot reach does not matter, however much longer it would last."""
    law = PhaseType([1.0, 0.0], [[-1e3, 0.0], [0.0, -1.0]])
    assert law.mean_remaining(np.array([0.0, 1.0, 1e4])) == pytest.approx(np.full(3, 1e-3), rel=1e-12)


# Laws that give less -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Own(Distribution):
    """A law of a user's, known by its moments."""

    size: Positive = 1.0
    kind = "own"

    def moment(self, order):
        return 2.0 * self.size**order / ((order + 1) * (order + 2))

    def sample(self, rng, size):
        return self.size * (1.0 - rng.random(size) ** 0.5)

    def scaled(self, factor):
        return type(self)(self.size * factor)


class Triangular(Own):
    """Falling triangle, known by its survival function as well."""

    def survival(self, x):
        return np.clip(1.0 - x / self.size, 0.0, 1.0) ** 2


class Memoryless(Own):
    """An exponential law that does not say so."""

    def moment(self, order):
        return math.factorial(order) * self.size**order

    def survival(self, x):
        return np.exp(-x / self.size)


class TwoValues(Own):
    """1 or 4 times the size, with probability 1/3 and 2/3."""

    def moment(self, order):
        return self.size**order * (1.0 + 2.0 * 4.0**order) / 3.0

    def survival(self, x):
        return np.where(x < self.size, 1.0, np.where(x < 4.0 * self.size, 2.0 / 3.0, 0.0))


class Endless(Own):
    """P(X > x) = 1/√(1 + x), whose mean is infinite."""

    def moment(self, order):
        return inf if order else 1.0

    def survival(self, x):
        return 1.0 / np.sqrt(1.0 + x)


def test_a_law_without_survival_says_what_is_missing():
    """A law that gives moments and samples only still works, and this question has a clear answer."""
    with pytest.raises(UnsupportedError, match=r"own.*survival\(x\)"):
        Own().mean_remaining(np.zeros(3))
    with pytest.raises(UnsupportedError):
        Own().survival(np.zeros(3))


@pytest.mark.parametrize("size", [1e-9, 1.0, 3e7])
def test_survival_alone_is_enough(size):
    """Integrated numerically: (b − a)/3 of the triangle, and nothing beyond its end; all units alike."""
    ages = size * np.array([0.0, 0.1, 0.5, 0.999, 1.0, 2.0, 1e4])
    expected = np.maximum(size - ages, 0.0) / 3.0
    assert Triangular(size).mean_remaining(ages) == pytest.approx(expected, rel=1e-10, abs=1e-15 * size)
    assert Memoryless(size).mean_remaining(ages) == pytest.approx(np.full(7, size), rel=1e-10)
    expected = size * np.array([3.0, 2.9, 2.5, 2.001, 3.0, 2.0, 0.0])
    assert TwoValues(size).mean_remaining(ages) == pytest.approx(expected, rel=1e-9, abs=1e-12 * size)


def test_an_infinite_mean_remains_infinite():
    """Where the mean is infinite, so is what remains at every age."""
    assert (Endless().mean_remaining(np.array([0.0, 1.0, 1e9])) == inf).all()


# Laws of scipy.stats -------------------------------------------------------------------------------------

SAME = [
    (stats.expon(scale=2.0), Exponential(0.5)),
    (stats.gamma(0.4, scale=5.0), Gamma(0.4, 2.0)),
    (stats.lognorm(2.0, scale=math.exp(-2.0)), Lognormal(1.0, 2.0)),
    (stats.pareto(1.01), Pareto(1.01, 101.0)),
    (stats.weibull_min(0.5), Weibull(0.5, 2.0)),
    (stats.truncpareto(1.5, 50.0), BoundedPareto(1.5, 1.0, 50.0)),
]


@pytest.mark.parametrize(("frozen", "ours"), SAME)
def test_scipy_laws_agree_with_ours(frozen, ours):
    """By integration or by formula: the same, to 1e-9, as far as one in 1e250 survives."""
    ages = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 200)]) * ours.mean
    ages = ages[ours.survival(ages) > 1e-250]
    assert Distribution.of(frozen).mean_remaining(ages) == pytest.approx(ours.mean_remaining(ages), rel=1e-9)


def test_tails_that_scipy_loses_are_kept():
    """scipy's log-logistic tail vanishes at 1e-16; ours is 1/(1 + x^c) to ten digits, and m grows like a."""
    law, ages = Distribution.of(stats.fisk(3.5)), np.array([1.0, 1e2, 1e4, 1e5, 1e8])
    with np.errstate(divide="ignore"):
        assert stats.fisk(3.5).sf(1e5) == 0.0
    assert law.survival(ages) == pytest.approx(1.0 / (1.0 + ages**3.5), rel=1e-10)
    assert law.mean_remaining(ages[2:]) == pytest.approx(ages[2:] / 2.5, rel=1e-9)


def test_laws_on_whole_numbers():
    """Between two whole numbers what remains falls with the age; geometric jobs forget theirs at each."""
    law = Distribution.of(stats.geom(0.2)).scaled(0.3)
    ages = 0.3 * np.array([0.0, 1.0, 1.25, 7.0, 400.0, 1e6])
    expected = 0.3 * np.array([5.0, 5.0, 4.75, 5.0, 5.0, 5.0])
    assert law.mean_remaining(ages) == pytest.approx(expected, rel=1e-10)
    assert law.survival(ages[:4]) == pytest.approx(0.8 ** np.array([0.0, 1.0, 1.0, 7.0]), rel=1e-12)
    zeta = Distribution.of(stats.zipf(3.5))
    k = np.arange(50.0, 1e6)
    expected = (k - 49.0) @ k**-3.5 / (k**-3.5).sum()
    assert zeta.mean_remaining(np.array([49.0]))[0] == pytest.approx(expected, rel=1e-6)


def test_whole_numbers_beyond_the_table_are_refused():
    """A law whose values are mostly beyond the table says so, and does not invent a tail."""
    with pytest.raises(UnsupportedError, match="continuous"):
        Distribution.of(stats.randint(1, 10**8)).mean_remaining(np.array([1.0]))
