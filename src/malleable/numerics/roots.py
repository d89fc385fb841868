"""Finding where a falling function passes a level, with a bracket that can be trusted at jumps.

Total demand falls with the price, smoothly for most speedups and by jumps for tables. `last_bracket` ends
with two neighbouring prices around the level; what lies between them, a hair of a smooth curve or a whole
jump, is then shared out by the caller. So ties need no special case.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

CLOSE = 4.0 * np.finfo(float).eps


def last_bracket(
    excess: Callable[[float], float], low: float, high: float, max_steps: int = 200
) -> tuple[float, float]:
    """Shrink [low, high] with excess(low) > 0 ≥ excess(high) until the ends are neighbours.

    The Illinois variant of false position in log x, with a bisection step whenever the bracket did not
    halve: superlinear on smooth curves, never worse than bisection by more than a factor two.
    """
    f_low, f_high = excess(low), excess(high)
    previous = math.inf
    for _ in range(max_steps):
        if high - low <= CLOSE * high:
            break
        width = math.log(high / low)
        bisect = width > 0.5 * previous or not math.isfinite(f_low)
        share = 0.5 if bisect else min(max(f_low / (f_low - f_high), 1e-3), 1.0 - 1e-3)
        # Steps cut to the edge zone keep the bracket shrinking from both ends on curves with a corner.
        x = low * math.exp(share * width)
        if not low < x < high:
            x = 0.5 * (low + high)
            if not low < x < high:
                break
        previous = width
        f = excess(x)
        if f > 0.0:
            low, f_low, f_high = x, f, (f_high if bisect else 0.5 * f_high)
        else:
            high, f_high, f_low = x, f, (f_low if bisect else 0.5 * f_low)
    return low, high
