"""Cutting runs into batches, and the influence of each batch on cost and response times.

Cost is post-stratified by class: the arrival rates λ_i are known, only the mean response times are not,

    cost = Σ_i (λ_i/λ) c_i T_i,    T_i = Σ_b S_bi / Σ_b n_bi    (S: summed response times, n: departures),

so how many jobs of each class happened to come adds no noise. T_i is a ratio of sums; by the delta method
batch b moves it by z_bi = (S_bi − T_i n_bi)/n̄_i and the cost by Σ_i (λ_i/λ) c_i z_bi.

How many batches: the largest of 40, 30, 20 and 10 whose influence on the cost passes von Neumann's test of
independence. If none does, 10, and the estimates say that batches are correlated. More than 40 gain
next to nothing (t_39 is 3 % wider than the normal quantile), and long batches are closer to independent
(Schmeiser 1982). Five or more replications count as one batch each; fewer are cut into batches that never
straddle two runs, because t_1 to t_3 would make honest intervals uselessly wide.

Controls of mean 0 in every batch, from what the workload states: Σ sizes − E[X_i]·departures, over the very
jobs whose response times are counted (sizes of arrivals would differ from them by the jobs at the edges of a
batch, and what cancels between batches would look like variance), and arrivals − λ_i·duration, by class and
also summed over classes (two controls, for when there are too few batches to afford one for each class).
Classes whose law has no finite second moment are left out: there the regression that sets β has no limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import FloatArray
from malleable.statistics.intervals import correlated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from malleable.engine.records import Records
    from malleable.model import Workload

COUNTS = (40, 30, 20, 10)
"""Numbers of batches to try, in this order."""
REPLICATIONS = 5
"""From this many replications on, each is one batch."""
SUMMED = ("departures", "response", "arrivals", "work", "duration")


@dataclass(frozen=True)
class Sample:
    """What intervals are made from: cost in the first column, response times by class in the others."""

    points: FloatArray
    influence: FloatArray
    """(batches, 1 + classes)."""
    controls: tuple[FloatArray, ...]
    """Sets of controls to choose from, each (batches, controls)."""
    correlated: bool = False
    """Whether even the longest batches failed the test of independence."""
    independent: bool = False
    """Whether the batches are replications, which need no test."""

    @property
    def batches(self) -> int:
        """Number of batches."""
        return len(self.influence)


def batch_sums(runs: Sequence[Records], cuts: Sequence[int], count: int) -> dict[str, FloatArray]:
    """Sums over about `count` batches in all, none of which straddles two runs; the warm-up is left out."""
    each = 1 if len(runs) >= REPLICATIONS else max(1, count // len(runs))
    parts: dict[str, list[FloatArray]] = {name: [] for name in SUMMED}
    for run, cut in zip(runs, cuts, strict=True):
        if cut < run.size:
            starts = np.unique(np.linspace(cut, run.size, each, endpoint=False).astype(int))
            for name in SUMMED:
                parts[name].append(np.add.reduceat(getattr(run, name), starts, axis=0))
    return {name: np.concatenate(sums) for name, sums in parts.items() if sums}


def sample(runs: Sequence[Records], cuts: Sequence[int], workload: Workload, count: int) -> Sample:
    """Point estimates and influence values with about `count` batches."""
    sums = batch_sums(runs, cuts, count)
    if not sums:
        width = len(workload.classes)
        return Sample(np.full(1 + width, np.nan), np.zeros((0, 1 + width)), ())
    jobs, response = sums["departures"], sums["response"]
    seen = jobs.sum(axis=0) > 0.0
    mean_jobs = np.where(seen, jobs.mean(axis=0), 1.0)
    times = response.mean(axis=0) / mean_jobs
    influence = (response - times * jobs) / mean_jobs
    weights = class_weights(workload, seen)
    return Sample(
        points=np.append(times @ weights if seen.any() else np.nan, np.where(seen, times, np.nan)),
        influence=np.column_stack([influence @ weights, influence]),
        controls=_controls(workload, sums),
    )


def class_weights(workload: Workload, seen: FloatArray) -> FloatArray:
    """c_i λ_i/λ for the classes of which a job has left: for all classes, unless the run is tiny."""
    rates = np.where(seen, workload.rates, 0.0)
    return workload.holding_costs * rates / (rates.sum() or 1.0)


def settled(build: Callable[[int], Sample], replications: int) -> Sample:
    """Build a sample with the most batches that look independent."""
    if replications >= REPLICATIONS:
        return replace(build(replications), independent=True)
    for count in COUNTS:
        built = build(count)
        if not correlated(built.influence[:, 0]):
            return built
    return replace(built, correlated=True)


def _controls(workload: Workload, sums: Mapping[str, FloatArray]) -> tuple[FloatArray, ...]:
    sizes_known = [isfinite(c.size.moment(2)) for c in workload.classes]
    intervals_known = [isfinite(c.arrivals.interval.moment(2)) for c in workload.classes]
    sizes = (sums["work"] - workload.mean_sizes * sums["departures"])[:, sizes_known]
    expected = sums["duration"][:, None] * workload.rates
    counts = ((sums["arrivals"] - expected) * workload.mean_sizes)[:, intervals_known]
    totals = np.column_stack([sizes.sum(axis=1), counts.sum(axis=1)])
    return (totals,) if len(workload.classes) == 1 else (totals, np.column_stack([sizes, counts]))
