"""The safe path for speedups that come without formulas: a grid, its hull, and a local refinement.

The hull of a grid finds the right valley of (c + l·k)/s(k) even when s is not concave; inside the grid
cells around the best vertex the derivative's root is bisected, which is exact to about ten digits.
A family that gives only `speed` may subclass this.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Speedup
from malleable.numerics.hull import FLAT, Hull, pricing_hull, upper_hull

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray

STEP = 1e-3
"""Relative step of the finite differences: balances the h⁴ error against rounding."""
WORSE = 1e-12
"""Relative loss at which a refined width is rejected for the grid's own."""
LINEAR = 1e-9
"""How much steeper than its own slope a linear start may look: the noise of the finite differences."""
BISECTIONS = 42
"""Enough for twelve digits inside a grid cell; the finite differences are good to ten."""


class NumericSpeedup(Speedup):
    """A speedup known only through its values on 1 ≤ k ≤ limit."""

    if TYPE_CHECKING:
        limit: float

    @abstractmethod
    def speed(self, cores: FloatArray) -> FloatArray: ...

    @cached_property
    def grid(self) -> tuple[FloatArray, FloatArray]:
        """Widths (every integer up to 128, then 2 % apart) and their speeds."""
        fine = np.arange(1.0, min(self.limit, 128.0) + 1.0)
        points = int(50 * np.log(max(self.limit / 128.0, 1.0)))
        coarse = np.geomspace(128.0, max(self.limit, 128.0), points)
        k = np.unique(np.concatenate([fine, coarse, [self.limit]]))
        k = k[k <= self.limit]
        return k, self.speed(k)

    @cached_property
    def pricing(self) -> Hull:
        """The grid's widths worth buying and the price of each step."""
        return pricing_hull(*self.grid)

    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k = np.asarray(cores, dtype=float)
        h = STEP * k
        centre = np.clip(k, 1.0 + 3.0 * h, np.maximum(self.limit - 3.0 * h, 1.0 + 3.0 * h))
        # A polynomial through seven points around `centre`, differentiated at k itself.
        offsets = np.arange(-3, 4)
        values = np.stack([self.speed(centre + i * h) for i in offsets], axis=-1)
        x = ((k - centre) / h)[..., None]
        coefficients = values @ _INTERPOLATION.T
        first, second, third = (
            (coefficients * falling * x**power).sum(-1) / h**order for order, falling, power in _MONOMIALS
        )
        return self.speed(k), first, second, third

    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        l, c = np.broadcast_arrays(np.asarray(price, dtype=float), np.asarray(weight, dtype=float))
        bought = (self.pricing.prices * c[..., None] > l[..., None]).sum(-1)

        def loss(k: FloatArray) -> FloatArray:
            return (c + l * k) / self.speed(k)

        def rising(k: FloatArray) -> Any:
            s, s1, _, _ = self.derivatives(k)
            return l * s >= (c + l * k) * s1

        return self._best(bought, loss, rising)

    def work_demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        l, c = np.broadcast_arrays(np.asarray(price, dtype=float), np.asarray(weight, dtype=float))
        k, s, _ = self.pricing
        bought = (np.diff(s) / np.diff(k) * c[..., None] > l[..., None]).sum(-1)

        def loss(k: FloatArray) -> FloatArray:
            return l * k - c * self.speed(k)

        return self._best(bought, loss, lambda k: l >= c * self.derivatives(k)[1])

    def _best(self, bought: Any, loss: Any, rising: Any) -> Any:
        """The refined vertex; of two valleys that nearly tie the grid may prefer the wrong one."""
        last = len(self.pricing.widths) - 1
        steps = (0,) if self.concave else (0, -1, 1)
        best, *others = (
            self._refined(self.pricing.widths[np.clip(bought + step, 0, last)], loss, rising)
            for step in steps
        )
        for other in others:
            best = np.where(loss(other) < loss(best), other, best)[()]
        return best

    def _refined(self, vertex: FloatArray, loss: Any, rising: Any, least: float | None = None) -> Any:
        """Bisect the sign of the loss's slope between the grid's neighbours of `vertex`."""
        k = self.grid[0]
        i = np.searchsorted(k, vertex)
        low, high = k[np.maximum(i - 1, 0)], k[np.minimum(i + 1, len(k) - 1)]
        low = np.maximum(low, self.most_efficient if least is None else least)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            up = rising(middle)
            low, high = np.where(up, low, middle), np.where(up, middle, high)
        refined = 0.5 * (low + high)
        best = loss(vertex)
        return np.where(loss(refined) <= best + WORSE * np.abs(best), refined, vertex)[()]

    @cached_property
    def peak(self) -> Any:
        return self.demand(0.0)

    @cached_property
    def most_efficient(self) -> Any:
        def falling(k: FloatArray) -> Any:
            s, s1, _, _ = self.derivatives(k)
            return s > k * s1 * (1.0 + LINEAR)

        return self._refined(self.pricing.widths[0], lambda k: k / self.speed(k), falling, least=1.0)

    @cached_property
    def concave(self) -> bool:
        k, s = self.grid
        before = k <= self.pricing.widths[-1]
        return bool(np.all(s[before] >= np.interp(k[before], *upper_hull(k, s)) * (1.0 - 1e3 * FLAT)))


_INTERPOLATION = np.linalg.inv(np.vander(np.arange(-3.0, 4.0), increasing=True))
_MONOMIALS = [
    (order, np.prod([np.arange(7) - i for i in range(order)], axis=0), np.maximum(np.arange(7) - order, 0))
    for order in (1, 2, 3)
]
"""For each order of differentiation: the factor and the exponent that x^0 … x^6 turn into."""
