"""One job that holds one action for life, in plain numbers: its index and its width at a price.

The same arm as `theory.constant_arm.ConstantArms`, for functions that the engine compiles. Holding k cores
costs (1 + y·k)(1 − e^{−a/s(k)}) with rent y = l/(αc) and horizon a = αx. With z = log k, elasticity
e = k·s'/s, u = a/s and w(u) = u/(e^u − 1), the cost falls at z where

    log y < ψ(z) = log(h/(1 − h)) − z,    h = e·w(u),

and ψ, which does not depend on the price, rises to one top and falls after it (it only falls unless a is
large). So the widest valley is where ψ passes log y behind its top, and only the narrowest width may undercut
it. On a table only the corners are ever optimal, and these are compared.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from malleable.engine.speedup_table import corners, demand, has_corners, shape, speed
from malleable.numerics.places import places

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


class Whittle(NamedTuple):
    """What the table says after the encoded speedups."""

    LOG_PRICE: int
    """The log price at which the last search ended."""
    DISCOUNT: int
    """α."""
    CONSTANT: int
    """1 for arms that hold one action for life (this module), 0 for optimal ones (`whittle_optimal_arm`)."""
    CLEARED: int
    """The log price of the last decision (NaN: the lowest at which the jobs want just all cores)."""


class Range(NamedTuple):
    """What it says of each class: the widths that a job may have."""

    LOW: int
    HIGH: int
    LOG_LOW: int
    LOG_HIGH: int
    NODES: int
    CORNERS: int
    """Where the corners of a table stand, and how many there are."""
    PSI: int
    """Where the numbers of an optimal arm begin."""


class Bandit(NamedTuple):
    """The lines of the arms, one column per job."""

    HORIZON: int
    """a."""
    UNIT: int
    """log αc."""
    INDEX: int
    """The log index."""
    BOTTOM: int
    """ψ at the narrowest width."""
    TOP: int
    CREST: int
    """Where ψ is highest, and its value there."""
    GUESS: int
    WIDTH: int
    RATE: int
    """log k and k at the last price, and dk/d log l there."""
    DEAR: int
    CHEAP: int
    """Widths on both sides of the clearing price."""


WHITTLE, RANGE, BANDIT = places(Whittle), places(Range), places(Bandit)
NEWTON_STEPS, SETTLED, SQUARE_SETTLED = 100, 1e-15, 1e-8
FAR = -0.5
NOWHERE = -1e300


def holds(table: FloatArray) -> bool:
    """Whether arms hold one action for life."""
    return bool(table[int(table[1]) + WHITTLE.CONSTANT] > 0.0)


def class_row(table: FloatArray, i: int) -> int:
    """Where the row of class i begins."""
    return int(table[1]) + len(WHITTLE) + len(RANGE) * i


def pull(table: FloatArray, i: int, z: float, horizon: float) -> tuple[float, float]:
    """ψ(z) and its derivative."""
    s, e, bend = shape(table, i, z)
    if e <= 0.0:
        return NOWHERE, -1.0
    u = horizon / s
    if u < 1e-12:
        h = e * (1.0 - 0.5 * u)
        return math.log(h / (1.0 - h)) - z, (bend / e + 0.5 * e * u) / (1.0 - h) - 1.0
    spent = -math.expm1(-u)
    w = u * (1.0 - spent) / spent
    rest = 1.0 - e * w
    return math.log(e * u / (spent * rest)) - u - z, (bend / e - e * (1.0 - u - w)) / rest - 1.0


def log_toll(table: FloatArray, i: int, k: float, horizon: float) -> float:
    """log k(e^u − 1): a job is served below the price αc/k(e^u − 1) on its best width."""
    u = horizon / speed(table, i, k)
    return math.log(k) + u + math.log(-math.expm1(-u)) if u > 0.0 else -math.inf


def least_toll(table: FloatArray, i: int, horizon: float, limit: float) -> float:
    """The lowest log toll on at most `limit` cores, which is log αc − log index."""
    if has_corners(table, i):
        least = math.inf
        start, points = corners(table, i)
        for point in range(points):
            k = float(table[start + point])
            if k < limit:
                least = min(least, log_toll(table, i, k, horizon))
        return min(least, log_toll(table, i, min(limit, float(table[start + points - 1])), horizon))
    own = class_row(table, i)
    low = min(float(table[own + RANGE.LOW]), limit)
    high = max(low, min(float(table[own + RANGE.HIGH]), limit))
    if high <= low or _toll_slope(table, i, math.log(low), horizon)[0] >= 0.0:
        return log_toll(table, i, low, horizon)
    left, right = math.log(low), math.log(high)
    if _toll_slope(table, i, right, horizon)[0] <= 0.0:
        return log_toll(table, i, high, horizon)
    z = left
    for _ in range(NEWTON_STEPS):
        value, rate = _toll_slope(table, i, z, horizon)
        if value >= 0.0:
            right = z
        else:
            left = z
        following = z - value / rate if rate > 0.0 else right
        if not left < following < right:
            following = 0.5 * (left + right)
        done = abs(following - z) <= SQUARE_SETTLED
        z = following
        if done:
            break
    return log_toll(table, i, math.exp(z), horizon)


def _toll_slope(table: FloatArray, i: int, z: float, horizon: float) -> tuple[float, float]:
    """The derivative of the log toll in z, which only rises, and its own derivative."""
    s, e, bend = shape(table, i, z)
    u = horizon / s
    if u <= 0.0:
        return 1.0 - e, -bend
    spent = -math.expm1(-u)
    w = u * (1.0 - spent) / spent
    return 1.0 - e * (u + w), e * e * (u + w * (1.0 - u - w)) - bend * (u + w)


def prepare_arm(table: FloatArray, i: int, arms: FloatArray, j: int) -> None:
    """Find the top of ψ for a job whose horizon and unit are known."""
    own = class_row(table, i)
    left, right, horizon = (
        float(table[own + RANGE.LOG_LOW]),
        float(table[own + RANGE.LOG_HIGH]),
        float(arms[BANDIT.HORIZON, j]),
    )
    arms[BANDIT.GUESS, j] = -1.0
    arms[BANDIT.BOTTOM, j], arms[BANDIT.TOP, j], arms[BANDIT.CREST, j] = NOWHERE, left, NOWHERE
    if right <= left or has_corners(table, i):
        return
    bottom, rises = pull(table, i, left, horizon)
    arms[BANDIT.BOTTOM, j] = arms[BANDIT.CREST, j] = bottom
    if rises <= 0.0:
        return
    f_left, f_right = rises, max(pull(table, i, right, horizon)[1], -4.0 * rises)
    z = right
    if f_right < 0.0:
        for _ in range(NEWTON_STEPS):
            z = left + (right - left) * min(max(f_left / (f_left - f_right), 0.05), 0.95)
            f = pull(table, i, z, horizon)[1]
            if f > 0.0:
                left, f_left, f_right = z, f, 0.5 * f_right
            else:
                right, f_right, f_left = z, f, 0.5 * f_left
            if right - left <= 1e-10 or f == 0.0:
                break
    arms[BANDIT.TOP, j], arms[BANDIT.CREST, j] = z, pull(table, i, z, horizon)[0]


def find_width(table: FloatArray, i: int, arms: FloatArray, j: int, log_price: float) -> None:
    """The best action of at least one core at a price, into WIDTH, and how it moves with the price."""
    own = class_row(table, i)
    rent = log_price - float(arms[BANDIT.UNIT, j])
    arms[BANDIT.WIDTH, j], arms[BANDIT.RATE, j] = table[own + RANGE.LOW], 0.0
    if has_corners(table, i):
        arms[BANDIT.WIDTH, j] = _best_corner(table, own, float(arms[BANDIT.HORIZON, j]), rent)
        return
    if rent >= arms[BANDIT.CREST, j]:
        return
    horizon, right = float(arms[BANDIT.HORIZON, j]), float(table[own + RANGE.LOG_HIGH])
    z = float(arms[BANDIT.GUESS, j])
    if z < 0.0:
        # What WHAM would want at this price, the answer for short jobs.
        wish = demand(table, i, math.exp(min(rent, 600.0)), 1.0)
        z = math.log(min(max(wish, float(table[own + RANGE.LOW])), float(table[own + RANGE.HIGH])))
    top, low = float(arms[BANDIT.TOP, j]), float(table[own + RANGE.LOW])
    z, rate = _passing(table, i, horizon, rent, min(max(z, top), right), top, right)
    if rent <= arms[BANDIT.BOTTOM, j] or _undercuts(table, i, horizon, rent, low, math.exp(z)):
        arms[BANDIT.GUESS, j] = z
        wide = float(table[own + RANGE.HIGH]) if z >= right else math.exp(z)
        arms[BANDIT.WIDTH, j] = wide
        arms[BANDIT.RATE, j] = wide / rate if rate < 0.0 else 0.0


def _passing(
    table: FloatArray, i: int, horizon: float, rent: float, z: float, left: float, right: float
) -> tuple[float, float]:
    """Where ψ falls to `rent` between left and right, and its slope there; (right, 0) if it does not."""
    end, rate, reached = right, 0.0, False
    for _ in range(NEWTON_STEPS):
        value, rate = pull(table, i, z, horizon)
        value -= rent
        if value >= 0.0 and z >= end:
            return end, 0.0
        if value > 0.0:
            left = z
        else:
            right, reached = z, True
        following = end
        if rate < 0.0:
            # Far below, where e vanishes at the peak of a speedup, ψ dives but e^ψ is straight.
            following = z - (value if value > FAR else 1.0 - math.exp(min(-value, 600.0))) / rate
        newton = left < following < right
        if not newton:
            # The end is tried as it is before anything between it and the last point.
            following = end if following >= end and not reached else 0.5 * (left + right)
        done = abs(following - z) <= (SQUARE_SETTLED if newton and value > FAR else SETTLED)
        z = following
        if done:
            break
    return z, rate


def _undercuts(table: FloatArray, i: int, horizon: float, rent: float, narrow: float, wide: float) -> bool:
    """Whether the wide action costs less; for long jobs by what they save against waiting forever."""
    u, v = horizon / speed(table, i, narrow), horizon / speed(table, i, wide)
    y = math.exp(min(rent, 640.0))
    if v <= 1.0:
        return (1.0 + y * wide) * -math.expm1(-v) < (1.0 + y * narrow) * -math.expm1(-u)
    scaled = math.exp(min(rent + v, 640.0))
    return 1.0 + wide * scaled * math.expm1(-v) > math.exp(v - u) + narrow * scaled * math.expm1(-u)


def _best_corner(table: FloatArray, own: int, horizon: float, rent: float) -> float:
    """The corner of least cost, the narrowest one where several tie."""
    nodes, count = int(table[own + RANGE.NODES]), int(table[own + RANGE.CORNERS])
    scale = horizon / float(table[nodes + 2 * count - 1])
    if scale <= 1.0:
        scale = 0.0
    y = math.exp(min(rent + scale, 640.0))
    best, width = math.inf, float(table[nodes])
    for corner in range(count):
        k = float(table[nodes + corner])
        u = horizon / float(table[nodes + count + corner])
        spent = -math.expm1(-u) if u > 0.0 else 1.0
        if u > 0.0 and scale > 0.0:
            cost = y * k * spent - math.exp(min(scale - u, 0.0))
        elif u > 0.0:
            cost = (1.0 + y * k) * spent
        else:
            cost = (1.0 + y * k) / float(table[nodes + count + corner])
        if cost < best:
            best, width = cost, k
    return width
