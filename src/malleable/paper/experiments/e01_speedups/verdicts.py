"""Verdicts of e01_speedups: what its numbers bear out."""

from __future__ import annotations

import numpy as np

from malleable.paper.contracts import Verdict


def concave(name: str, k: list[float], s: list[float]) -> Verdict:
    """Whether slopes fall, and no speed exceeds the cores."""
    slopes = np.diff(s) / np.diff(k)
    rise = float(np.max(np.diff(slopes) / slopes[:-1]))
    excess = float(np.max(np.array(s) / np.array(k)))
    return Verdict(
        f"{name} is increasing, concave and at most k",
        bool(np.all(slopes >= 0.0) and rise <= 1e-9 and excess <= 1.0 + 1e-12),
        f"largest s(k)/k = {excess:.6g}, slope at {k[-1]:g} cores {slopes[-1]:.3g}",
    )
