"""The online learner: always a speedup, near the truth in the end, hardly moved by a bad sample."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.contracts import Speedup
from malleable.errors import ParameterError
from malleable.fitting import Learner
from malleable.fitting.learner import MOST_WIDTHS
from support.examples import examples
from support.speedup_contract import assert_contract

PRIOR = {"kind": "power", "exponent": 0.5}
TRUTHS = [
    {"kind": "amdahl", "sequential": 0.1},
    {"kind": "power", "exponent": 0.9},
    {"kind": "rooftop", "cores": 8.0},
    {"kind": "amdahl", "sequential": 0.9},
]
WIDTHS = (1, 2, 4, 8, 16, 32)


def taught(truth, count: int, noise: float = 0.05, seed: int = 0, spoil: int | None = None) -> Learner:
    """A learner after some observations at random widths, one of them ten times too high."""
    learner, rng, s = Learner(PRIOR, limit=32), np.random.default_rng(seed), Speedup.of(truth)
    for n in range(count):
        k = int(rng.choice(WIDTHS))
        rate = 3.0 * float(s(k)) * math.exp(noise * rng.standard_normal())
        learner.add(k, rate * 10.0 if n == spoil else rate)
    return learner


def distance(one, other, widths=WIDTHS) -> float:
    k = np.array(widths, dtype=float)
    return float(np.abs(np.log(one(k) / other(k))).max())


def test_it_starts_from_its_prior():
    """Before anything is known, and for as long as only the level is, the speedup is the prior."""
    learner = Learner(PRIOR, limit=32)
    assert learner.speedup == Speedup.of(PRIOR)
    assert learner.uncertainty(1) == 0.0
    assert 0.0 < learner.uncertainty(2) < learner.uncertainty(16)
    learner.add(4, 123.0)
    assert distance(learner.speedup, Speedup.of(PRIOR)) < 1e-3


@pytest.mark.parametrize(
    "prior",
    [
        {"kind": "table", "cores": [1, 2, 4], "speedup": [1.0, 2.6, 3.0]},
        {"kind": "table", "cores": [1, 2, 4, 8], "speedup": [1.0, 1.1, 3.0, 3.1]},
        {"kind": "usl", "contention": 0.1, "coherency": 0.05},
    ],
    ids=["super-linear", "dented", "falling"],
)
def test_a_prior_outside_the_contract_is_moved_into_it(prior):
    """A prior that is super-linear, not concave, or falls is replaced by the nearest one that is not."""
    learner = Learner(prior, limit=32)
    assert_contract(learner.speedup, 32.0)
    assert np.all(learner.speedup(np.arange(1.0, 33.0)) <= np.arange(1.0, 33.0) * (1.0 + 1e-9))


@given(
    observed=st.lists(st.tuples(st.integers(1, 5000), st.floats(1e-9, 1e9)), max_size=60),
    exponent=st.floats(0.05, 0.95),
    limit=st.integers(1, 300),
)
@settings(max_examples=examples(24))
def test_no_observations_break_the_contract(observed, exponent, limit):
    """Whatever is observed, the answer is concave, does not fall, and is at most linear."""
    learner = Learner({"kind": "power", "exponent": exponent}, limit=limit)
    for k, rate in observed:
        learner.add(k, rate)
    widest = float(max([limit, *(k for k, _ in observed)]))
    assert_contract(learner.speedup, widest)
    k = np.arange(1.0, widest + 1.0)
    assert np.all(learner.speedup(k) <= k * (1.0 + 1e-9))
    assert all(math.isfinite(learner.uncertainty(int(width))) for width in k[::50])


@pytest.mark.parametrize("truth", TRUTHS)
def test_it_converges(truth):
    """The error falls with more observations, to below 1 % at the widths that were observed."""
    s = Speedup.of(truth)
    errors = [distance(taught(truth, count).speedup, s) for count in (30, 3000)]
    assert errors[1] < min(errors[0], 0.01)


@pytest.mark.parametrize("truth", TRUTHS)
def test_uncertainty_is_honest(truth):
    """Errors of the log speedup, over 30 samples, are within two standard deviations mostly (80 %)."""
    s, inside = Speedup.of(truth), []
    for seed in range(30):
        learner = taught(truth, 60, seed=seed)
        for k in (2, 8, 32):
            error = abs(math.log(float(learner.speedup(k)) / float(s(k))))
            inside.append(error <= 2.0 * learner.uncertainty(k) + 1e-3)
    assert np.mean(inside) > 0.8


@pytest.mark.parametrize("spoil", [0, 1, 2, 5, 11, 19, 29])
@pytest.mark.parametrize("truth", TRUTHS)
def test_one_bad_sample_hardly_matters(truth, spoil):
    """One observation ten times too high among thirty moves the speedup by less than 10 %."""
    for seed in range(5):
        spoilt, clean = taught(truth, 30, seed=seed, spoil=spoil), taught(truth, 30, seed=seed)
        assert distance(spoilt.speedup, clean.speedup) < 0.1


def test_memory_does_not_grow():
    """After a hundred and after ten thousand observations at many widths it holds the same."""
    learner, rng, sizes = Learner(PRIOR, limit=512), np.random.default_rng(0), []
    for n in range(1, 10_001):
        learner.add(int(rng.integers(1, 513)), float(rng.lognormal()))
        if n in {1000, 10_000}:
            sizes.append(len(pickle.dumps(vars(learner))))
            assert len(learner._widths) == MOST_WIDTHS
    assert sizes[1] <= sizes[0] * 1.05


def test_a_job_that_changes_is_followed():
    """A job that scaled badly and then scales well is believed after ten observations per width."""
    learner = Learner(PRIOR, limit=8)
    for truth, count in (
        ({"kind": "amdahl", "sequential": 0.5}, 200),
        ({"kind": "rooftop", "cores": 8.0}, 40),
    ):
        s = Speedup.of(truth)
        for n in range(count):
            k = (1, 2, 4, 8)[n % 4]
            learner.add(k, float(s(k)) * (1.02 if n % 3 else 0.98))
    assert learner.speedup(8) == pytest.approx(8.0, rel=0.1)


@pytest.mark.parametrize(
    ("cores", "rate"),
    [(0, 1.0), (1.5, 1.0), (math.nan, 1.0), (math.inf, 1.0), (1, 0.0), (1, math.nan), (1, -1.0)],
)
def test_bad_observations(cores, rate):
    """What is no whole width or no rate is refused, and nothing is learned from it."""
    learner = Learner(PRIOR)
    with pytest.raises(ParameterError):
        learner.add(cores, rate)
    assert learner.observations == 0


def test_bad_settings():
    """A trust of zero, and a limit below one core."""
    with pytest.raises(ParameterError, match="trust"):
        Learner(PRIOR, trust=0.0)
    with pytest.raises(ParameterError, match="limit"):
        Learner(PRIOR, limit=0)
