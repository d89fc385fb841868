"""GREEDY's optimum on whole cores where speedups have dents, which steps in order of their value may miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import AGE, CLASS, REMAINING
from malleable.engine.speedup_table import speed
from malleable.policies.rules.knapsack import best_widths
from malleable.policies.rules.market_groups import CONCAVE, MOST, TWIN, class_row, weight_of

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

MOST_VALUES = 2e5
"""Speeds that may be tabulated to improve on the steps."""


def improved_whole(jobs: FloatArray, table: FloatArray, found: FloatArray, cores: float) -> FloatArray:
    """Whole cores that maximise Σ w·s(k), where dents keep steps from it; the earliest have the widest."""
    rows = [class_row(table, i) for i in range(int(table[0]))]
    twin_of = {int(i): int(table[rows[int(i)] + TWIN]) for i in np.unique(jobs[:, CLASS])}
    if all(table[rows[i] + CONCAVE] for i in twin_of.values()):
        return found
    twins = [twin_of[int(i)] for i in jobs[:, CLASS]]
    sets: dict[tuple[int, float], list[int]] = {}
    for j in np.lexsort((jobs[:, REMAINING], -jobs[:, AGE])).tolist():
        sets.setdefault((twins[j], weight_of(jobs, table, j, twins[j])), []).append(j)
    limits = {i: int(min(float(table[rows[i] + MOST]), cores)) for i in twins}
    if sum(limits[i] for i, _ in sets) > MOST_VALUES:
        return found
    speeds = {i: np.array([speed(table, i, float(k)) for k in range(limits[i] + 1)]) for i in limits}
    values = [weight * speeds[i] for i, weight in sets]
    counts = np.array([len(members) for members in sets.values()])
    given = [found[members].astype(np.int64) for members in sets.values()]
    widths = best_widths(values, counts, int(cores), given)
    if widths is None:
        return found
    out = np.zeros(len(jobs))
    for members, own in zip(sets.values(), widths, strict=True):
        out[members] = own
    return out
