"""How far a fitted speedup may be from the truth: bootstrap bands.

Where every width was run at least three times, runs are drawn with replacement within each width, and their
median moves by √(n/(n−1)) as much as it does there: few runs look too much alike. Otherwise the residuals of
the least-squares fit stand in for the noise: they are centred, stretched by √(m/(m−p)) for the p parameters
that m widths were spent on, and added to the fitted curve in random order (Davison and Hinkley, *Bootstrap
Methods and their Application*, 1997, sections 2.3 and 6.3). The family is fitted again each time, and the
band at a width holds the middle 95 % of the speedups found there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.fitting import choosing, parametric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.contracts import FloatArray
    from malleable.fitting.curves import Curve
    from malleable.fitting.measurements import Measurements, Points

REPLICATIONS = 200
LEVEL = 0.95
ENOUGH = 3
"""Runs per width from which on they tell the noise themselves."""


def bands(
    measured: Measurements, curve: Curve, widths: FloatArray, seed: int = 0, replications: int = REPLICATIONS
) -> tuple[FloatArray, FloatArray] | None:
    """Lower and upper ends of the band at each width; None where the measurements do not tell."""
    samples = _samples(measured, curve, np.random.default_rng(seed))
    if samples is None or replications < 2:
        return None
    found = [_again(curve, next(samples)).speedup(widths) for _ in range(replications)]
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(found, [tail, 1.0 - tail], axis=0)
    return low, high


def _samples(measured: Measurements, curve: Curve, rng: np.random.Generator) -> Iterator[Points] | None:
    """Points as they might have been measured."""
    if all(len(logs) >= ENOUGH for logs in measured.runs.values()):
        return _resampled_runs(measured, rng)
    points = measured.points
    smooth = choosing.fit_family("concave", points) if curve.family == "hull" else curve
    left = points.log_rates - smooth.log_rates(points.widths)
    # A curve without a formula is pinned by no more than a few of its corners.
    spent = smooth.parameters if smooth.family in parametric.FAMILIES else 2
    freedom = len(points.widths) - spent
    if freedom < 1:
        return None
    noise = (left - np.mean(left)) * np.sqrt(len(points.widths) / freedom)
    return _resampled_residuals(points, smooth.log_rates(points.widths), noise, rng)


def _resampled_runs(measured: Measurements, rng: np.random.Generator) -> Iterator[Points]:
    runs = list(measured.runs.values())
    stretch = np.array([np.sqrt(len(logs) / (len(logs) - 1.0)) for logs in runs])
    while True:
        drawn = np.array([np.median(rng.choice(logs, len(logs))) for logs in runs])
        yield measured.points.with_rates(measured.medians + stretch * (drawn - measured.medians))


def _resampled_residuals(
    points: Points, fitted: FloatArray, noise: FloatArray, rng: np.random.Generator
) -> Iterator[Points]:
    while True:
        yield points.with_rates(fitted + rng.choice(noise, len(noise)))


def _again(curve: Curve, points: Points) -> Curve:
    """The same family fitted to other points."""
    if curve.family in parametric.FAMILIES:
        return parametric.FAMILIES[curve.family].fit(points, curve.position)
    return choosing.fit_family(curve.family, points)
