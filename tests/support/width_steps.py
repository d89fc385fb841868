"""Steps from one width to a wider one in the market of `theory.market`, and what they are worth to a job.

Part of the oracle of `support.market_oracle`: where cores do not divide evenly, whole steps are given out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.numerics.hull import DENT
from malleable.speedups.base.numeric import NumericSpeedup
from malleable.speedups.table import Table
from malleable.theory.market import WhittleBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, Speedup
    from malleable.theory.market import Buyers

SAME = 1e-9
"""Relative difference of values that is rounding."""
MANY = 2.0**20
"""How far a family from elsewhere is looked at for dents, where it has no limit of its own."""


def step_value(buyers: Buyers, weight: Any, low: Any, high: Any, speed_low: Any, speed_high: Any) -> Any:
    """The price below which a job of this weight prefers `high` to `low` cores, at these speeds."""
    run = high - low
    if isinstance(buyers, WhittleBuyers):
        # Nothing is more efficient than the least width, so the run is positive beyond it.
        run = np.maximum(high * speed_low - low * speed_high, np.finfo(float).tiny)
    return weight * (speed_high - speed_low) / run


def edge_values(buyers: Buyers, low: FloatArray, high: FloatArray) -> FloatArray:
    """The price below which a job of each group prefers `high` to `low` cores."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = step_value(buyers, buyers.weights, low, high, buyers.speedups(low), buyers.speedups(high))
    return np.where(high > low, values, -np.inf)


def edge_value(buyers: Buyers, group: int, low: float, high: float) -> float:
    """The same for one group."""
    speedup = buyers.speedups.members[group]
    with np.errstate(over="ignore"):
        return float(step_value(buyers, buyers.weights[group], low, high, speedup(low), speedup(high)))


def next_widths(buyers: Buyers, widths: FloatArray) -> FloatArray:
    """The next width above each that some price selects; the same width where there is none."""
    wider = np.where(widths < buyers.least, buyers.least, np.minimum(widths + 1.0, buyers.most))
    for group in np.flatnonzero(~buyers.speedups.concave):
        wider[group] = next_width(buyers, int(group), float(widths[group]))
    return np.maximum(wider, widths)


def next_width(buyers: Buyers, group: int, width: float) -> float:
    """The same for one group."""
    if width < buyers.least[group]:
        return float(buyers.least[group])
    speedup = buyers.speedups.members[group]
    if not speedup.concave and isinstance(speedup, Table | NumericSpeedup):
        wider = speedup.pricing.widths[speedup.pricing.widths > width]
        return float(wider[0]) if len(wider) else width
    return max(min(width + 1.0, float(buyers.most[group])), width)


def best_part(buyers: Buyers, group: int, width: float, spare: float) -> tuple[float, float]:
    """Where the next width is too far: the most valuable one within reach, its value first.

    Among corners of one value the widest counts; the width itself where nothing is gained.
    """
    speedup = buyers.speedups.members[group]
    reach = min(width + spare, float(buyers.most[group]))
    corners = np.zeros(0) if speedup.concave else _corners(speedup)[0]
    wider = np.append(corners[(corners > width) & (corners < reach)], reach)
    speed, faster = float(speedup(width)), speedup(wider)
    # A job that waits does not run on a part of a core.
    gains = (faster > speed) & (wider > width) & (wider >= 1.0)
    if not gains.any():
        return -np.inf, width
    wider, faster = wider[gains], faster[gains]
    with np.errstate(over="ignore"):
        values = step_value(buyers, buyers.weights[group], width, wider, speed, faster)
    best = float(values.max())
    return best, float(wider[values >= best * (1.0 - SAME)][-1])


def is_straight(buyers: Buyers, group: int, low: float, high: float) -> bool:
    """Whether a job of the group gets on between two widths as if they were mixed: on the chord."""
    speedup = buyers.speedups.members[group]
    if speedup.concave:
        return True
    widths, speeds = _corners(speedup)
    between = (widths > low) & (widths < high)
    if not between.any():
        return True
    start, end = np.interp([low, high], widths, speeds)
    chord = start + (widths[between] - low) / (high - low) * (end - start)
    return bool(np.all(speeds[between] >= chord * (1.0 - DENT)))


def _corners(speedup: Speedup) -> tuple[FloatArray, FloatArray]:
    """Widths and speeds of what is known of a speedup that is not concave."""
    if isinstance(speedup, Table):
        return speedup.points
    if isinstance(speedup, NumericSpeedup):
        return speedup.grid
    limit = float(min(speedup.peak, MANY))
    widths = np.unique(np.append(np.geomspace(1.0, limit, 257), limit))
    return widths, speedup(widths)
