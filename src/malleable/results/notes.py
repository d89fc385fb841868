"""What to know before trusting the numbers of a run: one sentence for each doubt."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from malleable.model import Workload
from malleable.statistics import Estimates, Length, Stability, Totals, Warmup
from malleable.statistics.run_length import jobs_for_squares, moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from malleable.contracts import Distribution

DOMINATED = 0.5
"""Share of the variance from one batch, of 20 or more, from which on the interval rests on that batch."""
MANY = 20
UNSEEN = 0.1
"""By which share the jobs that left may be smaller than the workload's before it is said."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Doubts:
    """Everything that notes are made from."""

    workload: Workload
    warmup: Warmup
    estimates: Estimates
    totals: Totals
    steady: Stability
    length: Length | None
    """None where the load has no steady state."""
    bound: float | None
    """The tightest one that the cost cannot lie below."""
    blocking: bool
    drawn: bool
    """Whether the jobs were drawn from the workload's laws."""

    def notes(self) -> tuple[str, ...]:
        """The sentences, the gravest first."""
        return (*self._steady(), *self._below(), *self._tails(), *self._length(), *self._batches())

    def _steady(self) -> Iterator[str]:
        if self.steady.reason:
            yield self.steady.reason

    def _below(self) -> Iterator[str]:
        cost = self.estimates.cost
        high = cost.high if isfinite(cost.high) else cost.mean
        if self.bound is not None and high < self.bound * (1.0 - ROUNDING):
            yield (
                "the cost lies below the lower bound, as none can in the long run: this run has not met "
                "what makes jobs expensive, so neither cost nor gap can be trusted"
            )

    def _tails(self) -> Iterator[str]:
        if not self.drawn:
            return
        classes = self.workload.classes
        yield from _wild("sizes", {c.name: c.size for c in classes})
        yield from _wild("inter-arrival times", {c.name: c.arrivals.interval for c in classes})
        needed = jobs_for_squares(self.workload) if self.blocking else 0.0
        if self.length is not None and self.length.jobs < needed:
            enough = f"about {needed:.1g} jobs would show" if isfinite(needed) else "no number of jobs shows"
            yield (
                "large jobs keep others waiting, so the cost depends on the squares of sizes, "
                f"which {enough}; intervals are too short"
            )
        yield from self._unseen()
        batches, most = self.estimates.batches, self.estimates.dominated
        # In a shorter run one batch may well stand out, and the interval is corrected for it.
        if self.length is not None and self.length.plenty and batches >= MANY and most > DOMINATED:
            yield (
                f"one of {batches} batches makes {most:.0%} of the variance: a rare event decides the cost; "
                "run more jobs"
            )

    def _unseen(self) -> Iterator[str]:
        """Sizes that left against those that the workload promises."""
        seen = zip(self.workload.classes, self.totals.departures, self.totals.work, strict=True)
        for job_class, left, work in seen:
            share = work / (left * job_class.size.mean) if left else 1.0
            if share < 1.0 - UNSEEN:
                yield (
                    f"the jobs of {job_class.name} that left had {share:.0%} of the mean size: large ones "
                    "are missing, and the cost is too low"
                )

    def _length(self) -> Iterator[str]:
        found = self.length
        if found is None or not found.short or self.estimates.batches < 2:
            return
        saying = "too short for an interval" if found.refused else "short, and intervals may be too"
        many = found.jobs / found.relaxation
        yield (
            f"the run is {saying}: {found.jobs:.3g} jobs are {many:.2g} relaxation times; "
            f"run {found.needed:.1g} jobs or more"
        )

    def _batches(self) -> Iterator[str]:
        if not self.warmup.converging:
            yield "the warm-up does not end within the first half of the run; run more jobs"
        if self.estimates.correlated:
            yield "batches are correlated, so intervals may be too short; run more jobs"
        if self.estimates.batches < 2:
            yield "too few jobs for an interval; run more jobs"
        names = zip(self.workload.class_names, self.totals.departures, strict=True)
        unseen = [name for name, left in names if not left]
        if unseen:
            yield f"no job of {', '.join(unseen)} has left, and the cost does not count them"


def _wild(what: str, laws: Mapping[str, Distribution]) -> Iterator[str]:
    names = [name for name, law in laws.items() if not isfinite(moment(law, 2))]
    if names:
        yield (
            f"{what} of {', '.join(names)} have no finite variance: rare huge values decide the cost, "
            "and intervals are too short"
        )
