"""The inverse of a survival function as a table, and how far it is off.

With E = −log P(X > x), which is exponential of mean 1, and w = log E, the logarithm y of x is a smooth
function of w for most laws: straight for Weibull's, and at both ends of many others. It is tabulated at
`KNOTS_PER_UNIT` knots per unit of w from E = 1e-6 up to the largest E of a uniform number of 48 bits, with
its slopes, for cubic Hermite interpolation. Below, y goes on along its first slope: that concerns one value
in a million, among the smallest.

`error` is the largest relative distance of the interpolated from the true x, at three places between every
two knots. A law on separate values is no smooth function; it becomes a list of its values and their cumulated
probabilities.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from malleable.contracts import Distribution, FloatArray

KNOTS_PER_UNIT = 128.0
FIRST = float(np.log(1e-6))
LAST = float(np.log(49.0 * np.log(2.0)))
HALVINGS = 90
WIDEST = 320.0
"""Logarithms of values, in units of the mean, lie within this of 0."""
SAME = 1e-12
"""Relative distance of what is one value."""


class InverseTable(NamedTuple):
    """y and its slope per knot, from the knot `first` on; or values that fall, and cumulated chances."""

    first: float
    values: FloatArray
    slopes: FloatArray
    chances: FloatArray
    error: float

    @property
    def steps(self) -> bool:
        """Whether the law is one on separate values."""
        return len(self.chances) > 0


def scaled_table(law: Distribution) -> InverseTable:
    """The table of a law, made once for all multiples of it: a factor adds to the logarithms of values."""
    mean = float(law.mean)
    if not 0.0 < mean < math.inf:
        return tabulate(law)
    try:
        table = _of_unit_mean(law.scaled(1.0 / mean))
    except TypeError:  # a law that cannot be the key of a cache
        return tabulate(law)
    return table._replace(values=table.values * mean if table.steps else table.values + math.log(mean))


@functools.lru_cache(maxsize=64)
def _of_unit_mean(law: Distribution) -> InverseTable:
    return tabulate(law)


def tabulate(law: Distribution) -> InverseTable:
    """The table of any law that has a survival function."""
    none = np.zeros(0)
    count = int(np.ceil((LAST - FIRST) * KNOTS_PER_UNIT)) + 2
    w = FIRST + np.arange(count) / KNOTS_PER_UNIT
    y = log_inverse(law, np.exp(w))
    flat = np.diff(y) <= SAME
    if flat.mean() > 0.5:
        return _on_values(law, y)
    slopes = np.gradient(y, edge_order=2)
    slopes[2:-2] = (8.0 * (y[3:-1] - y[1:-3]) - (y[4:] - y[:-4])) / 12.0
    worst = 0.0
    for t in (0.25, 0.5, 0.75):
        true = log_inverse(law, np.exp(w[:-1] + t / KNOTS_PER_UNIT))
        rise, d0, d1 = np.diff(y), slopes[:-1], slopes[1:]
        near = y[:-1] + t * (d0 + t * (3.0 * rise - 2.0 * d0 - d1 + t * (d0 + d1 - 2.0 * rise)))
        worst = max(worst, float(np.abs(np.expm1(near - true)).max()))
    return InverseTable(FIRST, y, slopes, none, worst)


def log_inverse(law: Distribution, exponentials: FloatArray) -> FloatArray:
    """log x at which −log P(X > x) reaches the given numbers, by bisection."""
    unit = float(np.log(law.mean))
    low, high = np.full(len(exponentials), unit - WIDEST), np.full(len(exponentials), unit + WIDEST)
    alive = np.exp(-exponentials)
    with np.errstate(all="ignore"):
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = law.survival(np.exp(middle)) > alive
            low, high = np.where(above, middle, low), np.where(above, high, middle)
    found: FloatArray = 0.5 * (low + high)
    return found


def _on_values(law: Distribution, y: FloatArray) -> InverseTable:
    """Values that fall, and the probability of that value or a larger one."""
    kept = np.concatenate([[True], np.diff(y) > 1e-9])
    values = np.exp(y[kept])[::-1]
    chances = law.survival(values * (1.0 - 1e-9))
    none = np.zeros(0)
    return InverseTable(0.0, values, none, np.asarray(chances, dtype=float), 1e-12)
