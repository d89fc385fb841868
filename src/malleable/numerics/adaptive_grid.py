"""A function of one number as points with straight lines between them, close enough together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

ROUNDS = 24


class Grid(NamedTuple):
    """Points and values, and whether there would have to be more points than are allowed."""

    points: FloatArray
    values: FloatArray
    full: bool


def refined(
    function: Callable[[FloatArray], FloatArray],
    points: FloatArray,
    tolerance: float,
    *,
    least: float = 0.0,
    rounds: int = ROUNDS,
    most: float = np.inf,
) -> Grid:
    """The points, halved wherever a line misses the function half-way by more than `tolerance`, and values.

    The tolerance is relative, and counts as if no value were below `least`. There are at most so many rounds
    and points.
    """
    values = function(points)
    for _ in range(rounds):
        middle = 0.5 * (points[1:] + points[:-1])
        between = function(middle)
        scale = np.maximum(np.abs(between), least)
        off = np.abs(0.5 * (values[1:] + values[:-1]) - between) > tolerance * scale
        if not off.any():
            break
        if len(points) + np.count_nonzero(off) > most:
            return Grid(points, values, True)
        order = np.argsort(np.concatenate([points, middle[off]]), kind="stable")
        points = np.concatenate([points, middle[off]])[order]
        values = np.concatenate([values, between[off]])[order]
    return Grid(points, values, False)
