"""Averages over the time after the warm-up: utilisation, overload, jobs present, Little's law.

utilisation      core-time used / (n · time)
effective load   core-time used per unit of work that came, times the known load ρ = Σ λ_i E[X_i] / n;
                 the same limit as utilisation, without the noise of how much work happened to come
overload         share of time with more jobs than cores
Little           area under N_i / Σ response times of class i − 1, which only the jobs at both ends of
                 the run move away from 0: a check of the simulator by itself
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import FloatArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.records import Records
    from malleable.model import Workload


@dataclass(frozen=True, eq=False)
class Totals:
    """Time averages of a run, and by class."""

    utilisation: float
    effective_load: float
    overload: float
    departures: FloatArray
    work: FloatArray
    """Summed sizes of the jobs that left."""
    present: FloatArray
    """Mean number of jobs present."""
    slowdown: FloatArray
    """Mean of response time / size."""
    little: FloatArray
    """Relative residual of Little's law."""
    resizes: FloatArray
    """Mean number of resizes per job; NaN where they were not counted."""


def totals(runs: Sequence[Records], cuts: Sequence[int], workload: Workload, cores: float) -> Totals:
    """Averages over the records of all runs after their warm-up."""

    def total(name: str) -> Any:
        pairs = zip(runs, cuts, strict=True)
        return np.sum([getattr(run, name)[cut:].sum(axis=0) for run, cut in pairs], axis=0)

    time, used, area, departures = total("duration"), total("used"), total("area"), total("departures")
    available = float(total("available"))
    there = max(available / float(time), 1.0) if available > 0.0 else cores
    return Totals(
        # What there was, where the number of cores changed.
        utilisation=float(ratio(used, available if available > 0.0 else cores * time)),
        effective_load=float(ratio(used, total("work").sum())) * workload.load(there),
        overload=float(ratio(total("overload"), time)),
        departures=departures,
        work=total("work"),
        present=ratio(area, time),
        slowdown=ratio(total("slowdown"), departures),
        little=ratio(area - total("response"), total("response")),
        resizes=ratio(total("resizes"), departures),
    )


def ratio(numerator: Any, denominator: Any) -> FloatArray:
    """Divide; NaN where there is nothing to divide by."""
    some = np.asarray(denominator) > 0.0
    with np.errstate(over="ignore"):
        return np.where(some, numerator / np.where(some, denominator, 1.0), np.nan)
