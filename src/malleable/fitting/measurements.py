"""Measurements: how fast a job ran on how many cores, and what they say per width.

A run on k cores that took t has the rate 1/t; a throughput is a rate already. Noise in run times is relative
(a run that is disturbed takes a few per cent longer, whatever its length), so everything is fitted on the
logarithm of rates. The rate at a width is the median of its runs: one run that was disturbed does not count.

A job need not use all of the cores that it is given. So the speed attainable on k cores is the best of those
measured on k or fewer, and this is what is fitted: measurements that fall are raised to the best before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from malleable.contracts import FloatArray
from malleable.errors import MeasurementError

FORM = "give rows cores,time or cores,throughput with numbers above 0"


@dataclass(frozen=True)
class Points:
    """One point per width, widths increasing: what is fitted."""

    widths: FloatArray
    measured: FloatArray
    """Logarithms of the measured rates, which may fall."""
    weights: FloatArray
    """Number of runs at each width."""

    @cached_property
    def log_rates(self) -> FloatArray:
        """Logarithms of the attainable rates."""
        return np.asarray(np.maximum.accumulate(self.measured))

    def without(self, position: int) -> Points:
        """All points but one."""
        return Points(*(np.delete(part, position) for part in (self.widths, self.measured, self.weights)))

    def with_rates(self, measured: FloatArray) -> Points:
        """The same widths with other measured rates."""
        return Points(self.widths, measured, self.weights)


@dataclass(frozen=True)
class Measurements:
    """Runs of one job: the number of cores and the rate of each."""

    cores: tuple[float, ...]
    rates: tuple[float, ...]
    timed: bool = True
    """Whether the rates are 1/time, so that they are shown as times."""
    name: str = "measurements"
    row: str | None = None
    """Which row of its file, where that has several."""
    rows: tuple[str, ...] = ()
    """All rows of the file."""

    def __post_init__(self) -> None:
        if not self.cores:
            raise MeasurementError(f"{self.name}: there are no measurements", FORM)
        for k, rate in zip(self.cores, self.rates, strict=True):
            if not 1.0 <= k < inf:
                raise MeasurementError(f"{self.name}: cores must be at least 1, got {k:g}", FORM)
            if not 0.0 < rate < inf:
                what = "a time" if self.timed else "a throughput"
                raise MeasurementError(f"{self.name}: {what} on {k:g} cores is no number above 0", FORM)
        if len(self.widths) < 2:
            raise MeasurementError(
                f"{self.name}: only one width was measured, {self.widths[0]:g} cores",
                "measure on at least two numbers of cores",
            )

    @cached_property
    def widths(self) -> tuple[float, ...]:
        """The numbers of cores that were measured, each once, increasing."""
        return tuple(sorted(set(self.cores)))

    @cached_property
    def runs(self) -> dict[float, FloatArray]:
        """The rates of all runs at each width, as logarithms."""
        cores, logs = np.array(self.cores), np.log(self.rates)
        return {k: logs[cores == k] for k in self.widths}

    @cached_property
    def medians(self) -> FloatArray:
        """The logarithm of the median rate at each width, as measured."""
        return np.array([np.median(logs) for logs in self.runs.values()])

    @cached_property
    def points(self) -> Points:
        """What is fitted: the attainable rate at each width."""
        counts = np.array([float(len(logs)) for logs in self.runs.values()])
        return Points(np.array(self.widths), self.medians, counts)

    @property
    def falls(self) -> tuple[float, ...]:
        """Widths at which the job was slower than on fewer cores."""
        raised = self.points.log_rates > self.medians
        return tuple(k for k, up in zip(self.widths, raised, strict=True) if up)

    @classmethod
    def of(cls, times: Any = None, throughput: Any = None, name: str = "measurements") -> Measurements:
        """From `{cores: time}` or `{cores: [time, time, …]}`, or pairs (cores, time); or of throughputs."""
        if (times is None) == (throughput is None):
            raise MeasurementError("give either times or throughput", FORM)
        timed = times is not None
        pairs = list(_pairs(times if timed else throughput))
        for k, value in pairs:
            if not 0.0 < value < inf:
                what = "time" if timed else "throughput"
                raise MeasurementError(f"{name}: {what} on {k:g} cores must be above 0, got {value:g}", FORM)
        cores, values = (tuple(column) for column in zip(*pairs, strict=True)) if pairs else ((), ())
        return cls(cores, tuple(1.0 / v for v in values) if timed else values, timed, name)


def _pairs(given: Any) -> Iterable[tuple[float, float]]:
    """Cores and value of each run."""
    items = given.items() if isinstance(given, Mapping) else given
    try:
        for k, values in items:
            for value in np.ravel(values).tolist():
                yield float(k), float(value)
    except (TypeError, ValueError):
        raise MeasurementError(f"cannot read measurements from {given!r:.60}", FORM) from None
