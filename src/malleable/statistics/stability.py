"""Does the number of jobs present settle, or does it grow for as long as the run lasts?

A load of 1 or more is unstable under any policy; that is known before the run. A policy can also lose
stability at a smaller load, or be so near to it that the run is too short. Started empty, an unstable
system holds N(t) ≈ drift·t jobs, so its last quarter holds 7/3 of what its second does; at the very edge
N(t) ~ √t, and the ratio is 1.53. A stable one that has settled has a ratio near 1, by chance anything when
the run is short. So growth is reported when

    N̄_4 > 1.4 N̄_2,   N̄_2 < N̄_3 < N̄_4,   and Welch's t on eight means per quarter says so with p < 10⁻³.

The t is a screen, not an exact test: means within a quarter are correlated in heavy traffic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.statistics.intervals import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.engine.records import Records

GROWTH = 1.4
MEANS = 8
"""Means taken of every quarter."""
CONFIDENCE = 0.998
"""Two-sided level whose upper tail is 10⁻³."""


class Stability(NamedTuple):
    """Whether the run can be read as a steady state, and if not, why.

    A reason beside `stable` says that the run is too short to tell.
    """

    stable: bool
    reason: str = ""


def stability(runs: Sequence[Records], *, far_too_short: bool = False) -> Stability:
    """Look for growth in the number of jobs present, averaged over the replications.

    In a run that is `far_too_short` any system grows, since it starts empty: that says nothing of stability.
    """
    length = min(run.size for run in runs)
    if length < 4 * MEANS:
        return Stability(stable=True)
    present = np.mean([run.present[:length].sum(axis=1) for run in runs], axis=0)
    # The run's first records go, so that the quarters are equally long.
    quarters = present[length % (4 * MEANS) :].reshape(4, MEANS, -1).mean(axis=2)
    _, second, third, last = quarters.mean(axis=1)
    if not (last > GROWTH * second and second < third < last and _significant(quarters[3], quarters[1])):
        return Stability(stable=True)
    grown = f"jobs present grow: {second:.4g} on average in the second quarter, {last:.4g} in the last"
    if far_too_short:
        return Stability(stable=True, reason=f"{grown}; the run is too short to have filled the system")
    return Stability(stable=False, reason=f"{grown}; unstable, or the run is too short")


def _significant(after: FloatArray, before: FloatArray) -> bool:
    error = float(np.sqrt((after.var(ddof=1) + before.var(ddof=1)) / MEANS))
    return float(after.mean() - before.mean()) > t_quantile(2 * MEANS - 2, CONFIDENCE) * error
