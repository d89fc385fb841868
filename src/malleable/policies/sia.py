"""Sia with one resource (Jayaram Subramanya et al. 2023): a multiple-choice knapsack of goodputs.

Every period each job gets one of the widths 1, 2, 4, … ≤ n, or none, so as to

    minimise Σ A_jk·x_jk + 1.1·Σ_j (1 − Σ_k x_jk)    with Σ k·x_jk ≤ n,    A_jk = round(G_jk^p, 2), p = −½

where G_jk = s_j(k) is the goodput relative to one core, times the factor of `policies.base.periodic_restarts`
if the job would be resized. Where its class restricts the widths, the choice is the narrowest of these, the
next that is at least twice as wide, and so on: with another width than those, no job could keep what it has,
and two jobs could take turns for ever, each of them pausing for longer than its turn. Rounding makes the
costs whole numbers of hundredths, so that dynamic programming over cores is exact. Ties favour narrow widths
and earlier arrivals. Beyond 2²² jobs × cores a price per core takes the place of the table; what it leaves
unspent is less than one job's step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Lt

from malleable.engine.legal_widths import pack
from malleable.policies.base import CLASS, DUST, HELD, Positive, encode, speed, table_of
from malleable.policies.base.periodic_restarts import Restarting, change_factor

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

OWN_FAIRNESS, OWN_IDLE, OWN_RESTARTS = 0, 1, 2
"""Where the rule's own numbers stand behind the encoded speedups; δ of each class, then its widths."""
NEVER = 1e15
"""The cost of a choice that a job does not have."""


def sia(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The cheapest choice of widths."""
    size, n = jobs.shape[0], math.floor(cores + DUST)
    out[:] = 0.0
    if size == 0:
        return
    levels = ladder_length(n)
    # Choice 0 is no cores at all.
    widths, costs = np.zeros((size, levels + 1)), np.empty((size, levels + 1))
    counts, chosen = np.ones(size, np.int64), np.zeros(size, np.int64)
    enough = 0
    for j in range(size):
        costs[j, 0] = table[int(table[1]) + OWN_IDLE]
        counts[j] += width_row(jobs, j, n, table, widths)
        enough += cost_row(jobs, j, table, widths, costs, counts[j])
    pack(min(n, enough), widths, costs, counts, chosen)
    for j in range(size):
        out[j] = widths[j, chosen[j]]


def ladder_length(n: int) -> int:
    """How many widths up to n there can be if each is at least twice the one before."""
    levels = 1
    while 1 << levels <= n:
        levels += 1
    return levels


def width_row(jobs: FloatArray, j: int, n: int, table: FloatArray, widths: FloatArray) -> int:
    """The widths up to n that job j may choose from, besides none at all; how many."""
    classes = int(table[0])
    start = int(table[1]) + OWN_RESTARTS + classes
    levels = (table.shape[0] - start) // classes
    start += levels * int(jobs[j, CLASS])
    count = 0
    while count < levels and 0.0 < table[start + count] <= n:
        widths[j, 1 + count] = table[start + count]
        count += 1
    return count


def cost_row(
    jobs: FloatArray, j: int, table: FloatArray, widths: FloatArray, costs: FloatArray, count: int
) -> int:
    """100·A of each width of job j; returns the width it would like best."""
    own, i = int(table[1]), int(jobs[j, CLASS])
    factor = change_factor(jobs, j, table, own + OWN_RESTARTS)
    liked = 1
    for level in range(1, count):
        k = widths[j, level]
        goodput = speed(table, i, k) * (1.0 if k == jobs[j, HELD] else factor)
        costs[j, level] = NEVER
        if goodput > 0.0:
            costs[j, level] = min(math.floor(100.0 * goodput ** table[own + OWN_FAIRNESS] + 0.5), NEVER)
        if costs[j, level] < costs[j, liked]:
            liked = level
    return int(widths[j, liked]) if count > 1 else 0


def ladder(allowed: FloatArray | None, cores: float) -> FloatArray:
    """The narrowest width, the next that is at least twice as wide, and so on; zeros behind the last."""
    widths = np.zeros(ladder_length(math.floor(cores + DUST)))
    choice = 2.0 ** np.arange(len(widths)) if allowed is None else allowed
    place, level = 0, 0
    while place < len(choice):
        widths[level] = choice[place]
        place, level = int(np.searchsorted(choice, 2.0 * choice[place])), level + 1
    return widths


@dataclass(frozen=True)
class Sia(Restarting):
    """Sia: widths 1, 2, 4, … every `period` by a knapsack of goodputs; it reckons with `restart`."""

    needs = "speedups, work done"

    whole_cores: ClassVar[bool] = True
    fairness: Annotated[float, Ge(-10), Lt(0)] = -0.5
    idle: Positive = 1.1

    rule = staticmethod(sia)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        own = [self.fairness, float(np.floor(100.0 * self.idle + 0.5)), *self.restarts(workload, cores)]
        own += [k for one in workload.job_types for k in ladder(one.widths_on(cores), cores)]
        return table_of(encode(workload.speedups), own)
