"""`fit_speedup`: from measurements to a speedup, with what is known about its errors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Speedup
from malleable.fitting import bootstrap, choosing, parametric
from malleable.fitting.choosing import Score
from malleable.fitting.curves import Curve
from malleable.fitting.measurements import Measurements

if TYPE_CHECKING:
    from malleable.catalog.spec import Spec
    from malleable.contracts import FloatArray

PARALLEL = 0.999
"""Efficiency above which a job counts as perfectly parallel."""
BETTER_THAN_LINEAR = 1.02
"""Measured efficiency above which it is worth a remark."""


@dataclass(frozen=True)
class Point:
    """One measured width, beside the fit."""

    cores: float
    value: float
    """Median run time, or median throughput."""
    speedup: float
    """Measured, relative to one core as fitted."""
    low: float | None
    """Speedup of the slowest run; None if there was one run only."""
    high: float | None
    """Speedup of the fastest run."""
    fitted: float
    """The fitted speedup."""
    band: tuple[float, float] | None
    """Where the fitted speedup lies with 95 % confidence, by bootstrap."""
    residual: float
    """Measured over fitted rate, minus 1."""
    runs: int


@dataclass(frozen=True)
class Fit:
    """A speedup fitted to measurements."""

    speedup: Speedup
    """What to use: concave and not falling at the widths that were measured."""
    family: str
    criterion: str
    """Why this family: the criterion it won by, or that it was asked for."""
    scores: tuple[Score, ...]
    """How well each family predicts a width that it has not seen; empty if one was asked for."""
    curve: Curve
    measurements: Measurements
    seed: int = 0
    replications: int = bootstrap.REPLICATIONS

    @property
    def rate(self) -> float:
        """The fitted rate on one core."""
        return self.curve.rate

    def band(self, widths: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The bootstrap band of the fitted speedup at any widths."""
        return bootstrap.bands(self.measurements, self.curve, widths, self.seed, self.replications)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The measured widths beside the fit."""
        measured, widths = self.measurements, np.array(self.measurements.widths)
        fitted = np.asarray(self.speedup(widths))
        band = self.band(widths)
        found = []
        for i, (k, logs) in enumerate(measured.runs.items()):
            rate = float(np.exp(measured.medians[i]))
            low, high = (float(np.exp(end(logs))) / self.rate for end in (np.min, np.max))
            found.append(
                Point(
                    k, 1.0 / rate if measured.timed else rate, rate / self.rate,
                    low if len(logs) > 1 else None, high if len(logs) > 1 else None, float(fitted[i]),
                    None if band is None else (float(band[0][i]), float(band[1][i])),
                    rate / (self.rate * float(fitted[i])) - 1.0, len(logs),
                )
            )  # fmt: skip
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before trusting the speedup."""
        measured, found = self.measurements, []
        widest = measured.widths[-1]
        if len(measured.rows) > 1:
            found.append(f"row {measured.row} of {', '.join(measured.rows)}; --row picks another")
        if measured.widths[0] > 1.0:
            found.append(
                f"one core was not measured; the speed there is {_how_one_core(self.family)}, so all "
                "speedups share its error"
            )
        if measured.falls:
            cores = ", ".join(f"{k:g}" for k in measured.falls)
            found.append(f"slower than on fewer cores at {cores}: a job leaves cores idle there, s is flat")
        speeds = np.exp(measured.medians) / self.rate
        best = int(np.argmax(speeds / np.array(measured.widths)))
        k, speed = measured.widths[best], float(speeds[best])
        if measured.widths[0] == 1.0 < k and speed > BETTER_THAN_LINEAR * k:
            found.append(f"better than linear on {k:g} cores: {speed:.4g} times as fast")
        if float(self.speedup(widest)) > PARALLEL * widest:
            found.append(f"no loss up to {widest:g} cores: measure on more to see where the speedup ends")
        return tuple(found)

    @property
    def line(self) -> str:
        """The line for a workload file."""
        return f"speedup = {inline(self.speedup)}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and texts."""
        measured = self.measurements
        return {
            "speedup": self.speedup.to_dict(),
            "family": self.family,
            "criterion": self.criterion,
            "scores": [
                {"family": s.family, "parameters": s.parameters, "error": s.error} for s in self.scores
            ],
            "one_core": 1.0 / self.rate if measured.timed else self.rate,
            "row": measured.row,
            "rows": list(measured.rows),
            "points": [_point(point, timed=measured.timed) for point in self.points],
            "notes": list(self.notes),
            "line": self.line,
        }


def _point(point: Point, *, timed: bool) -> dict[str, Any]:
    return {
        "cores": point.cores,
        "time": point.value if timed else None,
        "throughput": None if timed else point.value,
        "speedup": point.speedup,
        "low": point.low,
        "high": point.high,
        "efficiency": point.speedup / point.cores,
        "fitted": point.fitted,
        "band": None if point.band is None else list(point.band),
        "residual": point.residual,
        "runs": point.runs,
    }


def _how_one_core(family: str) -> str:
    return f"that of the {family} fit" if family in parametric.FAMILIES else "taken as perfectly parallel"


def inline(spec: Spec) -> str:
    """A spec as an inline table of TOML."""
    # Words, numbers, truth values and lists of them are written in TOML as they are in JSON.
    keys = [f"{key} = {json.dumps(value)}" for key, value in spec.to_dict().items()]
    return f"{{ {', '.join(keys)} }}"


def fit_speedup(
    measured: Measurements,
    family: str = choosing.AUTO,
    *,
    seed: int = 0,
    replications: int = bootstrap.REPLICATIONS,
) -> Fit:
    """Fit a family to measurements, or the family that predicts best."""
    chosen, criterion = choosing.check(family), choosing.ASKED
    scores: tuple[Score, ...] = ()
    if chosen == choosing.AUTO:
        chosen, criterion, scores = choosing.choose(measured.points)
    curve = choosing.fit_family(chosen, measured.points)
    return Fit(curve.speedup, chosen, criterion, scores, curve, measured, seed, replications)
