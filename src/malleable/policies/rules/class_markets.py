"""Class rules as plain functions that the engine compiles: cores per job of each class from the class counts.

`rule(counts, cores, table, out)` is asked while everybody can be served. The table starts with the encoded
speedups (`engine.speedup_table`); what follows, from table[1] on, is the rule's own: the last clearing price,
from which the next search starts, then one weight a class. Counts are floats, so the same rule drives the
simulator, a fluid model and a live scheduler.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.speedup_table import AMDAHL, PREAMBLE, ROW, demand, encode, peak, work_demand
from malleable.policies.rules.tolerances import FREE, PROHIBITIVE
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup

CLOSE = 8.9e-16
"""Relative distance of neighbouring prices."""
STEP = 1.25
"""How far from the last price the search for a bracket starts."""


def market_table(speedups: Sequence[Speedup], weights: FloatArray, cores: float) -> FloatArray:
    """The table of the rules below."""
    return np.concatenate([encode(speedups, widest=max(cores, 2.0)), [1.0], weights])


def one_core_each_fits(speedups: Sequence[Speedup], cores: float) -> bool:
    """Whether class counts say it all: cores come whole, and one of them is a sensible least width."""
    return float(cores).is_integer() and all(s.concave and float(s.most_efficient) == 1.0 for s in speedups)


def wham_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """One price for all: argmin over k ≥ 1 of (c + l·k)/s(k), for any mix of speedups."""
    _clear(counts, cores, table, out, 0)


def greedy_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """One price for all: argmax over k ≥ 1 of w·s(k) − l·k."""
    _clear(counts, cores, table, out, 1)


def _clear(  # noqa: C901, PLR0912 - bracket, shrink and share, on numbers only
    counts: FloatArray, cores: float, table: FloatArray, out: FloatArray, kind: int
) -> None:
    """Find two neighbouring prices around the clearing one, then share what lies between (a hair, or a jump).

    The same search as `theory.market.clear`, started from the last price: false position in log l (Illinois),
    bisected whenever the bracket did not halve.
    """
    own = int(table[1])
    guess = table[own]
    low = high = guess
    f_low = f_high = _excess(counts, cores, table, out, kind, guess)
    if f_low > 0.0:
        step = STEP
        while f_high > 0.0 and high < PROHIBITIVE:
            low, f_low = high, f_high
            high = high * step
            f_high = _excess(counts, cores, table, out, kind, high)
            step = step * step
    else:
        step = STEP
        while f_low <= 0.0 and low > FREE:
            high, f_high = low, f_low
            low = low / step
            f_low = _excess(counts, cores, table, out, kind, low)
            step = min(step * step, 1e60)
        if f_low <= 0.0:
            return
    previous = math.inf
    for _ in range(200):
        if high - low <= CLOSE * high:
            break
        width = math.log(high / low)
        bisect = width > 0.5 * previous
        share = 0.5 if bisect else min(max(f_low / (f_low - f_high), 1e-3), 1.0 - 1e-3)
        x = low * math.exp(share * width)
        if not low < x < high:
            x = 0.5 * (low + high)
            if not low < x < high:
                break
        previous = width
        f = _excess(counts, cores, table, out, kind, x)
        if f > 0.0:
            low, f_low = x, f
            if not bisect:
                f_high = 0.5 * f_high
        else:
            high, f_high = x, f
            if not bisect:
                f_low = 0.5 * f_low
    table[own] = high
    _share(counts, cores, table, out, kind, low, high)


def _wish(table: FloatArray, i: int, kind: int, price: float) -> float:
    weight = table[int(table[1]) + 1 + i]
    return demand(table, i, price, weight) if kind == 0 else work_demand(table, i, price, weight)


def _excess(
    counts: FloatArray, cores: float, table: FloatArray, out: FloatArray, kind: int, price: float
) -> float:
    """Total demand at a price, less the cores; the demand of each class is left in `out`."""
    total = -cores
    for i in range(len(counts)):
        out[i] = 0.0
        if counts[i] > 0.0:
            out[i] = _wish(table, i, kind, price)
            total += counts[i] * out[i]
    return total


def _share(
    counts: FloatArray, cores: float, table: FloatArray, out: FloatArray, kind: int, low: float, high: float
) -> None:
    """Demand at the higher price, plus the share of the step to the lower one that the cores allow."""
    missing = -_excess(counts, cores, table, out, kind, high)
    gap = 0.0
    for i in range(len(counts)):
        if counts[i] > 0.0:
            gap += counts[i] * (_wish(table, i, kind, low) - out[i])
    if missing <= 0.0 or gap <= 0.0:
        return
    part = min(missing / gap, 1.0)
    for i in range(len(counts)):
        if counts[i] > 0.0:
            out[i] += part * (_wish(table, i, kind, low) - out[i])


def quadratic_table(speedups: Sequence[Speedup], weights: FloatArray) -> FloatArray:
    """The table of `quadratic_rule`: classes in the order in which they start to widen as the price falls."""
    rows = []
    for i, (speedup, c) in enumerate(zip(speedups, weights, strict=True)):
        if isinstance(speedup, Power):
            a = float(c) * speedup.exponent / (1.0 - speedup.exponent)
            rows.append((1.0 / math.sqrt(a), float(i), a))
        elif isinstance(speedup, Amdahl):
            b = math.sqrt(float(c) * (1.0 - speedup.sequential) / speedup.sequential)
            rows.append((1.0 / b, float(i), b))
    rows.sort()
    return np.concatenate([encode(speedups), np.array(rows).ravel()])


def has_closed_forms(speedups: Sequence[Speedup]) -> bool:
    """Whether `quadratic_rule` and `newton_rule` apply: power and Amdahl classes only."""
    return all(type(s) in {Power, Amdahl} for s in speedups)


def quadratic_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM for power and Amdahl classes, without iteration.

    With v = l^(−1/2) a power class wants a·v² and an Amdahl class b·v, both at least 1, so the total demand
    is piecewise quadratic in v. Classes are let widen in the order of their thresholds until the root of
    A v² + B v + C = 0 lies below the next one.
    """
    own, m = int(table[1]), len(counts)
    a = b = v = 0.0
    c = -cores
    for i in range(m):
        c += counts[i]
    for r in range(m):
        i = int(table[own + 3 * r + 1])
        if counts[i] > 0.0:
            if (a > 0.0 or b > 0.0) and v <= table[own + 3 * r]:
                break
            if table[PREAMBLE + ROW * i] == AMDAHL:
                b += counts[i] * table[own + 3 * r + 2]
            else:
                a += counts[i] * table[own + 3 * r + 2]
            c -= counts[i]
            # The form that does not cancel: −2C/(B + √(B² − 4AC)), C < 0.
            v = -2.0 * c / (b + math.sqrt(b * b - 4.0 * a * c))
    for r in range(m):
        i = int(table[own + 3 * r + 1])
        wish = table[own + 3 * r + 2] * v
        if table[PREAMBLE + ROW * i] != AMDAHL:
            wish *= v
        out[i] = max(1.0, wish)


