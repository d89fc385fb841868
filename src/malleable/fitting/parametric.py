"""Speedup families fitted by least squares on the logarithm of rates.

The model is log r(k) = log r₁ + log s(k; θ). The rate on one core is free even where one core was measured:
that run is as noisy as any other. For given θ the best log r₁ is the weighted mean of what is left, so that
only θ is searched, by the trust-region method of `scipy.optimize.least_squares` within the limits of the
family, from several starts (families with a kink have several valleys).

What is searched, and from where, stands with each family (`speedups.base.Fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable import catalog
from malleable.contracts import Speedup
from malleable.fitting.curves import Curve, rounded
from malleable.speedups.base import Fit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray
    from malleable.fitting.measurements import Points

EDGE = 1e-6
"""How near to 0 and 1 a fraction may come."""


@dataclass(frozen=True)
class Parametric:
    """A family: how to build it from numbers in the unit interval, and where to start the search.

    Numbers in the unit interval are what the search sees; `build` takes them and the widest measured width.
    """

    name: str
    starts: tuple[tuple[float, ...], ...]
    build: Callable[[Sequence[float], float], Speedup]

    @property
    def parameters(self) -> int:
        """How many numbers are fitted, the rate on one core among them."""
        return len(self.starts[0]) + 1

    def fit(self, points: Points, start: Sequence[float] | None = None) -> Curve:
        """The member of the family nearest to the points; one start is enough where it is near."""
        starts = self.starts if start is None else (np.clip(start, 2.0 * EDGE, 1.0 - 2.0 * EDGE),)
        theta = self.search(points, starts)
        widest = float(points.widths[-1])
        speedup = _rounded(self.build(theta.tolist(), widest))
        rate = float(np.exp(_level(points, _log_speeds(speedup, points))))
        return Curve(self.name, speedup, rate, self.parameters, tuple(theta.tolist()))

    def search(self, points: Points, starts: Sequence[ArrayLike]) -> FloatArray:
        """The best numbers found from all starts."""
        from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import

        widest, root = float(points.widths[-1]), np.sqrt(points.weights)

        def residuals(theta: FloatArray) -> FloatArray:
            logs = _log_speeds(self.build(np.clip(theta, EDGE, 1.0 - EDGE).tolist(), widest), points)
            return np.asarray(root * (points.log_rates - logs - _level(points, logs)))

        tries = [least_squares(residuals, start, bounds=(EDGE, 1.0 - EDGE), xtol=1e-10) for start in starts]
        return np.asarray(min(tries, key=lambda one: one.cost).x)


def _log_speeds(speedup: Speedup, points: Points) -> FloatArray:
    return np.log(speedup.speed(points.widths))


def _level(points: Points, log_speeds: FloatArray) -> float:
    """The best log r₁ for a given shape."""
    return float(np.average(points.log_rates - log_speeds, weights=points.weights))


def _rounded(speedup: Speedup) -> Speedup:
    keys = {key: rounded(value) for key, value in speedup.parameters().items()}
    return type(speedup).from_parameters(keys)


def _families() -> dict[str, Parametric]:
    """The families of speedups that say how they are fitted, in the order of preference.

    Fewer parameters come first, then speedups without a kink, then the alphabet.
    """
    found = {kind: vars(catalog.find("speedups", kind)).get("fit") for kind in catalog.kinds("speedups")}
    fits = {kind: fit for kind, fit in found.items() if isinstance(fit, Fit)}
    order = sorted(fits, key=lambda kind: (len(fits[kind].starts[0]), fits[kind].kink, kind))
    return {kind: Parametric(kind, fits[kind].starts, fits[kind].build) for kind in order}


FAMILIES = _families()
"""In the order of preference where nothing tells them apart."""
