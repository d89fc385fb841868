"""What the phase-type families share: moments, sampling, and the check of probabilities.

X is the time to absorption of a Markov chain with initial phase probabilities p and sub-generator Q:
E[X^r] = r! p (−Q)^(−r) 1; see Neuts, *Matrix-Geometric Solutions in Stochastic Models* (1981), chapter 2.

Phase-type laws by age: how likely a job is to reach an age, and what remains of it then.

With v(a) = p e^(Qa), P(X > a) = v(a)1 and E[X − a | X > a] = v(a)(−Q)⁻¹1 / v(a)1, which needs v(a) only up to
a factor: it is kept with its largest entry 1, the factor as a logarithm. e^(Qa) is built of the powers
e^(Qh2ʲ), j = 0, 1, …, by squaring, one for each binary digit of a/h. No entry of them is negative, so nothing
cancels, and each row keeps its own logarithmic factor, so nothing vanishes.

Squaring doubles relative errors. In a stiff chain (rates of 1e6 and of 1) they would grow to 1e-10 before
anything has happened in the slow phases; so the probability of absorption is carried along, which is small
there and exact, and the rows are set to sum to its complement (the idea of Grassmann, Taksar and Heyman,
*Regenerative analysis and steady state distributions for Markov chains*, 1985).
"""

from __future__ import annotations

from math import factorial, fsum, inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import ParameterError
from malleable.numerics import choices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


TERMS = 24
"""Terms of the series of e^x for x ≤ 1: the first one left out is 1e-24."""
MOST_STEPS = 2.0**60


def survival(p: FloatArray, Q: FloatArray, ages: FloatArray) -> FloatArray:
    """P(X > a) of the phase-type law (p, Q)."""
    state, log_factor = _states(p, Q, ages.ravel())
    with np.errstate(under="ignore"):
        alive = np.minimum(state.sum(axis=1) * np.exp(log_factor) / p.sum(), 1.0)
    return np.where(ages > 0.0, alive.reshape(ages.shape), 1.0)


def mean_remaining(p: FloatArray, Q: FloatArray, ages: FloatArray) -> FloatArray:
    """E[X − a | X > a] of the phase-type law (p, Q)."""
    state, _ = _states(p, Q, ages.ravel())
    times = np.linalg.solve(-Q, np.ones(len(p)))
    return np.asarray(state @ times / state.sum(axis=1), dtype=float).reshape(ages.shape)


def _states(p: FloatArray, Q: FloatArray, ages: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Row i: v(ages[i]) over its largest entry; and the logarithm of that entry."""
    rate = float(-np.diag(Q).min())
    position = np.clip(ages * rate, 0.0, MOST_STEPS)
    steps = np.floor(position)
    moves, exits = np.eye(len(p)) + Q / rate, np.maximum(-Q.sum(axis=1), 0.0) / rate
    state, log_factor = _normalised(_part_step(p, moves, position - steps), np.zeros(len(ages)))
    bits = steps.astype(np.int64)
    for j, (rows, logs) in enumerate(_powers(moves, exits)):
        if not (bits >> j).any():
            break
        chosen = np.flatnonzero((bits >> j) & 1)
        weighted, log_weight = _weighted(state[chosen], logs)
        state[chosen], log_factor[chosen] = _normalised(weighted @ rows, log_factor[chosen] + log_weight)
    return state, log_factor


def _part_step(p: FloatArray, moves: FloatArray, x: FloatArray) -> FloatArray:
    """Row i: p after a time of x[i] ≤ 1 steps; Σₙ e^(−x) xⁿ/n! p (I + Q/rate)ⁿ, the chain made uniform."""
    weight: FloatArray = np.exp(-x)
    vector = p
    total = np.outer(weight, vector)
    for n in range(1, TERMS):
        weight, vector = weight * x / n, vector @ moves
        total += np.outer(weight, vector)
    return total


def _powers(moves: FloatArray, exits: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """e^(Qh2ʲ) for j = 0, 1, …: rows with largest entry 1, and the logarithm of the factor of each row."""
    rows, absorbed = _whole_step(moves, exits)
    logs = np.zeros(len(rows))
    while True:
        rows, logs = _normalised(rows, logs)
        # While most paths are alive, absorption is the smaller number, and the one known with all its digits.
        early = absorbed < 0.5
        logs = np.where(early, np.log1p(-np.where(early, absorbed, 0.0)) - np.log(rows.sum(axis=1)), logs)
        yield rows, logs
        absorbed = np.minimum(absorbed + np.exp(logs) * (rows @ absorbed), 1.0)
        weighted, log_weight = _weighted(rows, logs)
        rows, logs = weighted @ rows, logs + log_weight


def _whole_step(moves: FloatArray, exits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """e^(Qh), and the probability of absorption within h from each phase."""
    weight = np.exp(-1.0)
    power, ended = np.eye(len(moves)), np.zeros(len(moves))
    total, absorbed = weight * power, weight * ended
    for n in range(1, TERMS):
        weight /= n
        power, ended = power @ moves, moves @ ended + exits
        total, absorbed = total + weight * power, absorbed + weight * ended
    return total, absorbed


def _weighted(rows: FloatArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Row i of `rows`, times e^logs entry by entry, over its largest entry; and the logarithm of that."""
    with np.errstate(divide="ignore", under="ignore"):
        exponents = np.log(rows) + logs
        largest = exponents.max(axis=1)
        return np.exp(exponents - largest[:, None]), largest


def _normalised(rows: FloatArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows over their largest entries, and the logarithms of their factors."""
    largest = rows.max(axis=1)
    with np.errstate(under="ignore"):
        return rows / largest[:, None], logs + np.log(largest)
