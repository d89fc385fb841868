"""Class rules as plain functions that the engine compiles: cores per job of each class from the class counts.

`rule(counts, cores, table, out)` is asked while all jobs can be served. The table starts with the encoded
speedups (`engine.speedup_table`); what follows, from table[1] on, is the rule's own. Counts are floats, so
the same rule drives the simulator, a fluid model and a live scheduler.

Where demand has a closed form (`speedups.base.family.PriceForm`), WHAM needs no iteration and GREEDY a few
steps of Newton's method; with any other speedup in the mix both search for a price (`price_search`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.rule_interface import CLASS, INDEX, SHARE, inlined
from malleable.engine.speedup_table import demand, encode, formulas_of, peak, work_demand
from malleable.numerics.places import places
from malleable.policies.rules.ordering import one_core_each
from malleable.policies.rules.price_search import clearing
from malleable.policies.rules.tolerances import DUST, TIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from malleable.contracts import FloatArray, Speedup
    from malleable.speedups.base import PriceForm

WHAM, WORK = 0, 1
"""What jobs minimise: (c + l·k)/s(k), or l·k − w·s(k)."""


class Search(NamedTuple):
    """What stands behind the speedups in the table of a search."""

    PRICE: int
    SLOPE: int
    """The logarithm of the last price, and the slope of demand there: the next search starts from these."""
    WEIGHTS: int
    """One for each class."""


class Widening(NamedTuple):
    """A row of `quadratic_table`: one class."""

    START: int
    """l^(−1/2) at the price at which it starts to widen."""
    CLASS: int
    EXPONENT: int
    FACTOR: int


class Curve(NamedTuple):
    """A row of `newton_table`: one class wants exp(LOG − EXPONENT·u) − SHIFT at the log price u."""

    EXPONENT: int
    LOG: int
    FACTOR: int
    SHIFT: int
    START: int
    """The log price below which it starts to widen."""


SEARCH, WIDENING, CURVE = places(Search), places(Widening), places(Curve)
TANGENTS = 20
"""Steps along tangents before a search for a price goes over to safer ones. From the price of a neighbouring
state a few suffice; from that of a distant one tangents can take hundreds."""


def one_core_each_fits(speedups: Sequence[Speedup], cores: float) -> bool:
    """Whether class counts say it all: cores come whole, and one of them is a sensible least width."""
    return float(cores).is_integer() and all(s.concave and float(s.most_efficient) == 1.0 for s in speedups)


def market_table(speedups: Sequence[Speedup], weights: FloatArray, cores: float) -> FloatArray:
    """The table of `wham_rule`, `greedy_rule` and `equi_rule`."""
    return np.concatenate([encode(speedups, widest=max(cores, 2.0)), [0.0, -1.0], weights])


def wham_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """One price for all: argmin over k ≥ 1 of (c + l·k)/s(k), for any mix of speedups."""
    _share(counts, cores, table, out, WHAM)


def greedy_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """One price for all: argmax over k ≥ 1 of w·s(k) − l·k."""
    _share(counts, cores, table, out, WORK)


def _excess(market: Any, price: float) -> float:
    """Total demand at a price, less the cores; the demand of each class is left in `out`."""
    counts, cores, table, out, kind = market
    total = -cores
    for i in range(len(counts)):
        out[i] = 0.0
        if counts[i] > 0.0:
            out[i] = _wish(table, i, kind, price)
            total += counts[i] * out[i]
    return float(total)


_clear = clearing(_excess)


def _wish(table: FloatArray, i: int, kind: int, price: float) -> float:
    weight = table[int(table[1]) + SEARCH.WEIGHTS + i]
    return demand(table, i, price, weight) if kind == WHAM else work_demand(table, i, price, weight)


def _share(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray, kind: int) -> None:
    """Demand at the clearing price, or above it where it jumps, and a share of the step to that below."""
    own, market = int(table[1]), (counts, cores, table, out, kind)
    low, high, slope = _clear(
        market,
        cores,
        TIGHT * cores,
        table[own + SEARCH.PRICE],
        table[own + SEARCH.SLOPE],
        -math.inf,
        math.inf,
    )
    table[own + SEARCH.PRICE], table[own + SEARCH.SLOPE] = high, slope
    if low == -math.inf or not low < high:
        return
    missing, gap = -_excess(market, math.exp(high)), 0.0
    for i in range(len(counts)):
        if counts[i] > 0.0:
            gap += counts[i] * (_wish(table, i, kind, math.exp(low)) - out[i])
    part = min(max(missing / gap, 0.0), 1.0) if gap > 0.0 else 0.0
    for i in range(len(counts)):
        if counts[i] > 0.0:
            out[i] += part * (_wish(table, i, kind, math.exp(low)) - out[i])


def price_forms(speedups: Sequence[Speedup]) -> list[tuple[PriceForm, PriceForm]] | None:
    """What WHAM and what GREEDY buys of each speedup, if all have closed forms."""
    found = [formulas_of(type(speedup)) for speedup in speedups]
    forms = [
        own.price_forms(speedup)
        for own, speedup in zip(found, speedups, strict=True)
        if own is not None and own.price_forms is not None
    ]
    return forms if len(forms) == len(found) else None


def quadratic_table(speedups: Sequence[Speedup], weights: FloatArray) -> FloatArray | None:
    """The table of `quadratic_rule`: classes in the order in which they start to widen as the price falls.

    None where it does not apply: it takes demands in closed form that grow with l^(−1) or l^(−1/2).
    """
    forms = price_forms(speedups)
    if forms is None or any(one.exponent not in {0.5, 1.0} or one.shift for one, _ in forms):
        return None
    rows = []
    for i, ((form, _), c) in enumerate(zip(forms, weights, strict=True)):
        factor = form.factor * float(c) ** form.exponent
        rows.append((factor ** (-0.5 / form.exponent), float(i), form.exponent, factor))
    return np.concatenate([encode(speedups), np.ravel(sorted(rows))])


def quadratic_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM without iteration.

    With v = l^(−1/2) a class wants a·v² (a power law) or b·v (Amdahl's), both at least 1, so the total demand
    is piecewise quadratic in v. Classes are let widen in the order of their thresholds until the root of
    A v² + B v + C = 0 lies below the next one.
    """
    own, m = int(table[1]), len(counts)
    a = b = v = 0.0
    c = -cores
    for i in range(m):
        c += counts[i]
    for r in range(m):
        row = own + len(WIDENING) * r
        i = int(table[row + WIDENING.CLASS])
        if counts[i] > 0.0:
            if (a > 0.0 or b > 0.0) and v <= table[row + WIDENING.START]:
                break
            if table[row + WIDENING.EXPONENT] == 0.5:
                b += counts[i] * table[row + WIDENING.FACTOR]
            else:
                a += counts[i] * table[row + WIDENING.FACTOR]
            c -= counts[i]
            # The form that does not cancel: −2C/(B + √(B² − 4AC)), C < 0.
            v = -2.0 * c / (b + math.sqrt(b * b - 4.0 * a * c))
    for r in range(m):
        row = own + len(WIDENING) * r
        wish = table[row + WIDENING.FACTOR] * v
        if table[row + WIDENING.EXPONENT] != 0.5:
            wish *= v
        out[int(table[row + WIDENING.CLASS])] = max(1.0, wish)


