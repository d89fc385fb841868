"""A quadratic value function of remaining sizes, fitted to a path of a policy by least squares.

The relative value h of a policy that costs g per unit of time solves c·x − g + 𝒜h = 0 in every state. For
h = q·U + ½ UᵀQU (`rules.value_features`) and Poisson arrivals

    𝒜U_ia = λ_i E φ_a(X) − Σ_j s_j φ_a′(r_j),        𝒜(UV) = U𝒜V + V𝒜U + λ_i E[φ_a φ_b(X)] for one class,

linear in g, q and Q. We make the square of the left-hand side, averaged over time, as small as can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

from malleable.policies.rules.value_features import FEATURES
from malleable.policies.size_aware.size_moments import features, slopes

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.kernels.path_kernel import Path
    from malleable.policies.size_aware.size_moments import SizeMoments

RIDGE = 1e-9
"""Added to the diagonal of the normal equations, which is scaled to 1."""
BLOCK = 4096
"""Moments whose equations are written out at once."""


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
