"""How long must a run be? Known beforehand, from the workload alone.

A queue forgets its past in a relaxation time, and an interval rests on how many of them a run holds. In heavy
traffic the work present moves like a Brownian motion with drift −n(1 − ρ) and variance σ² = Σ λ_i E[X_i]²
(a_i + b_i) per unit of time, a and b the squared coefficients of variation of inter-arrival times and sizes;
its relaxation time is 2σ²/(n(1 − ρ))². In jobs, and with the exact factor of M/M/1 for the lighter traffic,

    R = ((1 + √ρ)/(1 − ρ))² · Σ λ_i E[X_i]² (a_i + b_i) / (2 λ m²),     m = Σ λ_i E[X_i] / λ,

1/(1 − √ρ)² for M/M/1, (1 + b)/2 times that for M/G/1, and the same number of jobs on n cores as on one.
(Work counts as core-time on the most efficient width.) Besides, a system that starts empty has to fill, which
takes some response times: as many jobs as are present at least, N = λ V* without holding costs.

Where every class has a pool of its own (FW-CAM), each pool is such a queue with a load of its own, and the
slowest counts: R_i = ((1 + √ρ_i)/(1 − ρ_i))² (a_i + b_i)/2 jobs of the class, λ/λ_i as many of all classes.

Of a queue in which a large job keeps others waiting, the cost depends on the squares of sizes (Pollaczek and
Khinchine). How well m jobs show the mean square is κ/m, κ = E[X⁴]/(E[X²])², over the mix of classes.

Measured over 200 runs per setting (`benchmarks/bench_coverage.py`): from 100 R on, intervals corrected for
skewness cover 90 % or more, from 1000 R on plain ones do; below 10 R they mean nothing.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import Distribution, FloatArray
    from malleable.model import Workload

RELAXATIONS = 100.0
"""Relaxation times that an interval needs."""
FILLINGS = 20.0
"""Times the jobs present that it needs besides."""
SQUARES = 100.0
"""Times κ that it needs where jobs wait for large ones."""
REFUSED = 0.1
"""Below this share of what it needs, there is no interval."""
PLENTY = 10.0
"""From this multiple on, plain intervals will do."""


class Length(NamedTuple):
    """The length of a run (of all replications together) against what its interval needs."""

    jobs: float
    relaxation: float
    """Jobs that come during a relaxation time."""
    needed: float
    share: float
    """What there is, of what is needed; a replication needs a tenth of it by itself."""

    @property
    def refused(self) -> bool:
        """Whether there can be no interval."""
        return self.share < REFUSED

    @property
    def short(self) -> bool:
        """Whether the interval may be too short."""
        return self.share < 1.0

    @property
    def plenty(self) -> bool:
        """Whether batches are long enough for their skewness not to matter."""
        return self.share >= PLENTY


def length(
    workload: Workload,
    cores: float,
    present: float,
    jobs: float,
    replications: int,
    *,
    pools: Sequence[float] = (),
) -> Length:
    """Compare `jobs` over all replications with what an honest interval needs; `present` is N at least."""
    relaxation = relaxation_jobs(workload, cores, pools)
    needed = jobs_needed(relaxation, present)
    each = jobs / replications / (REFUSED * needed)
    return Length(jobs, relaxation, needed, min(jobs / needed, each) if isfinite(needed) else 0.0)


def jobs_needed(relaxation: float, present: float) -> float:
    """How long a run must be that forgets in `relaxation` jobs, with so many present."""
    return RELAXATIONS * relaxation + FILLINGS * present


def relaxation_jobs(workload: Workload, cores: float, pools: Sequence[float] = ()) -> float:
    """R of the module's text: jobs that come during a relaxation time; infinite at a load of 1.

    `pools` are the loads of the classes' own pools, where they have any. A law without a second moment counts
    as if it were exponential here; it has a note of its own.
    """
    widths = np.minimum([float(s.most_efficient) for s in workload.speedups], cores)
    usage = np.array([k / float(s(k)) for k, s in zip(widths, workload.speedups, strict=True)])
    noise = np.array([_variability(c.size) + _variability(c.arrivals.interval) for c in workload.classes])
    sizes, shares = workload.mean_sizes * usage, workload.rates / workload.total_rate
    # In units of the mean size: squares of tiny or huge times are no numbers.
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(shares @ ((sizes / float(shares @ sizes)) ** 2 * noise))
    whole = _forgetting(float(workload.loads @ usage) / cores, spread if isfinite(spread) else inf)
    rows = zip(pools, noise, shares, strict=False)
    return float(max([whole, *(_forgetting(load, n) / share for load, n, share in rows)]))


def _forgetting(load: float, noise: float) -> float:
    """Jobs in which a queue forgets whose sizes and inter-arrival times have these squared variations."""
    return ((1.0 + load**0.5) / (1.0 - load)) ** 2 * noise / 2.0 if load < 1.0 else inf


def jobs_for_squares(workload: Workload) -> float:
    """Jobs until the mean square of the sizes is known; infinite where it never is."""
    second, fourth = (_mixed(workload, order) for order in (2, 4))
    return SQUARES * fourth / second**2 if isfinite(fourth) and second > 0.0 else inf


def moment(law: Distribution, order: int) -> float:
    """E[X^order]; infinite where it does not exist or is beyond the range of floats."""
    try:
        with np.errstate(all="ignore"):
            value = float(law.moment(order))
    except ArithmeticError:
        return inf
    return value if isfinite(value) else inf


def _variability(law: Distribution) -> float:
    """The squared coefficient of variation, 1 where it does not exist."""
    if not isfinite(law.mean):  # as of arrivals that never come
        return 1.0
    second = moment(law.scaled(1.0 / law.mean), 2)
    return max(second - 1.0, 0.0) if isfinite(second) else 1.0


def _mixed(workload: Workload, order: int) -> float:
    """E[X^order] of a job of any class, in units of the mean size."""
    unit = float(workload.total_load / workload.total_rate)
    moments: FloatArray = np.array([moment(c.size.scaled(1.0 / unit), order) for c in workload.classes])
    return float(workload.rates @ moments) / workload.total_rate
