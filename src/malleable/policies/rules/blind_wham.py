"""WHAM on class counts alone, at any number of jobs: what it does where no size is known.

While the least widths of all jobs fit, WHAM looks at counts only. Beyond, it serves by c/x; blind to sizes
that is c_i/E[X_i], class after class, and the last class that is served shares its cores in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.speedup_table import most_efficient
from malleable.policies.rules.class_rules import market_table, wham_rule
from malleable.policies.rules.class_rules_in_closed_form import (
    has_closed_forms,
    quadratic_rule,
    quadratic_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model import Workload


def blind_wham(workload: Workload, cores: float) -> tuple[Callable[..., None], FloatArray]:
    """The rule on class counts and its table, which ends with the order in which classes are served."""
    speedups, costs = workload.speedups, workload.holding_costs / workload.holding_costs.max()
    least = np.array([float(s.most_efficient) for s in speedups])
    speeds = np.array([float(s(k)) for s, k in zip(speedups, least, strict=True)])
    order = np.argsort(-costs / workload.mean_sizes * speeds / least, kind="stable")
    if has_closed_forms(speedups):
        return blind_quadratic_rule, np.concatenate([quadratic_table(speedups, costs), order])
    return blind_market_rule, np.concatenate([market_table(speedups, costs, cores), order])


def blind_quadratic_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Size-blind WHAM for power and Amdahl classes."""
    if _needed(counts, table) < cores:
        quadratic_rule(counts, cores, table, out)
    else:
        _serve_in_order(counts, cores, table, out)


def blind_market_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Size-blind WHAM for any mix of speedups."""
    if _needed(counts, table) < cores:
        wham_rule(counts, cores, table, out)
    else:
        _serve_in_order(counts, cores, table, out)


def _needed(counts: FloatArray, table: FloatArray) -> float:
    """Cores for the least width of every job."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * most_efficient(table, i)
    return total


def _serve_in_order(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    m = len(counts)
    left = cores
    for position in range(len(table) - m, len(table)):
        i = int(table[position])
        out[i] = 0.0
        if counts[i] > 0.0:
            out[i] = min(most_efficient(table, i), left / counts[i])
            left -= counts[i] * out[i]
