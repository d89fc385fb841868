"""The search finds what a look at every number of cores finds, and claims no more than it was told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from malleable.planning.search import Found, Reading, cheapest, find


class Known:
    """A meter of a metric that is known, with noise that falls with the stage."""

    def __init__(self, values, *, noise=0.0, stages=4, guess=None, seed=0):
        self.values, self.noise, self.stages, self._guess = values, noise, stages, guess
        self.rng, self.known, self.asked = np.random.default_rng(seed), {}, []

    least = 1

    def read(self, cores, stage=0):
        self.asked.append(cores)
        if cores not in self.known or self.known[cores].stage < stage:
            half = 3.0 * self.noise / 2.0**stage
            value = self.values(cores) + self.noise / 2.0**stage * float(
                np.clip(self.rng.normal(), -2.9, 2.9)
            )
            self.known[cores] = Reading(cores, value, value - half, value + half, stage)
        return self.known[cores]

    def guess(self, above, most):  # noqa: ARG002 - it has its own
        return self._guess


def smallest(values, limit, most):
    """A look at every number of cores."""
    return next((n for n in range(1, most + 1) if values(n) < limit), None)


@pytest.mark.parametrize("guess", [None, 1, 17, 400, 10**6])
def test_as_a_look_at_every_number(guess):
    """Whatever the guess, and wherever the limit: the smallest number that meets, or none."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        scale, power = rng.uniform(1.0, 100.0), rng.uniform(0.3, 2.0)
        values = lambda n: scale / n**power  # noqa: B023, E731
        limit, most = float(np.exp(rng.uniform(-3.0, 5.0))), int(rng.integers(1, 500))
        meter = Known(values, stages=1, guess=guess)
        found = find(meter, limit, most=most, above=0)
        expected = smallest(values, limit, most)
        assert found.meets == expected
        assert found.clear
        assert found.misses == (most if expected is None else expected - 1)


def test_what_is_ruled_out_is_not_asked():
    """Numbers that a certificate rules out are taken for missed, and never run."""
    meter = Known(lambda n: 100.0 / n, stages=1)
    assert find(meter, 5.0, most=1000, above=20) == Found(21, 20, clear=True)
    assert min(meter.asked) == 21
    assert find(Known(lambda n: 1.0 / n), 5.0, most=20, above=20) == Found(None, 20, clear=True)


def test_noise_moves_the_pair_until_it_is_told():
    """With noise, both numbers are told for sure; neighbours are the smallest number and the one before."""
    for seed in range(60):
        values = lambda n: 100.0 / n  # noqa: E731
        limit = 2.0 + 0.05 * np.random.default_rng(seed).random()
        meter = Known(values, noise=0.05, seed=seed)
        found = find(meter, limit, most=1000, above=0)
        assert found.clear
        assert meter.known[found.meets].high < limit <= meter.known[found.misses].low
        assert values(found.meets) < limit <= values(found.misses)
        assert found.meets - found.misses <= 3
        if found.meets - found.misses == 1:
            assert found.meets == smallest(values, limit, 1000)


def test_too_close_to_tell():
    """Where the metric hardly falls, nothing is claimed."""
    found = find(Known(lambda n: 1.0 + 1e-9 / n, noise=0.1), 1.0, most=50, above=0)
    assert not found.clear


def test_the_search_says_how_far_it_has_come():
    """Who stops it knows of numbers that meet and miss."""
    told = []
    find(Known(lambda n: 100.0 / n, stages=1), 5.0, most=1000, above=0, seen=told.append)
    assert told[-1] == Found(21, 20, clear=True)
    assert all(one.meets is None or one.meets >= 21 for one in told)


def test_the_cheapest():
    """A valley of any shape: no number near the one found, and none that was looked at, is lower."""
    rng = np.random.default_rng(9)
    for _ in range(50):
        best, tilt = int(rng.integers(1, 3000)), rng.uniform(0.2, 3.0)
        values = lambda n: abs(math.log(n / best)) * (tilt if n > best else 1.0)  # noqa: B023, E731
        found = cheapest(Known(values, stages=1), most=10_000)
        assert found.meets == best
