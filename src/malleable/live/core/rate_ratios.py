"""Relative speeds at different widths, from jobs of which each has rates of its own.

A job j that was seen at several widths k has log rates y_jk = a_j + f_k + noise: its own level, which depends
on what its units are, and the logarithm of the speedup. The levels are eliminated from the least-squares
problem, which leaves a Laplacian over the widths; a little weight on the prior ties together widths that no
job connects. Residuals beyond `REACH` count less (Huber's weights, found by iteration), so that single bad
samples change little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.contracts import FloatArray

REACH = 0.2
"""Residual of a log rate up to which it counts in full."""
TIE = 0.02
"""Weight of the prior at each width; a rate has weight 1."""
ROUNDS = 12


def relative_speeds(jobs: Sequence[Mapping[int, float]], prior: Mapping[int, float]) -> dict[int, float]:
    """The logarithm of the speedup at each width of `prior`, from log rates of jobs at some of them each."""
    widths = sorted(prior)
    place = {k: column for column, k in enumerate(widths)}
    y = np.full((len(jobs), len(widths)), np.nan)
    for row, job in enumerate(jobs):
        for k, rate in job.items():
            y[row, place[k]] = rate
    known = np.isfinite(y)
    base = np.array([prior[k] for k in widths])
    y = np.where(known, y - base, 0.0)
    weights = known.astype(float)
    for _ in range(ROUNDS):
        found, levels = _solved(y, weights)
        off = np.abs(y - levels[:, None] - found)
        weights = np.where(known, np.minimum(1.0, REACH / np.maximum(off, REACH)), 0.0)
    return dict(zip(widths, (base + found).tolist(), strict=True))


def _solved(y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Widths' and jobs' effects of the weighted problem."""
    totals = np.maximum(weights.sum(axis=1), 1e-9)
    shares = weights / totals[:, None]
    laplacian = np.diag(weights.sum(axis=0)) - shares.T @ weights
    right = ((y - (shares * y).sum(axis=1)[:, None]) * weights).sum(axis=0)
    found = np.linalg.solve(laplacian + TIE * np.eye(len(laplacian)), right)
    return found, (shares * (y - found)).sum(axis=1)
