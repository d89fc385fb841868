"""The speeds of a state: from the table over class counts, or by the rule itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from malleable.engine.gpu.layout import TABLE_ROW, M
from malleable.engine.rule_interface import NEGATIVE, NOT_A_NUMBER, OVER_ALLOCATED, TOLERANCE
from malleable.engine.speedup_table import speed


def rule(counts: Any, cores: float, table: Any, out: Any) -> None:
    """Stands for the policy's rule, by which the kernel is specialised."""


def tabulated(speeds: Any, row: Any, s: Any, inverse: Any) -> float:
    """Read the speeds of a state from the table; the cores in use, or minus a status."""
    start = np.uint32(row * TABLE_ROW)
    for i in range(M):
        s[i] = speeds[np.uint32(start + 1 + i)]
        inverse[i] = speeds[np.uint32(start + 1 + M + i)]
    return float(speeds[start])


def decided(
    count: Any, n: float, rule_table: Any, encoded: Any, asked: Any, width: Any, s: Any, inverse: Any
) -> float:
    """Ask the rule for the speeds of a state; the cores in use, or minus a status."""
    for i in range(M):
        asked[i] = np.float64(count[i])
    rule(asked, n, rule_table, width)
    used = 0.0
    status = 0
    for i in range(M):
        k = width[i]
        s[i] = 0.0
        if count[i] > 0:
            if math.isnan(k):
                status = NOT_A_NUMBER
            elif k < 0.0:
                status = NEGATIVE
            s[i] = speed(encoded, i, k)
            used += asked[i] * k
        inverse[i] = 1.0 / s[i] if s[i] > 0.0 else math.inf
    if used > n * (1.0 + TOLERANCE):
        status = OVER_ALLOCATED
    return used if status == 0 else -float(status)
