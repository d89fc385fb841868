"""What the phase-type families share: moments, sampling, and the check of probabilities.

X is the time to absorption of a Markov chain with initial phase probabilities p and sub-generator Q:
E[X^r] = r! p (−Q)^(−r) 1; see Neuts, *Matrix-Geometric Solutions in Stochastic Models* (1981), chapter 2.
"""

from __future__ import annotations

from math import factorial, fsum, inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import ParameterError
from malleable.numerics import choices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray

TOLERANCE = 1e-9
"""How far rounding in a document may take a sum of probabilities from 1, or of a row of rates from 0."""
MOST_PHASES = 1000
"""Above this number of stages the matrices of a law cost more than they tell."""


def check_total(probabilities: Sequence[float], key: str) -> None:
    """Require at least one probability, and a sum of 1."""
    if not probabilities:
        raise ParameterError("must not be empty", "give at least one phase", (key,))
    total = fsum(probabilities)
    if abs(total - 1.0) > TOLERANCE:
        raise ParameterError(f"must sum to 1, got {total:.12g}", "divide each by their sum", (key,))


def moment(p: FloatArray, Q: FloatArray, order: int) -> float:
    """E[X^order] of the phase-type law (p, Q)."""
    right: FloatArray = np.ones(len(p))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(order):
            right = np.linalg.solve(-Q, right).astype(float, copy=False)
        value = float(factorial(order) * (p @ right))
    return inf if isnan(value) else value


def draw(rng: np.random.Generator, p: FloatArray, size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Draw `size` phases with probabilities p, whose sum may be off 1 by rounding."""
    return choices.choose(rng.random(size), np.cumsum(p)[:-1] / p.sum())


def serial(rates: FloatArray, onward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(p, Q) of stages passed one after the other, going on from stage j with probability onward[j]."""
    Q = np.diag(-rates) + np.diag(rates[:-1] * onward, 1)
    return np.eye(1, len(rates))[0], Q
