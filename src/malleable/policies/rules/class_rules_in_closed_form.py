"""Class rules for power and Amdahl classes only, whose demand at a price is known in closed form.

WHAM needs no iteration, GREEDY a few steps of Newton's method; `class_rules` says what a class rule is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import inlined
from malleable.engine.speedup_table import AMDAHL, PREAMBLE, ROW, encode
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup

TANGENTS = 20
"""Steps along tangents before a search for a price goes over to safer ones. From the price of a neighbouring
state a few suffice; from that of a distant one tangents can take hundreds."""


def has_closed_forms(speedups: Sequence[Speedup]) -> bool:
    """Whether `quadratic_rule` and `newton_rule` apply: power and Amdahl classes only."""
    return all(type(s) in {Power, Amdahl} for s in speedups)


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
    low, high = -math.inf, math.inf
    for taken in range(100):
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
        low, high = (u, high) if excess > 0.0 else (low, u)
        if slope > 0.0:
            # A tangent far to the right points far too low, and the way back is slow.
            step = max(excess / slope, -1.0)
            if taken >= TANGENTS:
                step = _safe_step(step, excess, slope, cores, u, low, high)
            u += step
            if abs(step) <= 1e-14 * max(1.0, abs(u)):
                break
        elif excess < 0.0:
            # Every job is at one core and cores are left: go to where the first class starts to widen.
            u = corner - 1e-9
        else:
            break
    table[own] = u


@inlined
def _safe_step(
    step: float, excess: float, slope: float, cores: float, u: float, low: float, high: float
) -> float:
    """How far to go from the log price u in place of a step along the tangent.

    Demand exceeds the cores by `excess` there; at `low` it is too large, at `high` it is not.
    """
    if excess > cores and high == math.inf:
        # Far to the left a tangent points no further than 1 − p; the logarithm of demand is nearly straight.
        step = math.log(1.0 + excess / cores) * (excess + cores) / slope
    if not low <= u + step <= high:
        return 0.5 * (low + high) - u
    return step
