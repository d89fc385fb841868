"""The Pareto law (type I): P(X > x) = (x/s)^(−α) for x ≥ s.

The scale is s = m(α−1)/α for the mean m, which exists for shape α > 1; E[X^r] = α s^r/(α−r) is infinite from
r = α on. Given X > a ≥ s, X is a Pareto variable of the scale a, so E[X − a | X > a] = a/(α−1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from malleable.catalog.spec import INFINITY, Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import power
from malleable.distributions.base.inverse import LAW, Inverse

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def variate(laws: Any, row: Any, u: float) -> float:
    """s·u^(−1/α)."""
    return float(laws[row + LAW.A]) * math.exp(-math.log(u) * float(laws[row + LAW.B]))


@dataclass(frozen=True)
class Pareto(Distribution):
    """Pareto of type I with a given shape, above 1, and mean."""

    shape: Annotated[float, Gt(1), Lt(INFINITY)]
    mean: Positive = field()

    inverse: ClassVar = Inverse(lambda law: (law._scale, 1.0 / law.shape), variate)  # noqa: SLF001

    @property
    def _scale(self) -> float:
        return self.mean * (self.shape - 1.0) / self.shape

    def moment(self, order: int) -> float:
        if order >= self.shape:
            return inf
        # Written around the mean, so that the first moment is the mean exactly.
        return self.mean * power(self._scale, order - 1) * ((self.shape - 1.0) / (self.shape - order))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        # log(X/s) is exponential of rate α, which keeps the far tail exact where 1 − U would round.
        return self._scale * np.exp(rng.standard_exponential(size) / self.shape)

    def survival(self, x: FloatArray) -> FloatArray:
        return (self._scale / np.maximum(x, self._scale)) ** self.shape

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        start = np.maximum(done, self._scale)
        return (start - done) + start / (self.shape - 1.0)

    def scaled(self, factor: float) -> Pareto:
        return Pareto(self.shape, self.mean * factor)
