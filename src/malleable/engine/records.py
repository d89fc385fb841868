"""What one run leaves behind: sums over short stretches of time, and histograms.

A record covers the time from one arrival to a later one; the stretches are the same for every policy that
sees the same jobs, so two runs can be compared stretch by stretch. Statistics are made from records alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from malleable.contracts import FloatArray
from malleable.engine.rule_interface import BIN_BITS, BIN_LOWEST, BINS


@dataclass(frozen=True, eq=False)
class Records:
    """Sums by record (first axis) and class (second axis), and histograms by segment of the run.

    Every array is float64. `segment` of a record says which histogram slice its departures went into, so
    that the slices of the warm-up can be left out.
    """

    departures: FloatArray
    """Jobs that left, (records, classes)."""
    response: FloatArray
    """Sum of their response times, (records, classes)."""
    slowdown: FloatArray
    """Sum of response time / size, (records, classes)."""
    arrivals: FloatArray
    """Jobs that came, (records, classes)."""
    work: FloatArray
    """Sum of the sizes of the jobs that left, (records, classes)."""
    area: FloatArray
    """Integral of the number of jobs present, (records, classes)."""
    present: FloatArray
    """Jobs present at the end of the record, (records, classes)."""
    duration: FloatArray
    """Length of the record in time, (records,)."""
    used: FloatArray
    """Integral of the cores in use, (records,)."""
    overload: FloatArray
    """Time with more jobs than cores, (records,)."""
    segment: FloatArray
    """Histogram segment of the record, (records,)."""
    response_histogram: FloatArray
    """Departures by response time, (segments, classes, bins)."""
    slowdown_histogram: FloatArray
    """Departures by slowdown, (segments, classes, bins)."""
    width_histogram: FloatArray
    """Work done by the number of cores it was done on, (classes, bins)."""
    resizes: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Resizes of running jobs, (records, classes); NaN where they were not counted."""
    available: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Integral of the cores there were, (records,); NaN where their number never changed."""

    def __post_init__(self) -> None:
        # Records from before these were kept.
        if not self.resizes.size:
            object.__setattr__(self, "resizes", np.full(self.departures.shape, np.nan))
        if not self.available.size:
            object.__setattr__(self, "available", np.full(self.duration.shape, np.nan))

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.duration)

    @property
    def stride(self) -> float:
        """Jobs that came during one record."""
        return float(self.arrivals[0].sum()) if self.size else 0.0

    def coarser(self) -> Records:
        """Neighbouring records joined in pairs; a last one without a partner is left out."""
        pairs = 2 * (self.size // 2)
        joined = {}
        for name, array in self.arrays().items():
            if name.endswith("histogram"):
                continue
            first, second = array[:pairs:2], array[1:pairs:2]
            joined[name] = second if name == "present" else first if name == "segment" else first + second
        return replace(self, **joined)

    def arrays(self) -> dict[str, FloatArray]:
        """All arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def bin_edges() -> FloatArray:
    """Lower edges of the histogram bins, and the upper edge of the last: linear within an octave."""
    index = np.arange(BINS + 1)
    per_octave = 1 << BIN_BITS
    return np.ldexp(1.0 + (index % per_octave) / per_octave, BIN_LOWEST + index // per_octave)
