"""The survival functions of continuous laws of `scipy.stats`, with all their digits in the tail.

Where a law has no formula of its own for P(X > x), scipy subtracts the distribution function from 1, and
nothing is left below 1e-16: a tail as heavy as the log-logistic one then seems to end. It shows where the
density is far from 0 and the survival function is 0. For such a law P(X > x) is the integral of the density
from the point on that one value in a million exceeds.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.numerics import residual_life

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

FEW = 1e-6
"""What survives at the place from which on the density is integrated."""


class Tail(NamedTuple):
    """Where the integral of the density takes over, and its table from there on."""

    start: float
    table: residual_life.ResidualLife


def survival(frozen: Any, tail: Tail | None, x: FloatArray) -> FloatArray:
    """P(X > x)."""
    alive = np.clip(quiet(frozen.sf, x), 0.0, 1.0)
    if tail is None:
        return alive
    beyond, top = x - tail.start, tail.table.edges[-1]
    integral = tail.table.area(_density_from(frozen, tail.start), np.clip(beyond, 0.0, top))
    # The table goes on until the density is below 1e-300.
    return np.select([beyond <= 0.0, beyond < top], [alive, integral], 0.0)


def tail(frozen: Any) -> Tail | None:
    """The tail as an integral of the density, where scipy's survival function loses it."""
    if np.isfinite(frozen.support()[1]):
        return None
    start = float(frozen.isf(FEW))
    # Fine steps for tails that fall steeply, doubling ones for heavy tails.
    x = start * np.concatenate([1.01 ** np.arange(2000.0), 2.0 ** np.arange(900.0)])
    density = quiet(frozen.pdf, x)
    if not ((quiet(frozen.sf, x) == 0.0) & (density > 1e-200)).any():
        return None
    return Tail(start, residual_life.tabulate(_density_from(frozen, start), start))


def _density_from(frozen: Any, start: float) -> residual_life.Survival:
    return lambda beyond: quiet(frozen.pdf, start + beyond)


def quiet(function: Any, x: FloatArray) -> FloatArray:
    """The values of a function of scipy, which may warn on its way to a good answer."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values: FloatArray = np.asarray(function(x), dtype=float)
    return np.where(np.isnan(values), 0.0, values)
