"""The mean residual life of any law, from its survival function alone.

m(a) = E[X − a | X > a] = R(a)/S(a) with S(a) = P(X > a) and R(a) = ∫ₐ^∞ S(t) dt. R is tabulated once, at the
edges of panels that double in width and are halved where two Gauss–Legendre rules disagree; between two edges
only the part of a panel above a is integrated anew. So R(a) is a sum of positive terms, with a relative error
of about 1e-11 where S is smooth or has few jumps, as far out as S itself can be trusted (`FLOOR`). Beyond, m
goes on as a constant (the limit of an exponential tail), or falls to 0 where the law ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

    Survival: TypeAlias = Callable[[FloatArray], FloatArray]

FLOOR = 1e-290
"""Below this the survival function of a float loses digits."""
TOLERANCE = 1e-11
"""The difference of the two rules in a panel that is good enough, relative to R at its left edge."""
MOST_PANELS = 2**15
MOST_ROUNDS = 60
HALVINGS, DOUBLINGS = 60, 1000
"""The first panels reach from 2^(−60) to at most 2^1000 means."""

RULE = np.polynomial.legendre.leggauss(15)
COARSE = np.polynomial.legendre.leggauss(10)


class ResidualLife(NamedTuple):
    """R at the edges of the panels, the last age that can be trusted with m there, and the end of the law."""

    edges: FloatArray
    areas: FloatArray
    last: float
    last_mean: float
    end: float

    def area(self, survival: Survival, ages: FloatArray) -> FloatArray:
        """R(a) at each of the ages, none of which lies beyond the last edge."""
        right = np.minimum(np.searchsorted(self.edges, ages, side="right"), len(self.edges) - 1)
        return _integrals(survival, ages, self.edges[right], RULE) + self.areas[right]

    def mean(self, survival: Survival, ages: FloatArray) -> FloatArray:
        """m(a) at each of the ages."""
        a = np.minimum(ages, self.last)
        trusted = self.area(survival, a) / survival(a)
        beyond = np.minimum(self.last_mean, np.maximum(self.end - ages, 0.0))
        return np.where(ages < self.last, trusted, beyond)


def tabulate(
    survival: Survival,
    mean: float,
    start: float = 0.0,
    end: float | None = None,
) -> ResidualLife:
    """Integrate the survival function of a law with a finite mean.

    `start` is where the law begins, often with a kink of S. Without `end` the law is taken to end where S
    falls to 0 from above `FLOOR`, and to go on for ever where it fades away.
    """
    edges = _first_edges(survival, mean)
    last = _last_above(survival, edges)
    if end is None:
        end = last if float(survival(np.array(np.nextafter(last, math.inf)))) == 0.0 else math.inf
    edges = np.unique(np.concatenate([edges, [start, last]]))
    edges = edges[edges <= end]
    remainder = 0.0 if math.isfinite(end) else _remainder(survival, edges[-1])
    edges, areas = _refined(survival, edges, remainder, last)
    table = ResidualLife(edges, areas, last, 0.0, end)
    at = np.array(last)
    return table._replace(last_mean=float(table.area(survival, at) / survival(at)))


def _first_edges(survival: Survival, mean: float) -> FloatArray:
    """0 and doubling steps, up to the first at which next to nothing survives."""
    most = min(DOUBLINGS, math.floor(DOUBLINGS - math.log2(mean)))
    steps: FloatArray = np.ldexp(mean, np.arange(-HALVINGS, most))
    gone = survival(steps) <= 1e-15 * FLOOR
    count = int(np.argmax(gone)) + 1 if gone.any() else len(steps)
    return np.concatenate([[0.0], steps[:count]])


def _last_above(survival: Survival, edges: FloatArray) -> float:
    """The largest float at which more than `FLOOR` survives, by bisection."""
    above = survival(edges) > FLOOR
    if above[-1]:
        return float(edges[-1])
    i = int(np.argmin(above))
    low, high = float(edges[i - 1]), float(edges[i])
    while low < (middle := low + 0.5 * (high - low)) < high:
        low, high = (middle, high) if float(survival(np.array(middle))) > FLOOR else (low, middle)
    return low


def _remainder(survival: Survival, top: float) -> float:
    """R at the last edge, as if S went on as a power of the age: that is next to nothing for a light tail."""
    near, far = survival(np.array([0.5 * top, top]))
    if far <= 0.0:
        return 0.0
    index = math.log2(near / far)
    return float(far * top / (index - 1.0)) if index > 1.0 else math.inf


def _refined(
    survival: Survival, edges: FloatArray, remainder: float, last: float
) -> tuple[FloatArray, FloatArray]:
    """Halve panels until both rules agree in each of them; then the edges, and R at each."""
    values, errors = _panels(survival, edges[:-1], edges[1:])
    for _ in range(MOST_ROUNDS):
        areas = _sums_from_right(values, remainder)
        middles = 0.5 * (edges[:-1] + edges[1:])
        # Beyond the last age that can be trusted there are too few digits to ask for more.
        needed = np.maximum(areas[:-1], areas[np.searchsorted(edges, last)])
        split = (errors > TOLERANCE * needed) & (edges[:-1] < middles) & (middles < edges[1:])
        chosen = np.flatnonzero(split)
        if not chosen.size or len(values) + chosen.size > MOST_PANELS:
            break
        lows, highs, middles = edges[chosen], edges[chosen + 1], middles[chosen]
        left, right = _panels(survival, lows, middles), _panels(survival, middles, highs)
        edges = np.insert(edges, chosen + 1, middles)
        values[chosen], errors[chosen] = left
        values = np.insert(values, chosen + 1, right[0])
        errors = np.insert(errors, chosen + 1, right[1])
    return edges, _sums_from_right(values, remainder)


def _sums_from_right(values: FloatArray, remainder: float) -> FloatArray:
    return np.cumsum(np.concatenate([values, [remainder]])[::-1])[::-1]


def _panels(survival: Survival, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The integral over each panel, and by how much the coarser rule differs."""
    values = _integrals(survival, low, high, RULE)
    return values, np.abs(values - _integrals(survival, low, high, COARSE))


def _integrals(
    survival: Survival, low: FloatArray, high: FloatArray, rule: tuple[FloatArray, FloatArray]
) -> FloatArray:
    nodes, weights = rule
    half = 0.5 * (high - low)[..., None]
    values: FloatArray = (survival(low[..., None] + half * (1.0 + nodes)) * weights).sum(axis=-1)
    return values * half[..., 0]