def newton_table(speedups: Sequence[Speedup], weights: FloatArray) -> FloatArray:
    """The table of `newton_rule`: the last log price, then for each class how its demand depends on it."""
    rows = []
    for speedup, w in zip(speedups, weights, strict=True):
        if isinstance(speedup, Power):
            rows += [1.0 / (1.0 - speedup.exponent), math.log(float(w) * speedup.exponent)]
        elif isinstance(speedup, Amdahl):
            rows += [speedup.sequential, math.sqrt(float(w) * (1.0 - speedup.sequential))]
    return np.concatenate([encode(speedups), [0.0], rows])


def newton_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """GREEDY for power and Amdahl classes, by Newton's method in the log price u.

    A power class wants exp((ln(w p) − u)/(1−p)) and an Amdahl class (√(w(1−q))·e^(−u/2) − (1−q))/q, both at
    least 1: a convex falling total, so from the second step on Newton's method rises to the root.
    """
    own, m = int(table[1]), len(counts)
    u = table[own]
    for _ in range(100):
        root = math.exp(-0.5 * u)
        excess, slope, corner = -cores, 0.0, -math.inf
        for i in range(m):
            if counts[i] > 0.0:
                a, b = table[own + 1 + 2 * i], table[own + 2 + 2 * i]
                if table[PREAMBLE + ROW * i] == AMDAHL:
                    k, fall = (b * root - (1.0 - a)) / a, 0.5 * b * root / a
                    top = 2.0 * math.log(b)
                else:
                    k = math.exp(min((b - u) * a, 600.0))
                    fall, top = k * a, b
                if k > 1.0:
                    slope += counts[i] * fall
                    out[i] = k
                else:
                    corner = max(corner, top)
                    out[i] = 1.0
                excess += counts[i] * out[i]
        if slope > 0.0:
            # A tangent far to the right points far too low, and the way back is slow.
            step = max(excess / slope, -1.0)
            u += step
            if abs(step) <= 1e-14 * max(1.0, abs(u)):
                break
        elif excess < 0.0:
            # Everybody is at one core and cores are left: go to where the first class starts to widen.
            u = corner - 1e-9
        else:
            break
    table[own] = u


def equi_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The same for everybody; what a class cannot use goes to the others."""
    m = len(counts)
    left, jobs = cores, 0.0
    for i in range(m):
        out[i] = -1.0
        jobs += counts[i]
    again = True
    while again and jobs > 0.0:
        again = False
        level = left / jobs
        for i in range(m):
            if out[i] < 0.0 and counts[i] > 0.0 and peak(table, i) < level:
                out[i] = peak(table, i)
                left -= counts[i] * out[i]
                jobs -= counts[i]
                again = True
    level = left / jobs if jobs > 0.0 else 0.0
    for i in range(m):
        if out[i] < 0.0:
            out[i] = level


def fixed_table(speedups: Sequence[Speedup], widths: FloatArray, cores: float) -> FloatArray:
    """The table of `fixed_rule`."""
    return np.concatenate([encode(speedups, widest=max(cores, 2.0)), widths])


def fixed_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:  # noqa: ARG001
    """The widths that stand in the table, whoever is there."""
    own = int(table[1])
    for i in range(len(counts)):
        out[i] = table[own + i]