def newton_table(speedups: Sequence[Speedup], weights: FloatArray) -> FloatArray | None:
    """The table of `newton_rule`: the last log price, then how the demand of each class depends on it.

    None where it does not apply: it takes demands in closed form.
    """
    forms = price_forms(speedups)
    if forms is None:
        return None
    rows = []
    for (_, form), w in zip(forms, weights, strict=True):
        logarithm = math.log(form.factor) + form.exponent * math.log(float(w))
        factor = math.exp(min(logarithm, 600.0))
        start = (logarithm - math.log1p(form.shift)) / form.exponent
        rows.append((form.exponent, logarithm, factor, form.shift, start))
    return np.concatenate([encode(speedups), [0.0], np.ravel(rows)])


def newton_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """GREEDY by Newton's method in the log price u.

    A class wants F·e^(−eu) − d, at least 1: a convex falling total, so from the second step on Newton's
    method rises to the root. (`greedy_rule` takes 1.9 to 2.5 times as long, and `wham_rule` 1.3 to 2.3 times
    as long as the quadratic one.)
    """
    own, m = int(table[1]), len(counts)
    u = table[own]
    low, high = -math.inf, math.inf
    for taken in range(100):
        root = math.exp(-0.5 * u)
        excess, slope, corner = -cores, 0.0, -math.inf
        for i in range(m):
            if counts[i] > 0.0:
                row = own + 1 + len(CURVE) * i
                e = table[row + CURVE.EXPONENT]
                if e == 0.5:
                    k = table[row + CURVE.FACTOR] * root
                else:
                    k = math.exp(min(table[row + CURVE.LOG] - e * u, 600.0))
                fall = e * k
                k -= table[row + CURVE.SHIFT]
                if k > 1.0:
                    slope += counts[i] * fall
                    out[i] = k
                else:
                    corner = max(corner, table[row + CURVE.START])
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


def job_by_job(
    class_rule: Callable[..., None], discipline: int = SHARE, classes: int = 0
) -> Callable[[FloatArray, float, FloatArray, FloatArray], None]:
    """The class rule as a rule on single jobs, also where these are more than it can serve.

    How many classes there are stands at the head of its table, if it is not said.
    """

    def rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
        size, m = jobs.shape[0], classes if classes > 0 else int(table[0])
        if discipline != SHARE and size >= cores:
            out[:] = 0.0
            if discipline == INDEX:
                one_core_each(jobs, cores, out)
            else:
                out[: math.floor(cores + DUST)] = 1.0
            return
        counts, widths = np.zeros(m), np.zeros(m)
        for j in range(size):
            counts[int(jobs[j, CLASS])] += 1.0
        class_rule(counts, cores, table, widths)
        for j in range(size):
            out[j] = widths[int(jobs[j, CLASS])]

    rule.__module__ = class_rule.__module__  # whose code it runs
    return rule
