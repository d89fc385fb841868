"""Percentiles of response times and slowdowns with intervals, as cells: one long run, cut into batches.

A batch is a number of jobs that arrive one after another. Percentiles of all batches together are reported,
and the scatter of those of single batches gives the interval. A policy and WHAM see the same jobs, so the
differences of their percentiles, batch by batch, have intervals of their own.
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.contracts import Policy
from malleable.engine.run import Run
from malleable.model import paper_workload
from malleable.results import Comparison, Result, summarise
from malleable.results.class_result import interval
from malleable.simulation import program
from malleable.sources import stream
from malleable.statistics.intervals import Estimate, t_quantile
from malleable.statistics.percentiles import LEVELS, quantiles

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

CONFIDENCE = 0.95
BASELINE = "wham"


class _Batched(NamedTuple):
    """A result, and percentiles (classes, levels) of each batch and of all together, by what they measure."""

    result: Result
    batches: dict[str, FloatArray]
    together: dict[str, FloatArray]


def tails(policy: str, cores: int, load: float, *, jobs: int, batches: int, seed: int) -> dict[str, Any]:
    """Cost, percentiles by class, and their differences from WHAM's on the same jobs.

    A batch has `jobs` jobs; the first one is the warm-up and counts for the cost's own warm-up only.
    """
    workload = paper_workload(cores, load)
    mine = _batched(policy, workload, cores, jobs, batches, seed)
    found: dict[str, Any] = {"result": mine.result.to_dict(), **_described(mine, workload)}
    if policy != BASELINE:
        ours = _batched(BASELINE, workload, cores, jobs, batches, seed)
        (difference,) = Comparison.of([ours.result, mine.result]).differences
        found |= {"difference": difference.to_dict(), "apart": _apart(mine, ours, workload)}
    return found


def _batched(policy: str, workload: Workload, cores: int, jobs: int, batches: int, seed: int) -> _Batched:
    total = jobs * (batches + 1)
    chosen = program(Policy.of(policy), workload, cores)
    run = Run(workload, cores, chosen, jobs=total, source=stream(workload, seed), name=policy)
    seen: dict[str, list[FloatArray]] = {"response": [], "slowdown": []}
    for batch in range(batches + 1):
        run.extend(jobs * (batch + 1))
        records = run.outcome().records
        seen["response"].append(records.response_histogram.sum(axis=0))
        seen["slowdown"].append(records.slowdown_histogram.sum(axis=0))
    outcome = run.outcome()
    result = summarise(
        [outcome.records],
        workload=workload,
        cores=cores,
        policy=policy,
        seed=seed,
        jobs=outcome.jobs,
        events=outcome.events,
        seconds=outcome.seconds,
    )
    return _Batched(
        result,
        {key: np.array([_percentiles(b - a) for a, b in pairwise(h)]) for key, h in seen.items()},
        {key: _percentiles(h[-1] - h[0]) for key, h in seen.items()},
    )


def _percentiles(histogram: FloatArray) -> FloatArray:
    """Percentiles of each class; NaN for a class of which no job left."""
    levels = np.array(LEVELS)
    return np.array(
        [quantiles(row, levels) if row.any() else np.full(len(levels), np.nan) for row in histogram]
    )


def _described(found: _Batched, workload: Workload) -> dict[str, Any]:
    """By measure, class and level: value and half-width."""
    return {
        key: {
            name: [_entry(found.together[key][i, v], found.batches[key][:, i, v]) for v in range(len(LEVELS))]
            for i, name in enumerate(workload.class_names)
        }
        for key in found.together
    }


def _apart(mine: _Batched, ours: _Batched, workload: Workload) -> dict[str, Any]:
    """The same for the differences from WHAM."""
    return {
        key: {
            name: [
                _entry(
                    mine.together[key][i, v] - ours.together[key][i, v],
                    mine.batches[key][:, i, v] - ours.batches[key][:, i, v],
                )
                for v in range(len(LEVELS))
            ]
            for i, name in enumerate(workload.class_names)
        }
        for key in mine.together
    }


def _entry(value: float, batches: FloatArray) -> dict[str, float | None]:
    """A number and its interval by the scatter of the batches; none where a batch had no such jobs."""
    value = float(value)
    if not (np.isfinite(value) and np.isfinite(batches).all()) or len(batches) < 2:
        return interval(Estimate(value))
    half = t_quantile(len(batches) - 1, CONFIDENCE) * float(batches.std(ddof=1)) / sqrt(len(batches))
    return interval(Estimate(value, value - half, value + half))
