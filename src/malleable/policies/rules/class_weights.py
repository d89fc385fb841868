"""What jobs weigh in a market (1, mu, c, cmu or c/x), by class, and the unit that keeps weights moderate.

A job's weight is its own cost (or 1) times the rate of its class, over its remaining size for c/x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.theory.market import cost_unit

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


def class_rates(workload: Workload, weight: str) -> FloatArray:
    """What a job of each class weighs per unit of its cost."""
    return 1.0 / workload.mean_sizes if weight in {"mu", "cmu"} else np.ones(len(workload.classes))


def class_weights(workload: Workload, weight: str) -> FloatArray:
    """What a job of each class weighs; for c/x, before its remaining size divides it."""
    rates = class_rates(workload, weight)
    with np.errstate(over="ignore"):  # the unit of infinite weights is an error
        return workload.holding_costs * rates if "c" in weight else rates


def weight_unit(workload: Workload, weight: str) -> float:
    """The unit of the weights, and so of the prices, of a market of these classes."""
    return cost_unit(class_weights(workload, weight))
