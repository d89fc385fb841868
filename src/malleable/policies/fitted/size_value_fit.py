"""A quadratic value function of remaining sizes, fitted to a path of a policy by least squares.

The relative value h of a policy that costs g per unit of time solves c·x − g + 𝒜h = 0 in every state. For
h = q·U + ½ UᵀQU (`size_value`) and Poisson arrivals

    𝒜U_ia = λ_i E φ_a(X) − Σ_j s_j φ_a′(r_j),        𝒜(UV) = U𝒜V + V𝒜U + λ_i E[φ_a φ_b(X)] for one class,

linear in g, q and Q. We make the square of the left-hand side, averaged over time, as small as can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

from malleable.errors import UnsupportedError
from malleable.policies.fitted.size_value import CURVED, FEATURES

if TYPE_CHECKING:
    from malleable.contracts import Distribution, FloatArray
    from malleable.engine.kernels.path_kernel import Path

RIDGE = 1e-9
"""Added to the diagonal of the normal equations, which is scaled to 1."""
BLOCK = 4096
"""Moments whose equations are written out at once."""
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


class Class(NamedTuple):
    """What the fit knows of a class."""

    rate: float
    """Of arrivals."""
    cost: float
    mean: float
    decay_rates: FloatArray
    """1/t_a of the features that level off."""
    moments: SizeMoments


class Fit(NamedTuple):
    """The cost per unit of time and the coefficients of h."""

    cost: float
    linear: FloatArray
    quadratic: FloatArray
    mean_cost: float
    """The cost per unit of time on the path."""


def unknowns(classes: int) -> int:
    """Numbers that are fitted."""
    size = FEATURES * classes
    return 1 + size + size * (size + 1) // 2


def fit(path: Path, classes: list[Class]) -> Fit | None:
    """The value function of the policy whose path this is; None where the equations have no solution."""
    cost, sums, drifts, weights = _moments_in_time(path, classes)
    size = FEATURES * len(classes)
    rows, columns = np.triu_indices(size)
    jumps = _jumps(classes)[rows, columns] * np.where(rows == columns, 0.5, 1.0)
    normal, right = np.zeros((1 + size + len(rows),) * 2), np.zeros(1 + size + len(rows))
    for start in range(0, len(weights), BLOCK):
        part = slice(start, start + BLOCK)
        u, a, w = sums[part], drifts[part], weights[part]
        products = u[:, rows] * a[:, columns]
        products += np.where(rows == columns, 0.0, u[:, columns] * a[:, rows])
        equations = np.hstack([np.full((len(w), 1), -1.0), a, products + jumps])
        normal += equations.T @ (equations * w[:, None])
        right -= equations.T @ (w * cost[part])
    found = _solved(normal, right)
    if found is None:
        return None
    quadratic = np.zeros((size, size))
    quadratic[rows, columns] = quadratic[columns, rows] = found[1 + size :]
    return Fit(float(found[0]), found[1 : 1 + size], quadratic, float(weights @ cost))


def _solved(normal: FloatArray, right: FloatArray) -> FloatArray | None:
    """The solution of the scaled normal equations with a little ridge."""
    scale = np.sqrt(np.diag(normal))
    scale[scale == 0.0] = 1.0
    scaled = normal / np.multiply.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] += RIDGE
    try:
        found = linalg.solve(scaled, right / scale, assume_a="pos") / scale
    except (linalg.LinAlgError, linalg.LinAlgWarning, ValueError):
        return None
    return found if np.isfinite(found).all() else None


def _moments_in_time(
    path: Path, classes: list[Class]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Cost rate, U and 𝒜U at each moment, and the share of time that the moment stands for."""
    moments, size = len(path.durations), FEATURES * len(classes)
    cost, sums, drifts = np.zeros(moments), np.zeros((moments, size)), np.zeros((moments, size))
    for i, own in enumerate(classes):
        mine = path.classes == i
        when, left, fast = path.moments[mine], path.remaining[mine], path.speeds[mine]
        cost += own.cost * np.bincount(when, minlength=moments)
        short = np.minimum(left, own.moments.reach)
        value = features(short, own.decay_rates, own.mean)
        lost = slopes(short, own.decay_rates, own.mean) * (fast * (left <= own.moments.reach))[:, None]
        for a in range(FEATURES):
            at = FEATURES * i + a
            sums[:, at] = np.bincount(when, value[:, a], moments)
            drifts[:, at] = own.rate * own.moments.first[a] - np.bincount(when, lost[:, a], moments)
    return cost, sums, drifts, path.durations / path.durations.sum()


def _jumps(classes: list[Class]) -> FloatArray:
    """λ_i E[φ_a φ_b(X)] in the blocks of the classes, 0 elsewhere."""
    blocks = [own.rate * own.moments.second for own in classes]
    return np.asarray(linalg.block_diag(*blocks), dtype=float)
