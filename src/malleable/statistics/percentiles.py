"""Percentiles from log-binned histograms.

Bins split every octave into 2^6 equal parts (`engine.records.bin_edges`), so a bin is at most 2^−6 of its
value wide. Within a bin values are taken as evenly spread: a percentile is off by at most one bin, 1.6 %,
and usually far less, whatever the number of jobs. Values beyond 2^±40 share the outermost bins.

Histograms are kept by segment of the run; a segment that overlaps the warm-up is left out whole, except
when no other is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.records import bin_edges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.engine.records import Records

LEVELS = (0.5, 0.95, 0.99)


class Percentiles(NamedTuple):
    """The median and the tail; None without a single value."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


def percentiles(histogram: FloatArray) -> Percentiles:
    """The percentiles of one histogram (bins,)."""
    if not histogram.any():
        return Percentiles()
    return Percentiles(*quantiles(histogram, np.array(LEVELS)).tolist())


def quantiles(histogram: FloatArray, levels: FloatArray) -> FloatArray:
    """Values below which the given shares of the histogram lie, linear within a bin."""
    edges = bin_edges()
    cumulated = np.append(0.0, np.cumsum(histogram))
    target = levels * cumulated[-1]
    filled = np.flatnonzero(histogram)
    index = filled[np.minimum(np.searchsorted(cumulated[filled + 1], target), len(filled) - 1)]
    inside = (target - cumulated[index]) / histogram[index]
    result: FloatArray = edges[index] + np.clip(inside, 0.0, 1.0) * np.diff(edges)[index]
    return result


def kept_histogram(runs: Sequence[Records], cuts: Sequence[int], name: str) -> FloatArray:
    """The histogram called `name`, (classes, bins), over the segments after the warm-up of every run."""
    total = np.zeros(getattr(runs[0], name).shape[1:])
    for run, cut in zip(runs, cuts, strict=True):
        total += getattr(run, name)[_kept(run, cut)].sum(axis=0)
    return total


def _kept(run: Records, cut: int) -> FloatArray:
    segments = run.segment.astype(int)
    after = np.unique(segments[cut:])
    clear = np.setdiff1d(after, segments[:cut])
    return clear if clear.size else after
