"""Verdicts of e08_attractor: what its numbers bear out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e08_attractor.readings import (
    final_rates,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.statistics.intervals import Estimate
from malleable.theory.attractor import ARRIVED

if TYPE_CHECKING:
    from malleable.statistics.intervals import Estimate
TOLERANCE = 0.15
"""How far from −1/2 the exponent of the deviation may lie, its interval included."""


def fixed_point(fluids: dict[str, Any]) -> Verdict:
    """Whether the fixed point costs what the bound says."""
    gaps = {law: found["cost"] / found["bound"] - 1.0 for law, found in fluids.items()}
    told = "; ".join(f"{law}: {f['cost']:.10f} and {f['bound']:.10f}" for law, f in fluids.items())
    return Verdict(
        "The cost at the fixed point is V*, whatever the law of sizes",
        all(abs(gap) < 1e-9 for gap in gaps.values()),
        f"cost and V*, {told}",
    )


def all_arrive(
    statement: str, fluids: dict[str, Any], studies: list[dict[str, Any]], lost: int = 0
) -> Verdict:
    """Counted over the studies, and over the trajectories that are shown; `lost` cells have no answer."""
    ends = [path[-1] for found in fluids.values() for path in found["distances"]]
    starts = sum(s["starts"] for s in studies) + len(ends)
    arrived = sum(s["converged"] for s in studies) + sum(end <= ARRIVED for end in ends)
    worst = max([*ends, *(s["worst_distance"] for s in studies)], default=0.0)
    slowest = max(s["slowest"] for s in studies)
    text = (
        f"{arrived} of {starts} starts in {len(studies)} settings arrive, largest final distance "
        f"{worst:.1g}; all eigenvalues of the linearised equation at most {slowest:.3g}"
    )
    text += f"; {lost} cells of more settings could not be integrated" if lost else ""
    all_do = bool(arrived == starts and slowest < 0.0)
    return Verdict(statement, None if lost and all_do else all_do, text)


def final_rate(fluids: dict[str, Any]) -> Verdict:
    """The slowest eigenvalue, found from formulas, must be what the integrated trajectories show."""
    apart, told = [], []
    for law, found in fluids.items():
        rate = float(np.median(final_rates(found)))
        apart.append(abs(rate / found["slowest"] - 1.0))
        told.append(f"{law}: median {rate:.3f}, eigenvalue {found['slowest']:.3f}")
    return Verdict(
        "Trajectories approach it at the rate of the slowest eigenvalue", max(apart) < 0.05, "; ".join(told)
    )


def follows(name: str, found: dict[int, Estimate]) -> Verdict:
    """Whether the deviation is a power of n with exponent −1/2."""
    exponent, _ = ev.power(list(found), list(found.values()))
    statement = f"From the start “{name}” the system deviates from the equation by the order of 1/√n"
    told = "; ".join(f"n = {n}: {d.mean:.4f} ± {d.half_width:.4f}" for n, d in found.items())
    text = f"largest deviation {told}; power of n {exponent.mean:.3f} ± {exponent.half_width:.3f}"
    if exponent.high < -0.5 - TOLERANCE or exponent.low > -0.5 + TOLERANCE:
        return Verdict(statement, False, text)
    inside = exponent.low >= -0.5 - TOLERANCE and exponent.high <= -0.5 + TOLERANCE
    return Verdict(statement, inside or None, text)
