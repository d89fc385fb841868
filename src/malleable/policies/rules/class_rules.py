"""Class rules as plain functions that the engine compiles: cores per job of each class from the class counts.

`rule(counts, cores, table, out)` is asked while all jobs can be served. The table starts with the encoded
speedups (`engine.speedup_table`); what follows, from table[1] on, is the rule's own: the last clearing price,
from which the next search starts, then one weight a class. Counts are floats, so the same rule drives the
simulator, a fluid model and a live scheduler.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.speedup_table import demand, encode, peak, work_demand
from malleable.policies.rules.tolerances import FREE, PROHIBITIVE

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
    bisected whenever the bracket did not halve. It stays beside `price_search` for the sake of its digits
    only: the secant method, up to 1e-14 of the cores, takes 0.39 (WHAM) and 0.33 (GREEDY) of its time on
    three smooth classes (`benchmarks/bench_decisions.py`); widths differ by up to 1e-14 of the cores.
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


def equi_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The same for every job; what a class cannot use goes to the others."""
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
