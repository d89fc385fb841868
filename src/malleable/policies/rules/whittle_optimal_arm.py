"""The optimal single-armed bandit, in plain numbers: its index and its width at a price.

The same arm as `theory.optimal_arm.OptimalArms`, for functions that the engine compiles: the width is WHAM's
at the effective rent r with Ψ(r) = Ψ(y) − a, and the index is Ψ⁻¹(a). Ψ stands in the table as nodes, from
`theory.optimal_arm.course`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from malleable.engine.speedup_table import demand, has_corners, shape, speed, work_demand
from malleable.numerics.places import places

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


class Psi(NamedTuple):
    """The head of the numbers of a class; then come log rents, Ψ and 1/φ of each node."""

    NODES: int
    LOG_LOW: int
    LOW_SPEED: int
    LOG_HIGH: int
    HIGH_SPEED: int
    """log k and s(k) of the narrowest and of the widest action."""


PSI = places(Psi)
NEWTON_STEPS, SETTLED = 6, 1e-15
LARGEST = 690.0


def soft(t: float) -> float:
    """log(1 + e^t)."""
    return t + math.log1p(math.exp(-t)) if t > 0.0 else math.log1p(math.exp(t))


def soft_inverse(v: float) -> float:
    """The t with log(1 + e^t) = v > 0."""
    return v + math.log(-math.expm1(-v))


def psi(table: FloatArray, at: int, u: float) -> tuple[float, float]:
    """Ψ and 1/φ at the log rent u, for the class whose numbers begin at `at`."""
    count = int(table[at + PSI.NODES])
    first = at + len(PSI)
    bottom, top = float(table[first]), float(table[first + count - 1])
    if u >= top:
        # The narrowest action, at any rent.
        past = soft(-u - float(table[at + PSI.LOG_LOW]))
        s = float(table[at + PSI.LOW_SPEED])
        return s * past, -s * math.expm1(-past)
    if u <= bottom:
        past, s = soft(-u - float(table[at + PSI.LOG_HIGH])), float(table[at + PSI.HIGH_SPEED])
        start = soft(-bottom - float(table[at + PSI.LOG_HIGH]))
        return float(table[first + count]) + s * (past - start), -s * math.expm1(-past)
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[first + middle] <= u:
            low = middle
        else:
            high = middle
    return _piece(table, first, count, low, u)


def _piece(table: FloatArray, first: int, count: int, row: int, u: float) -> tuple[float, float]:
    """The cubic through Ψ and its slopes at both ends of a piece, and 1/φ."""
    h = float(table[first + row + 1] - table[first + row])
    start, end = float(table[first + count + row]), float(table[first + count + row + 1])
    if h <= 0.0:
        return start, float(table[first + 2 * count + row])
    t, d = (u - float(table[first + row])) / h, start - end
    a, b = h * float(table[first + 2 * count + row]), h * float(table[first + 2 * count + row + 1])
    square, cube = 3.0 * d - 2.0 * a - b, a + b - 2.0 * d
    return start - t * (a + t * (square + t * cube)), (a + t * (2.0 * square + 3.0 * t * cube)) / h


def psi_inverse(table: FloatArray, at: int, horizon: float) -> float:
    """The log rent at which Ψ is `horizon`; ∞ at 0."""
    if horizon <= 0.0:
        return math.inf
    count = int(table[at + PSI.NODES])
    first = at + len(PSI)
    most, least = float(table[first + count]), float(table[first + 2 * count - 1])
    if horizon <= least:
        return -float(table[at + PSI.LOG_LOW]) - soft_inverse(horizon / float(table[at + PSI.LOW_SPEED]))
    if horizon >= most:
        log_high = float(table[at + PSI.LOG_HIGH])
        past = soft(-float(table[first]) - log_high) + (horizon - most) / float(table[at + PSI.HIGH_SPEED])
        return -log_high - soft_inverse(past)
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[first + count + middle] >= horizon:
            low = middle
        else:
            high = middle
    left, right = float(table[first + low]), float(table[first + low + 1])
    start, end = float(table[first + count + low]), float(table[first + count + low + 1])
    u = left + (right - left) * (start - horizon) / (start - end) if start > end else left
    for _ in range(NEWTON_STEPS):
        value, slope = _piece(table, first, count, low, u)
        step = (value - horizon) / slope
        u = min(max(u + step, left), right)
        if abs(step) <= SETTLED * max(abs(u), 1.0):
            break
    return u


def optimal_width(
    table: FloatArray, i: int, at: int, horizon: float, log_price: float, low: float, high: float
) -> tuple[float, float]:
    """The best action of at least one core at the log rent y, and how it moves with the logarithm of y."""
    now, pace = psi(table, at, log_price)
    left = now - horizon
    if left <= 0.0:
        return low, 0.0
    u = psi_inverse(table, at, left)
    k = demand(table, i, math.exp(u), 1.0) if -LARGEST < u < LARGEST else (low if u > 0.0 else high)
    if k <= low:
        return low, 0.0
    if k >= high:
        return high, 0.0
    if has_corners(table, i):
        return k, 0.0
    # d log f/d log k = e'/(e(1 − e)) − 1, where f(k) = r.
    _, e, bend = shape(table, i, math.log(k))
    fall = bend / (e * (1.0 - e)) - 1.0
    return k, (k / fall) * pace / psi(table, at, u)[1]


def part_log_price(table: FloatArray, i: int, at: int, horizon: float, width: float) -> float:
    """The log rent below which a job is better off on a width below its narrowest than waiting for now."""
    ratio = width / speed(table, i, width)
    best = min(max(work_demand(table, i, 1.0, ratio), math.exp(float(table[at + PSI.LOG_LOW]))),
               math.exp(float(table[at + PSI.LOG_HIGH])))  # fmt: skip
    inverse = ratio * speed(table, i, best) - best
    beyond = psi(table, at, -math.log(inverse))[0] if inverse > 0.0 else 0.0
    return psi_inverse(table, at, horizon + beyond)
