"""The market of the relaxed problem where jobs have a choice of widths: the bound of that problem.

A class of restricted widths wants, at price l, the allowed width with the least (c + l·k)/s(k): a vertex of
the upper hull of its allowed (k, s(k)). Time may still be divided between two widths that tie, so that the
relaxed problem stays a bound: no policy that keeps to the widths can do better, moldable and rigid jobs
included, and whatever a resize costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.numerics.hull import Hull, pricing_hull
from malleable.theory.market import WhittleBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


class RestrictedBuyers(WhittleBuyers):
    """WHAM's jobs, those of some classes with a choice of widths up to the cores there are."""

    def __init__(self, workload: Workload, cores: float, *, integer: bool) -> None:
        super().__init__(workload.speedups, workload.holding_costs, cap=cores, integer=integer)
        self.hulls: dict[int, Hull] = {}
        for i, one in enumerate(workload.job_types):
            allowed = one.widths_on(cores)
            if allowed is not None:
                speeds = np.maximum.accumulate(np.asarray(one.speedup(allowed), dtype=float))
                self.hulls[i] = pricing_hull(allowed, speeds)
        for i, hull in self.hulls.items():
            self.least[i], self.most[i] = hull.widths[0], hull.widths[-1]

    def demand(self, price: FloatArray | float) -> FloatArray:
        wanted = super().demand(price)
        for i, hull in self.hulls.items():
            wanted[i] = hull.widths[int((hull.prices * self.weights[i] > price).sum())]
        return wanted
