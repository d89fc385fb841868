"""heSRPT (Berg, Vesilo, Harchol-Balter 2020) and its online form A-heSRPT.

All jobs present at time 0, one speedup s(k) = k^p, x_1 ≥ … ≥ x_m, z_i = Σ_{l≤i} w_l. The optimal shares are

    θ_i = (z_i/z_m)^{1/(1−p)} − (z_{i−1}/z_m)^{1/(1−p)},  k_i = n·θ_i,
    total weighted flow = n^{−p} Σ x_i [z_i^{1/(1−p)} − z_{i−1}^{1/(1−p)}]^{1−p}

and do not depend on the sizes, only on their order, so they hold until the smallest job leaves.

A-heSRPT applies θ at every arrival and departure to the remaining sizes, with the holding costs as weights
(among equal sizes the earlier arrival counts as smaller). It has three repairs. Mixed speedups are given one
exponent: least squares of log s on log k through s(1) = 1, over widths spread evenly in log k from 1 to n,
weighted by load. Shares below one core: with N ≥ n it is SRPT-n, otherwise these jobs get one core and θ is
applied to the others with what is left. No job is given more than its peak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import (
    ANY,
    CLASS,
    DUST,
    WEIGHT,
    JobRule,
    Need,
    OpenFraction,
    Program,
    by_remaining,
    encode,
    one_core_each,
    peak,
    table_of,
)

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray

GRID = 65
LEAST, MOST = 1e-3, 1.0 - 1e-3
"""Between these the fitted exponent is kept: θ needs 0 < p < 1."""


def shares(weights: FloatArray, exponent: float) -> FloatArray:
    """θ of jobs in order of decreasing size: the part of the cores that each gets."""
    z = np.cumsum(weights) / np.sum(weights)
    return np.diff(z ** (1.0 / (1.0 - exponent)), prepend=0.0)


def total_weighted_flow(sizes: FloatArray, weights: FloatArray, exponent: float, cores: float) -> float:
    """The optimal Σ w·T of jobs in order of decreasing size, all present at time 0."""
    powers = np.cumsum(weights) ** (1.0 / (1.0 - exponent))
    return float(np.asarray(sizes) @ np.diff(powers, prepend=0.0) ** (1.0 - exponent) / cores**exponent)


def hesrpt(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """A-heSRPT: θ on the remaining sizes, no job below one core."""
    size = jobs.shape[0]
    out[:] = 0.0
    if size >= cores - DUST:
        one_core_each(jobs, cores, out)
        return
    power = 1.0 / (1.0 - table[int(table[1])])
    order = by_remaining(jobs)
    sharing, spare = size, cores
    while sharing > 0:
        before = sharing
        sharing = share_out(jobs, order, power, spare, out)
        spare -= before - sharing
        if sharing == before:
            break
    for j in range(size):
        out[j] = min(out[j], peak(table, int(jobs[j, CLASS])))


def share_out(jobs: FloatArray, order: IntArray, power: float, spare: float, out: FloatArray) -> int:
    """Share `spare` cores among the jobs not held at one core, hold those that get less; how many go on."""
    total = 0.0
    for j in order:
        if out[j] != 1.0:
            total += jobs[j, WEIGHT]
    z, below, sharing = 0.0, 0.0, 0
    for position in range(order.shape[0] - 1, -1, -1):
        j = order[position]
        if out[j] == 1.0:
            continue
        z += jobs[j, WEIGHT]
        up_to = min(z / total, 1.0) ** power
        cores = spare * (up_to - below)
        below = up_to
        # A job at one core, up to rounding, is held there: who shares on must not hang on the last digit.
        out[j] = cores if cores > 1.0 + DUST else 1.0
        sharing += int(cores > 1.0 + DUST)
    return sharing


@dataclass(frozen=True)
class Hesrpt(JobRule):
    """A-heSRPT: heSRPT's shares at every arrival and departure; `exponent` is fitted unless given."""

    needs = "work left; speedups, rates and mean sizes where no exponent is given"

    blocking: ClassVar[bool] = False
    exponent: OpenFraction | None = None

    rule = staticmethod(hesrpt)

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        arriving = need.arrivals(workload)
        exponent = self.exponent if self.exponent is not None else effective_exponent(arriving, cores)
        return Program(hesrpt, table_of(encode(workload.speedups), [exponent]))


def effective_exponent(workload: Workload, cores: float) -> float:
    """The one p of k^p that is nearest to all classes' speedups, weighted by load."""
    widths = np.geomspace(1.0, max(cores, 2.0), GRID)
    x = np.log(widths)
    fitted = np.array([x @ np.log(speedup(widths)) / (x @ x) for speedup in workload.speedups])
    return float(np.clip(workload.loads @ fitted / workload.total_load, LEAST, MOST))
