"""What every speedup that comes out of measurements must be."""

from __future__ import annotations

import numpy as np

SLACK = 1e-7
"""Relative: fitted parameters are rounded to six digits."""


def assert_contract(speedup, widest: float) -> None:
    """s(0) = 0, s(k) = k up to one core, and from there on concave and not falling up to `widest`."""
    assert speedup(0.0) == 0.0
    assert speedup(0.5) == 0.5
    assert abs(speedup(1.0) - 1.0) <= 1e-12
    k = np.linspace(1.0, max(widest, 2.0), 400)
    s = np.asarray(speedup(k))
    assert np.all(np.isfinite(s))
    assert np.all(np.diff(s) >= -SLACK * s[:-1])
    middles = np.asarray(speedup((k[:-2] + k[2:]) / 2.0))
    assert np.all(middles >= (s[:-2] + s[2:]) / 2.0 * (1.0 - SLACK))
