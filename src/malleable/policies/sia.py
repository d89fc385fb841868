"""Sia with one resource (Jayaram Subramanya et al. 2023): a multiple-choice knapsack of goodputs.

Every period each job gets one of the widths 1, 2, 4, … ≤ n, or none, so as to

    minimise Σ A_jk·x_jk + 1.1·Σ_j (1 − Σ_k x_jk)    with Σ k·x_jk ≤ n,    A_jk = round(G_jk^p, 2), p = −½

where G_jk = s_j(k) is the goodput relative to one core, times the factor of `policies.base.periodic_restarts`
if the job would be resized. Rounding makes the costs whole numbers of hundredths, so that dynamic programming
over cores is exact. Ties favour narrow widths and earlier arrivals. Beyond 2²² jobs × cores a price per core
takes the place of the table; what it leaves unspent is less than one job's step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Lt

from malleable.catalog.spec import Positive
from malleable.engine.rule_interface import CLASS, HELD
from malleable.engine.speedup_table import encode, speed
from malleable.engine.width_choice import pack
from malleable.policies.base.job_rule import table_of
from malleable.policies.base.periodic_restarts import Restarting, change_factor
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

OWN_FAIRNESS, OWN_IDLE, OWN_RESTARTS = 0, 1, 2
"""Where the rule's own numbers stand behind the encoded speedups; δ of each class comes last."""
NEVER = 1e15
"""The cost of a choice that a job does not have."""


def sia(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The cheapest choice of widths."""
    size, n = jobs.shape[0], math.floor(cores + DUST)
    out[:] = 0.0
    if size == 0:
        return
    levels = 1
    while 1 << levels <= n:
        levels += 1
    # Choice 0 is no cores at all.
    widths, costs = np.zeros((size, levels + 1)), np.empty((size, levels + 1))
    counts, chosen = np.full(size, levels + 1), np.zeros(size, np.int64)
    enough = 0
    for j in range(size):
        costs[j, 0] = table[int(table[1]) + OWN_IDLE]
        enough += cost_row(jobs, j, table, costs[:, 1:])
        for level in range(levels):
            widths[j, 1 + level] = float(1 << level)
    pack(min(n, enough), widths, costs, counts, chosen)
    for j in range(size):
        out[j] = widths[j, chosen[j]]


def cost_row(jobs: FloatArray, j: int, table: FloatArray, costs: FloatArray) -> int:
    """100·A of each width of job j; returns the width it would like best."""
    own, i = int(table[1]), int(jobs[j, CLASS])
    factor = change_factor(jobs, j, table, own + OWN_RESTARTS)
    liked = 0
    for level in range(costs.shape[1]):
        k = float(1 << level)
        goodput = speed(table, i, k) * (1.0 if k == jobs[j, HELD] else factor)
        costs[j, level] = NEVER
        if goodput > 0.0:
            costs[j, level] = min(math.floor(100.0 * goodput ** table[own + OWN_FAIRNESS] + 0.5), NEVER)
        if costs[j, level] < costs[j, liked]:
            liked = level
    return 1 << liked


@dataclass(frozen=True)
class Sia(Restarting):
    """Sia: widths 1, 2, 4, … every `period` by a knapsack of goodputs; it reckons with `restart`."""

    whole_cores: ClassVar[bool] = True
    fairness: Annotated[float, Ge(-10), Lt(0)] = -0.5
    idle: Positive = 1.1

    rule = staticmethod(sia)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        own = [self.fairness, float(np.floor(100.0 * self.idle + 0.5)), *self.restarts(workload, cores)]
        return table_of(encode(workload.speedups), own)
