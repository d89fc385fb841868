"""Figures of fits: what they show is what the fits say."""

from __future__ import annotations

import numpy as np
import pytest

from malleable import fit_sizes, fit_speedup, plots


def series(panel):
    return {one.name: one for one in panel.series}


def test_a_speedup_beside_its_measurements():
    """The curve with its band, points with the extremes of their runs, and residuals in per cent."""
    fit = fit_speedup(times={1: [10.0, 11.0], 2: [6.0, 5.5], 4: [4.0, 3.5], 8: [3.0, 2.9]}, replications=20)
    speeds, left = plots.fit_figure(fit).panels
    found = series(speeds)
    curve, points = found[f"fitted ({fit.family})"], found["measured"]
    assert curve.y == pytest.approx(fit.speedup(np.array(curve.x)))
    assert all(low <= high for low, high in zip(curve.low, curve.high, strict=True))
    assert points.x == (1.0, 2.0, 4.0, 8.0)
    assert points.y == tuple(point.speedup for point in fit.points)
    assert points.low == tuple(point.low for point in fit.points)
    assert series(left)["measured"].y == tuple(100.0 * point.residual for point in fit.points)


def test_a_speedup_of_single_runs():
    """Without repeated runs there are no whiskers, and without freedom no band."""
    speeds, _ = plots.fit_figure(fit_speedup("1@3,2@2")).panels
    assert all(one.low == () for one in speeds.series)


def test_sizes_beside_their_samples():
    """The empirical survival function steps down at every sample, beside the fitted one."""
    fit = fit_sizes([1.0, 2.0, 3.0, 4.0], "exponential")
    body, tail = plots.fit_figure(fit).panels
    found = series(body)
    assert found["samples"].x == (1.0, 1.0, 2.0, 2.0, 3.0, 3.0)
    assert found["samples"].y == (1.0, 0.75, 0.75, 0.5, 0.5, 0.25)
    fitted = found["fitted (exponential)"]
    assert fitted.y == pytest.approx(np.exp(-np.array(fitted.x) * fit.size.rate), rel=1e-5)
    assert (body.y.scale, tail.y.scale) == ("linear", "log")
