"""What families share: powers, exponentials and samples at the limits of floats, the ends of intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import ParameterError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


SMALLEST = float(np.finfo(float).tiny)


def exp(exponent: float) -> float:
    """e^exponent, infinite where a float cannot hold it (`math.exp` raises there)."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def power(base: float, exponent: float) -> float:
    """base^exponent, infinite where a float cannot hold it."""
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def over_power(number: float, rate: float, order: int) -> float:
    """number/rate^order, infinite or 0 where a float cannot hold it."""
    try:
        return float(number / rate**order)
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return 0.0


def product(*factors: float) -> float:
    """The product, where 0·∞ counts as infinite: what overflowed is a moment, what underflowed a unit."""
    value = math.prod(factors)
    return math.inf if math.isnan(value) else value


def log_gamma(x: float) -> float:
    """log Γ(x), infinite where a float cannot hold it."""
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def above_zero(samples: FloatArray) -> FloatArray:
    """Raise samples that underflowed to zero to the smallest normal float.

    A gamma of shape 0.01 falls below 1e-308 once in a thousand draws, and a job of size zero would complete
    before it arrives in the event list of a simulator.
    """
    return np.maximum(samples, SMALLEST)


def check_ends(low: float, high: float) -> None:
    """Refuse an interval that is empty or a single point."""
    if high <= low:
        raise ParameterError(
            f"must be greater than low ({low:g}), got {high:g}",
            "for a single value use the kind deterministic",
            ("high",),
        )
