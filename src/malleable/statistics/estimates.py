"""Cost and response times with intervals, and paired differences between two runs on the same jobs.

Control variates are used only where they pay: the set of controls with the shortest interval for the cost,
its loss of degrees of freedom included, if that interval is at least 5 % shorter than without controls,
every control has four batches, and what they leave unexplained is not skewed. (Where jobs hardly ever wait,
sizes explain everything but the rare waits, and an interval from these few covers too little.) The same
regression then serves all classes, and because least squares is linear the cost still is the weighted sum of
the response times.

Two runs on the same jobs share most of their noise. Their records cover the same stretches, so the
difference of influence values, batch by batch, gives the difference of costs its own, much shorter interval.

One regression for all policies that saw the same jobs, so that their costs are as far apart as they are.

Each policy alone has the warm-up, the batches and the controls that suit it. Side by side this misleads: one
cost may have the luck of the jobs that came taken out of it, and the other not, so that they differ by more
than policies do, or the other way round (a paired difference has its own interval and does not mind). So all
leave out the longest warm-up, and are estimated with the batches and controls of the policy whose cost is
known best. Least squares is linear: with the same controls the difference of two costs is that of a paired
regression. Each interval is as wide as the wider of what it is alone and what the shared regression gives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from malleable.catalog.spec import OpenFraction, validate
from malleable.errors import ParameterError
from malleable.statistics.intervals import Basis, Controls, Estimate, around, fit, skewness
from malleable.statistics.sampling import REPLICATIONS, Sample, sample, settled
from malleable.statistics.warmup import Warmup, find_warmup, left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.records import Records
    from malleable.model import Workload
    from malleable.statistics.run_length import Length
    from malleable.statistics.warmup import Warmup


PAYS = 0.95
"""Controls must shorten the interval to this share of the plain one."""
SHORT_PAYS, SHORT_MOST = 0.5, 0.1
"""In a run that is not long, controls must at least halve the interval: near a load of 1 they help little and
mislead. Nor may they take off more than nine tenths: what such a run has not seen, as rare waits, they cannot
explain."""
BATCHES_PER_CONTROL = 4
"""With fewer batches the regression fits noise."""
TAME = 1.5
"""Skewness of what controls leave over, up to which they are used; 40 normal batches never exceed it."""


@dataclass(frozen=True)
class Estimates:
    """The cost, the response time of every class, and how they were made."""

    cost: Estimate
    response_times: tuple[Estimate, ...]
    batches: int
    correlated: bool
    """Whether even the longest batches are correlated, so that the intervals may be too short."""
    controls: Controls
    dominated: float
    """The largest share of the variance of the cost that comes from a single batch."""

    def refused(self) -> Estimates:
        """The same means without intervals."""
        means = tuple(Estimate(one.mean) for one in self.response_times)
        return replace(self, cost=Estimate(self.cost.mean), response_times=means)


def estimate(
    runs: Sequence[Records],
    workload: Workload,
    warmup: Warmup,
    *,
    confidence: float = 0.95,
    controls: bool = True,
    length: Length | None = None,
    shared: Regression | None = None,
) -> Estimates:
    """Estimate the cost from one run by batches, or from several independent replications.

    In a run that is not long by its `length` controls have to earn more, and intervals are corrected for
    skewness; one that is far too short gets none. With a `shared` regression the means are its own.
    """
    checked_confidence(confidence)
    build = partial(sample, runs, warmup.cuts, workload)
    skewed = length is not None and not length.plenty
    found = _estimates(settled(build, len(runs)), confidence, controls=controls, skewed=skewed)
    if shared is not None:
        batches = replace(build(shared.batches), independent=len(runs) >= REPLICATIONS)
        found = _shared(found, batches, shared.controls, confidence, skewed=skewed)
    return found.refused() if length is not None and length.refused else found


def difference(
    runs: Sequence[Records],
    baseline: Sequence[Records],
    workload: Workload,
    *,
    warmup: int | None = None,
    confidence: float = 0.95,
    controls: bool = True,
) -> Estimate:
    """Cost of `runs` minus cost of `baseline`, run for run on the same jobs, with its own interval."""
    checked_confidence(confidence)
    pairs = [_aligned(a, b) for a, b in _paired(runs, baseline)]
    sides = [a for a, _ in pairs], [b for _, b in pairs]
    warmups = [find_warmup(side, workload, warmup) for side in sides]
    cuts = [max(both) for both in zip(*(w.cuts for w in warmups), strict=True)]

    def build(count: int) -> Sample:
        ours, theirs = (sample(side, cuts, workload, count) for side in sides)
        return Sample(ours.points - theirs.points, ours.influence - theirs.influence, ours.controls)

    return _estimates(settled(build, len(pairs)), confidence, controls=controls).cost


def checked_confidence(confidence: float) -> float:
    """A confidence level strictly between 0 and 1."""
    try:
        return float(validate(OpenFraction, confidence))
    except ParameterError as error:
        raise error.within("confidence") from None


def _estimates(chosen: Sample, confidence: float, *, controls: bool, skewed: bool = False) -> Estimates:
    none = Basis(np.zeros((chosen.batches, 0)), np.zeros(0))
    basis = none
    plain = best = _cost(chosen, none, confidence, skewed=skewed)
    most, least = (SHORT_MOST, SHORT_PAYS) if skewed else (0.0, PAYS)
    for candidate in chosen.controls if controls else ():
        trial = Basis.of(candidate)
        if 0 < BATCHES_PER_CONTROL * trial.size <= chosen.batches:
            narrowed = _cost(chosen, trial, confidence, skewed=skewed)
            shorter = narrowed.half_width < min(least * plain.half_width, best.half_width)
            shorter &= narrowed.half_width >= most * plain.half_width
            if shorter and abs(skewness(trial.rest(chosen.influence[:, 0]))) <= TAME:
                basis, best = trial, narrowed
    gain = (plain.half_width / best.half_width) ** 2 if basis.size and best.half_width else 1.0
    columns = zip(chosen.points[1:], chosen.influence.T[1:], strict=True)
    fits = tuple(
        fit(float(p), z, basis, confidence, independent=chosen.independent, skewed=skewed) for p, z in columns
    )
    used, squares = Controls(basis.size, gain), chosen.influence[:, 0] ** 2
    largest = float(squares.max() / total) if (total := float(squares.sum())) > 0.0 else 0.0
    return Estimates(best, fits, chosen.batches, chosen.correlated, used, largest)


def _shared(alone: Estimates, chosen: Sample, controls: int, confidence: float, *, skewed: bool) -> Estimates:
    """The means of a regression on so many controls, with intervals no shorter than those of `alone`."""
    bases = (Basis.of(candidate) for candidate in chosen.controls if controls)
    none = Basis(np.zeros((chosen.batches, 0)), np.zeros(0))
    basis = next((one for one in bases if one.size == controls), none)
    fits = [
        around(fit(float(p), z, basis, confidence, independent=chosen.independent, skewed=skewed), own)
        for p, z, own in zip(
            chosen.points, chosen.influence.T, (alone.cost, *alone.response_times), strict=True
        )
    ]
    used = Controls(basis.size, alone.controls.variance_reduction if basis.size else 1.0)
    return replace(alone, cost=fits[0], response_times=tuple(fits[1:]), batches=chosen.batches, controls=used)


def _cost(chosen: Sample, basis: Basis, confidence: float, *, skewed: bool = False) -> Estimate:
    point, influence = float(chosen.points[0]), chosen.influence[:, 0]
    return fit(point, influence, basis, confidence, independent=chosen.independent, skewed=skewed)


def _paired(runs: Sequence[Records], baseline: Sequence[Records]) -> list[tuple[Records, Records]]:
    if len(runs) != len(baseline):
        problem = f"{len(runs)} replications cannot be paired with {len(baseline)}"
        raise ParameterError(problem, "run both policies with the same seed and replications")
    return list(zip(runs, baseline, strict=True))


def _aligned(a: Records, b: Records) -> tuple[Records, Records]:
    """Both runs as far as the shorter goes; they must have seen the same jobs.

    A run that went on longer has joined its records in pairs (see `engine.run`); the other follows.
    """
    while min(a.size, b.size) > 1 and a.stride != b.stride:
        a, b = (a.coarser(), b) if a.stride < b.stride else (a, b.coarser())
    size = min(a.size, b.size)
    if not np.array_equal(a.arrivals[:size], b.arrivals[:size]):
        problem = "the two runs did not see the same jobs, so their difference has no paired interval"
        raise ParameterError(problem, "run both policies with the same seed, jobs and workload")
    return _first(a, size), _first(b, size)


def _first(run: Records, size: int) -> Records:
    """The first records of a run; the histograms are not by record and stay as they are."""
    cut = {name: array[:size] for name, array in run.arrays().items() if not name.endswith("histogram")}
    return replace(run, **cut)


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
