"""How much of the beginning to leave out: MSER-5, or a given number of jobs.

A run starts empty, so its first records are too cheap. MSER (White 1997) leaves out the d values that make
the rest's squared standard error, as if it were independent, smallest:

    d* = argmin_d  Σ_{j>d} (Y_j − Ȳ_d)² / (k − d)²,    Ȳ_d the mean of Y_{d+1..k},

on means Y_j of five records (MSER-5), d in the first half. A value left out that looks like the rest costs
precision; one that lies apart gains it. A minimum at the edge, d = k/2, means that the transient has not
ended: the run is reported as not converging.

Runs start empty, so a transient comes from below. A beginning that cost *more* than the rest is a chance
excursion; leaving it out would bias the cost downwards (on M/M/1 at load 0.7 and 40 000 jobs by 0.5 %, and
coverage would drop from 95 to 93 %), so it is kept.

The series is the cost Σ_i c_i N_i present over the record, divided by λ (a cost per job, by Little's law);
over several replications it is averaged record by record, as Welch has it, and all are cut alike. A cut
falls between two records; the jobs that came before it are the warm-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.engine.records import Records
    from malleable.model import Workload

GROUP = 5
"""Records averaged before the search: the 5 of MSER-5."""
ENOUGH = 10
"""With fewer values than this a minimum says nothing, and nothing is left out."""


@dataclass(frozen=True)
class Warmup:
    """What is left out of each run, and whether the run had settled by then."""

    cuts: tuple[int, ...]
    """Records left out, by run."""
    jobs: int
    """Jobs that came in them, over all runs."""
    converging: bool = True


def find_warmup(runs: Sequence[Records], workload: Workload, jobs: int | None = None) -> Warmup:
    """The warm-up of the runs: `jobs` arrivals in each when given, else found by MSER-5."""
    if jobs is not None:
        return _given(runs, jobs)
    length = min(run.size for run in runs)
    series = np.mean([cost_series(run, workload)[:length] for run in runs], axis=0)
    group = GROUP if length >= GROUP * ENOUGH else 1
    count = length // group
    means = series[: count * group].reshape(count, group).mean(axis=1)
    cut, converging = mser(means)
    return left_out(runs, (cut * group,) * len(runs), converging=converging)


def left_out(runs: Sequence[Records], cuts: Sequence[int], *, converging: bool = True) -> Warmup:
    """The warm-up of these cuts, one for each run."""
    jobs = sum(run.arrivals[:cut].sum() for run, cut in zip(runs, cuts, strict=True))
    return Warmup(tuple(cuts), int(jobs), converging)


def cost_series(run: Records, workload: Workload) -> FloatArray:
    """Mean holding cost present over each record, per arrival."""
    cost: FloatArray = run.area @ workload.holding_costs
    return cost / np.where(run.duration > 0.0, run.duration, 1.0) / workload.total_rate


def mser(values: FloatArray) -> tuple[int, bool]:
    """How many of the first values to leave out, and whether the minimum is inside the first half."""
    count = len(values)
    if count < ENOUGH:
        return 0, True
    left = count - np.arange(count // 2 + 1)
    # Centring first: the difference of two large sums would lose the digits that matter.
    y = values - values[count // 2 :].mean()
    sums = np.cumsum(y[::-1])[::-1][: len(left)]
    squares = np.cumsum((y**2)[::-1])[::-1][: len(left)]
    statistic = (squares - sums**2 / left) / left.astype(float) ** 2
    best = int(np.argmin(statistic))
    if values[:best].sum() >= best * values[best:].mean():
        return 0, True
    return best, best < count // 2


def _given(runs: Sequence[Records], jobs: int) -> Warmup:
    if jobs < 0:
        raise ParameterError(f"warmup must be at least 0 jobs, got {jobs}")
    cuts = []
    for run in runs:
        came = np.cumsum(run.arrivals.sum(axis=1))
        if run.size and jobs >= came[-1]:
            problem = f"a warm-up of {jobs} jobs leaves nothing of a run of {came[-1]:.0f} jobs"
            raise ParameterError(problem, "run more jobs, or leave out fewer")
        cuts.append(int(np.searchsorted(came, jobs)) + 1 if jobs else 0)
    # The record in which the last of them comes is left out whole, unless it is all there is.
    cuts = [min(cut, max(run.size - 1, 0)) for run, cut in zip(runs, cuts, strict=True)]
    return left_out(runs, cuts)
