"""From numbers to verdicts: lines through points, limits, and agreement with exact values.

Rates of convergence are slopes of log y over log n; limits are the constant of

    y(n) = a + b/n + c/n²,

fitted by weighted least squares where the errors of y are known (the residuals widen the interval where they
are larger than those errors explain: the curve is not quite a line), by ordinary least squares where y is
exact and only the scatter around the line counts.

Many simulated values are compared with exact ones at once. Each is given the interval of level 1 − 0.001/m,
so that all m exact values lie in theirs with probability 99.9 % at least, if the simulator is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Verdict
from malleable.statistics.intervals import Estimate, t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.contracts import FloatArray

SURE = 0.999
"""Confidence of a verdict that rests on simulated numbers."""
MANY = 10**6
"""Degrees of freedom that make Student's law the normal one."""


def widened(of: Estimate, result: Mapping[str, Any], confidence: float) -> Estimate:
    """An estimate of a simulation result with an interval of another level, by the quantiles of its own."""
    freedom = result["batches"] - result["control_variates"]["number"] - 1
    if freedom < 1:
        return Estimate(of.mean)
    factor = t_quantile(freedom, confidence) / t_quantile(freedom, result["confidence"])
    half = factor * of.half_width
    return Estimate(of.mean, of.mean - half, of.mean + half)


def line(
    columns: FloatArray, y: FloatArray, error: FloatArray | None, confidence: float
) -> tuple[Estimate, ...]:
    """Coefficients of y on the columns with their intervals; `error` holds standard errors of y if known."""
    count, terms = int(columns.shape[0]), int(columns.shape[1])
    freedom = count - terms
    if freedom < 1:
        return (Estimate(),) * terms
    weight = np.ones(count) if error is None else 1.0 / error
    Q, R = np.linalg.qr(columns * weight[:, None])
    coefficients = np.linalg.solve(R, Q.T @ (y * weight))
    residuals = (y - columns @ coefficients) * weight
    excess = float(residuals @ residuals) / freedom
    scale = excess if error is None else max(1.0, excess)
    spread = np.sqrt(scale * (np.linalg.inv(R) ** 2).sum(axis=1))
    half = t_quantile(freedom if error is None else MANY, confidence) * spread
    return tuple(
        Estimate(float(b), float(b - h), float(b + h)) for b, h in zip(coefficients, half, strict=True)
    )


def power(
    n: Sequence[float], y: Sequence[Estimate] | Sequence[float], confidence: float = 0.95
) -> tuple[Estimate, float]:
    """The exponent of a power law through the points, and its factor: y ≈ factor·n^exponent.

    Simulated points that are not clearly above zero have no logarithm and are left out.
    """
    known = [v if isinstance(v, Estimate) else Estimate(v, v, v) for v in y]
    pairs = [(x, v) for x, v in zip(n, known, strict=True) if v.low > 0.0 and isfinite(v.high)]
    if len(pairs) < 3:
        return Estimate(), nan
    mean = np.array([v.mean for _, v in pairs])
    error = np.array([v.half_width for _, v in pairs]) / t_quantile(MANY, 0.95) / mean
    columns = np.column_stack([np.ones(len(pairs)), np.log([x for x, _ in pairs])])
    factor, exponent = line(columns, np.log(mean), error if error.all() else None, confidence)
    return exponent, float(np.exp(factor.mean))


def limit(
    n: Sequence[float], y: Sequence[Estimate], start: float, confidence: float = SURE
) -> tuple[Estimate, int]:
    """The limit of y(n) = a + b/n + c/n² from the points with n ≥ start, and how many they are.

    Three points make do without c.
    """
    pairs = [(x, v) for x, v in zip(n, y, strict=True) if x >= start and isfinite(v.half_width)]
    terms = min(3, len(pairs) - 1)
    if terms < 2:
        return Estimate(), len(pairs)
    x = np.array([x for x, _ in pairs], dtype=float)
    error = np.array([v.half_width for _, v in pairs]) / t_quantile(MANY, 0.95)
    columns = np.column_stack([x**-power for power in range(terms)])
    return line(columns, np.array([v.mean for _, v in pairs]), error, confidence)[0], len(pairs)


@dataclass(frozen=True)
class Case:
    """One simulated value beside the exact one."""

    name: str
    found: Estimate
    """With the interval of the result that it comes from."""
    result: Mapping[str, Any]
    exact: float


def agreement(statement: str, cases: Iterable[Case], tolerance: float = 0.0) -> Verdict:
    """Whether all exact values lie in the simulated intervals, at 99.9 % for all of them together.

    A relative difference of `tolerance` or less counts as agreement: where a value hangs on rare events, a
    short run that saw too few of them reports too short an interval.
    """
    cases = list(cases)
    if not cases:
        return Verdict(statement, None, "nothing to compare")
    level = 1.0 - (1.0 - SURE) / len(cases)
    wide = [widened(case.found, case.result, level) for case in cases]
    # A half-width of 0 or none at all decides nothing.
    off = [
        abs(case.exact - one.mean) / max(one.half_width, tolerance * abs(case.exact))
        if 0.0 < one.half_width < inf
        else nan
        for case, one in zip(cases, wide, strict=True)
    ]
    if not np.isfinite(off).any():
        return Verdict(statement, None, "runs too short for intervals")
    worst = int(np.nanargmax(off))
    shortest, longest = min(v.relative_half_width for v in wide), max(v.relative_half_width for v in wide)
    text = (
        f"{len(cases)} values, {sum(o > 1.0 for o in off)} outside; largest distance "
        f"{off[worst]:.2f} half-widths ({cases[worst].name}: exact {cases[worst].exact:.6g}, simulated "
        f"{cases[worst].found.mean:.6g}); half-widths {shortest:.2%} to {longest:.2%}"
        + (f", taken as {tolerance:.2g} of the value where shorter" if shortest < tolerance else "")
    )
    return Verdict(statement, None if np.isnan(off).any() else bool(max(off) <= 1.0), text)


def tends_to(statement: str, found: Estimate, aim: float, precision: float, note: str) -> Verdict:
    """Whether an estimated limit is the one that theory gives, known to a relative `precision` at least."""
    if not isfinite(found.half_width):
        return Verdict(statement, None, f"too few points for a limit; {note}")
    inside = found.low <= aim <= found.high
    decided = not inside or found.half_width <= precision * abs(aim)
    text = f"extrapolated {found.mean:.6g} ± {found.half_width:.2g} (99.9 %), theory {aim:.6g}; {note}"
    return Verdict(statement, inside if decided else None, text)
