"""What figures and verdicts of e08_attractor both read from the values of its cells."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.experiments.e08_attractor.cells import (
    LAWS,
)
from malleable.statistics.intervals import Estimate, t_quantile

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
EARLY, LATE = 1e-2, 1e-4
"""Distances between which the rate of the final approach is measured."""


def final_rates(found: Any) -> list[float]:
    """The rate of each trajectory's final approach: the slope of log distance where it is small."""
    rates, t = [], np.array(found["times"])
    for path in found["distances"]:
        d = np.array(path)
        last = int(np.flatnonzero(d > EARLY).max(initial=-1)) + 1
        near = np.arange(len(d)) >= last
        near &= d > LATE
        if near.sum() >= 4:
            rates.append(float(np.polyfit(t[near], np.log(d[near]), 1)[0]))
    return rates


def studies_of(values: Values) -> list[dict[str, Any]]:
    """Studies of the paper's workload, by law of sizes and load."""
    return [
        {"law": law, **values[key]}
        for i, law in enumerate(LAWS)
        for key in values
        if key.startswith(f"study-{i}-")
    ]


def deviation_of(found: Any) -> Estimate:
    """Mean of the largest deviations over seeds, with its 95 % interval."""
    d = np.array(found["deviations"])
    mean = float(d.mean())
    half = t_quantile(len(d) - 1, 0.95) * float(d.std(ddof=1)) / sqrt(len(d))
    return Estimate(mean, mean - half, mean + half)
