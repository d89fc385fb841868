"""What the features of `rules.value_features` are on average for a job that arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import UnsupportedError
from malleable.policies.rules.value_features import CURVED, FEATURES

if TYPE_CHECKING:
    from malleable.contracts import Distribution, FloatArray

BEYOND = 0.002
"""Share of the jobs that are larger than the rule looks at."""
NEVER = 1e-7
"""Share of the jobs that are larger than the fit looks at: it needs second moments, which may not exist."""
POINTS, DECADES = 8192, 9.0
"""The grid over which survival is integrated, and how far it reaches to both sides of the mean."""
DRAWS = 1 << 17
"""Sizes drawn of a law that does not say how likely a size is."""


class SizeMoments(NamedTuple):
    """E φ_a(X) and E φ_a(X)φ_b(X), and the largest sizes that are looked at.

    To cut sizes down in the fit as far as in the rule loses a lot: a large job would seem to cost the same
    for a long time, whatever is done about it.
    """

    cap: float
    """By the rule, to which the fit says little about larger ones."""
    reach: float
    """By the fit."""
    first: FloatArray
    second: FloatArray


def features(sizes: FloatArray, rates: FloatArray, mean: float) -> FloatArray:
    """The four features of each size, in columns."""
    return np.column_stack([-np.expm1(-np.multiply.outer(sizes, rates)), sizes / mean])


def slopes(sizes: FloatArray, rates: FloatArray, mean: float) -> FloatArray:
    """Their derivatives, in columns."""
    curved = rates * np.exp(-np.multiply.outer(sizes, rates))
    return np.column_stack([curved, np.full(len(sizes), 1.0 / mean)])


def size_moments(law: Distribution, rates: FloatArray) -> SizeMoments:
    """E f(X) = ∫ f′(r) P(X > r) dr for each feature and each product of two, or the same from a sample."""
    mean = law.mean
    grid = mean * np.concatenate([[0.0], np.geomspace(10.0**-DECADES, 10.0**DECADES, POINTS)])
    try:
        alive = np.asarray(law.survival(grid), dtype=float)
    except UnsupportedError:
        return _sampled(law, rates)
    cap = float(grid[max(int(np.argmax(alive <= BEYOND)), 1)])
    last = int(np.argmax(alive <= NEVER)) or len(grid) - 1
    grid, alive = grid[: last + 1], alive[: last + 1]
    value, slope = features(grid, rates, mean), slopes(grid, rates, mean)
    first = np.trapezoid(slope * alive[:, None], grid, axis=0)
    second = np.empty((FEATURES, FEATURES))
    for a in range(FEATURES):
        product = slope[:, [a]] * value + value[:, [a]] * slope
        second[a] = np.trapezoid(product * alive[:, None], grid, axis=0)
    return SizeMoments(cap, float(grid[-1]), first, second)


def _sampled(law: Distribution, rates: FloatArray) -> SizeMoments:
    sizes = np.asarray(law.sample(np.random.default_rng(CURVED), DRAWS), dtype=float)
    value = features(sizes, rates, law.mean)
    cap, reach = float(np.quantile(sizes, 1.0 - BEYOND)), float(sizes.max())
    return SizeMoments(cap, reach, value.mean(axis=0), value.T @ value / len(sizes))
