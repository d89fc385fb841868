"""Laws of sizes and of times between arrivals with the means and variations of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.distributions.deterministic import Deterministic
from malleable.errors import MeasurementError
from malleable.fitting import moments

if TYPE_CHECKING:
    from malleable.contracts import Distribution, FloatArray

EVEN = 1e-3
"""Below this squared coefficient of variation all values count as equal."""


def scv(values: FloatArray) -> float:
    """The squared coefficient of variation of some values; 0 for one of them."""
    mean = float(np.mean(values))
    return float(np.var(values / mean)) if mean > 0.0 else 0.0


def law_of(values: FloatArray) -> Distribution:
    """A law with the mean and the variation of some values, and their third moment where it can have it."""
    mean, spread = float(np.mean(values)), scv(values)
    if spread < EVEN:
        return Deterministic(mean)
    try:
        if spread > 1.0:
            return moments.hyperexponential(mean, spread, float(np.mean((values / mean) ** 3)) * mean**3)[0]
        return moments.erlang(mean, spread)[0]
    except MeasurementError:
        return moments.exponential(mean)[0]
