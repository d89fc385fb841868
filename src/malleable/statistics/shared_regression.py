"""One regression for all policies that saw the same jobs, so that their costs are as far apart as they are.

Each policy alone has the warm-up, the batches and the controls that suit it. Side by side this misleads: one
cost may have the luck of the jobs that came taken out of it, and the other not, so that they differ by more
than policies do, or the other way round (a paired difference has its own interval and does not mind). So all
leave out the longest warm-up, and are estimated with the batches and controls of the policy whose cost is
known best. Least squares is linear: with the same controls the difference of two costs is that of a paired
regression. Each interval is as wide as the wider of what it is alone and what the shared regression gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from malleable.statistics.warmup import Warmup, left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.records import Records
    from malleable.statistics.intervals import Controls, Estimate


class Regression(NamedTuple):
    """What the costs of several policies have in common."""

    warmup: Warmup
    batches: int
    controls: int
    """How many."""


class Estimated(Protocol):
    """A policy's cost and how it was estimated."""

    @property
    def cost(self) -> Estimate: ...
    @property
    def batches(self) -> int: ...
    @property
    def controls(self) -> Controls: ...


def shared_regression(
    runs: Sequence[Records], warmups: Sequence[Warmup], alone: Sequence[Estimated]
) -> Regression:
    """The regression for policies on the same jobs; `runs` are those of any of them."""
    cuts = [max(of_run) for of_run in zip(*(warmup.cuts for warmup in warmups), strict=True)]
    best = min(alone, key=lambda one: one.cost.relative_half_width)
    return Regression(left_out(runs, cuts), best.batches, best.controls.number)
